"""A run's model comes back from its folder, or one sentence says why not."""

from collections.abc import Callable

import pytest
import torch

from qkvtrace.corpus.batches import Batch
from qkvtrace.corpus.vocabulary import SPECIALS, Vocabulary
from qkvtrace.errors import UserError
from qkvtrace.model.stored import load_trained
from qkvtrace.training.saving import Saver

CPU = torch.device("cpu")


@pytest.mark.parametrize("tied", [False, True])
def test_a_stored_model_translates_as_the_trained_one(
    saver: Callable[..., Saver], random_batch: Callable[..., Batch], tied: bool
) -> None:
    saved, batch = saver(tied_embeddings=tied, dropout=0.3), random_batch([4, 7], [5, 3])
    saved.save(best=True)
    trained = load_trained(saved.run, "best", CPU)
    assert not trained.model.training
    assert trained.source.tokens == saved.source.tokens
    assert trained.target.tokens == saved.target.tokens
    expected = saved.trainer.model.eval()(batch.source, batch.target)
    assert torch.equal(trained.model(batch.source, batch.target), expected)


def test_a_run_without_a_checkpoint_is_an_error(saver: Callable[..., Saver]) -> None:
    with pytest.raises(UserError, match=r"expected a checkpoint .* found none: .*latest"):
        load_trained(saver().run, "latest", CPU)


@pytest.mark.parametrize("side", ["source", "target"])
def test_another_vocabulary_of_the_same_size_is_an_error(
    saver: Callable[..., Saver], side: str
) -> None:
    saved = saver()
    saved.save()
    vocabulary = Vocabulary.load(saved.run.vocabulary(side))
    Vocabulary([*SPECIALS, *reversed(vocabulary.tokens[4:])]).save(saved.run.vocabulary(side))
    with pytest.raises(UserError, match=f"found another: .*vocabulary.{side}.json"):
        load_trained(saved.run, "latest", CPU)


@pytest.mark.parametrize(
    "change",
    [
        ("width: 22", "width: 26"),
        ("layers: 2", "layers: 3"),
        ("layers: 2", "layers: 1"),
        ("positions: learned", "positions: none"),
    ],
)
def test_a_checkpoint_of_another_network_is_an_error(
    saver: Callable[..., Saver], change: tuple[str, str]
) -> None:
    saved = saver()
    saved.save()
    config = saved.run.settings_file
    config.write_text(config.read_text().replace(*change))
    with pytest.raises(UserError, match=r"expected a checkpoint of the model that .hydra"):
        load_trained(saved.run, "latest", CPU)
