"""What the tests share: settings with small prime sizes, seeded models, batches and a corpus."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch

from qkvtrace.corpus.batches import Batch, Batches, pad
from qkvtrace.corpus.prepared import Corpus, TokenPair
from qkvtrace.corpus.vocabulary import EOS, PAD, SOS, SPECIALS, Vocabulary
from qkvtrace.model.transformer import Transformer
from qkvtrace.runs.folder import Run
from qkvtrace.settings import (
    DataSettings,
    ModelSettings,
    Settings,
    SnapshotSettings,
    TrainingSettings,
)
from qkvtrace.training.saving import Saver
from qkvtrace.training.trainer import Trainer

hypothesis.settings.register_profile("unhurried", deadline=None)  # disks and machines may be busy
hypothesis.settings.load_profile("unhurried")


def vocabulary(words: str) -> Vocabulary:
    return Vocabulary((*SPECIALS, *words.split()))


SOURCE = vocabulary("i we can want to eat drink read apple bread water book it")
TARGET = vocabulary("ich wir kann können essen trinken lesen brot es")

DATA = DataSettings(
    name="small",
    folder=None,
    train="train.tsv",
    valid=None,
    test=None,
    source_language="en",
    target_language="de",
    lowercase=True,
    min_frequency=1,
    max_length=None,
    limit=None,
    probes=None,
)
MODEL = ModelSettings(
    layers=2,
    heads=2,
    width=22,
    feed_forward=19,
    dropout=0.0,
    norm="post",
    positions="learned",
    max_positions=23,
    tied_embeddings=False,
    scaled_scores=True,
    projections="separate",
    attention="explicit",
)
TRAINING = TrainingSettings(
    epochs=3,
    steps=None,
    seed=5,
    device="cpu",
    batch_size=3,
    optimizer="adam",
    learning_rate=0.01,
    betas=(0.9, 0.98),
    weight_decay=0.0,
    schedule="linear",
    warmup_steps=2,
    label_smoothing=0.1,
    clip_norm=1.0,
    checkpoint_every=1,
)
SNAPSHOTS = SnapshotSettings(epochs=None, every=1, parameters=True, tensorboard=False)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Such small tensors are not worth sharing."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def data_settings() -> Callable[..., DataSettings]:
    return lambda **changed: replace(DATA, **changed)


@pytest.fixture(scope="session")
def model_settings() -> Callable[..., ModelSettings]:
    return lambda **changed: replace(MODEL, **changed)


@pytest.fixture(scope="session")
def training_settings() -> Callable[..., TrainingSettings]:
    return lambda **changed: replace(TRAINING, **changed)


@pytest.fixture(scope="session")
def transformer() -> Callable[..., Transformer]:
    """Build the same model for the same seed, in eval mode: 17 source and 13 target tokens."""

    def build(seed: int = 0, **changed: Any) -> Transformer:
        torch.manual_seed(seed)
        model = Transformer(
            replace(MODEL, **changed),
            source_vocabulary=len(SOURCE),
            target_vocabulary=len(TARGET),
            pad=PAD,
        )
        return model.eval()

    return build


@pytest.fixture(scope="session")
def random_batch() -> Callable[..., Batch]:
    """Build sentences of given lengths, <sos> and <eos> counted."""

    def build(sources: Sequence[int], targets: Sequence[int], seed: int = 0) -> Batch:
        generator = torch.Generator().manual_seed(seed)

        def sentence(length: int, vocabulary: Vocabulary) -> list[int]:
            words = torch.randint(EOS + 1, len(vocabulary), (length - 2,), generator=generator)
            return [SOS, *words.tolist(), EOS]

        return Batch(
            pad([sentence(length, SOURCE) for length in sources]),
            pad([sentence(length, TARGET) for length in targets]),
            sum(targets) - len(targets),
        )

    return build


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Eleven pairs to train on, five to validate with, two probes of which one has a reference."""
    generator = torch.Generator().manual_seed(1)

    def words(vocabulary: Vocabulary) -> list[str]:
        (length,) = torch.randint(1, 8, (1,), generator=generator).tolist()
        ids = torch.randint(EOS + 1, len(vocabulary), (length,), generator=generator)
        return [vocabulary[index] for index in ids.tolist()]

    def pairs(count: int) -> list[TokenPair]:
        return [(words(SOURCE), words(TARGET)) for _ in range(count)]

    train, valid = pairs(11), pairs(5)
    probes = [train[2][0], ["we", "eat", "water", "we", "eat", "water", "we", "read"]]
    return Corpus("f" * 64, {"train": train, "valid": valid, "test": valid}, SOURCE, TARGET, probes)


@pytest.fixture(scope="session")
def batches(corpus: Corpus) -> Callable[..., Batches]:
    def build(split: str = "train", size: int = TRAINING.batch_size) -> Batches:
        return Batches(corpus.splits[split], SOURCE, TARGET, size=size, device=torch.device("cpu"))

    return build


@pytest.fixture
def saver(
    tmp_path: Path, corpus: Corpus, transformer: Callable[..., Transformer]
) -> Callable[..., Saver]:
    """Build what keeps an untrained model in a new run folder of `tmp_path`."""

    def build(name: str = "run", seed: int = 0, **changed: Any) -> Saver:
        model = {key: changed.pop(key) for key in list(changed) if hasattr(MODEL, key)}
        settings = Settings(
            data=DATA,
            model=replace(MODEL, **model),
            training=replace(TRAINING, **changed),
            snapshots=SNAPSHOTS,
            outputs=str(tmp_path),
            resume=None,
        )
        run = Run.create(tmp_path / name, settings, {"corpus": corpus.fingerprint})
        SOURCE.save(run.vocabulary("source"))
        TARGET.save(run.vocabulary("target"))
        trainer = Trainer(transformer(seed, **model), settings.training, last_step=12)
        return Saver(run, trainer, SOURCE, TARGET)

    return build
