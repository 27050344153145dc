"""How long a training step and a whole training take on this machine: make bench.

Each is measured in turn with something that everybody has: the step with the same step of PyTorch's
own `nn.Transformer` and `torch.optim.AdamW`, a step of 32 seeds together with that of one, the
whole training with `import torch`. Their ratios hold where milliseconds drift.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from qkvtrace.command import command, composed, plain
from qkvtrace.conversion import from_config
from qkvtrace.settings import BenchmarkSettings, Settings

if TYPE_CHECKING:
    from qkvtrace.corpus.batches import Batch, Batches
    from qkvtrace.corpus.prepared import Corpus

Step = Callable[[], None]
SEEDS = 32  # that are trained together


@command("benchmark")
def main(config: DictConfig) -> None:
    """Measure, and print the medians over the rounds."""
    benchmark = from_config(BenchmarkSettings, plain(config))
    settings = from_config(Settings, composed("train"))
    with tempfile.TemporaryDirectory() as folder:
        train = [sys.executable, "scripts/train.py", f"outputs={folder}"]
        pairs = [
            (
                process([*train, f"hydra.run.dir={folder}/train/{number}"]),
                process([sys.executable, "-c", "import torch"]),
            )
            for number in range(1 + benchmark.repeats)
        ][1:]  # the first round warms up byte code and caches
        batches = corpus_and_batches(settings, Path(folder))
    ours, theirs = step(settings, *batches), step_of_pytorch(settings, *batches)
    together = step_together(settings, *batches)
    seconds = [(training[0], importing[0]) for training, importing in pairs]
    report("a whole training, 30 epochs", "s", seconds, "import torch")
    print(f"its peak memory: {max(training[1] for training, _ in pairs):.0f} MB")

    compare("a training step, 8 sentences", ours, theirs, "nn.Transformer", benchmark)
    few = replace(benchmark, steps=-(-benchmark.steps // 10))
    compare(f"a step of {SEEDS} seeds together", together, ours, "of one", few)


def compare(what: str, one: Step, other: Step, beside: str, benchmark: BenchmarkSettings) -> None:
    """Time two kinds of steps in turn, and print the medians over the rounds."""
    rounds = [
        (timed(one, benchmark.steps), timed(other, benchmark.steps))
        for _ in range(1 + benchmark.repeats)
    ][1:]
    report(what, "ms", rounds, beside)


def report(what: str, unit: str, rounds: list[tuple[float, float]], beside: str) -> None:
    """Print the medians of what was measured, of what was measured beside it, and of the ratio."""
    ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(mine / other for mine, other in rounds)
    print(f"{what}: {ours:.2f} {unit}; {beside}: {theirs:.2f} {unit}; ratio {ratio:.2f}")


def process(command: list[str]) -> tuple[float, float]:
    """Run a command; its seconds of wall time, and its peak memory in MB."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"{command} exited with {child.returncode}"
    kilobyte = 1 if sys.platform == "darwin" else 1024  # macOS counts in bytes
    return time.perf_counter() - started, usage.ru_maxrss * kilobyte / 1e6


def timed(step: Step, times: int) -> float:
    """The median of so many steps, in milliseconds."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        step()
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


def corpus_and_batches(settings: Settings, outputs: Path) -> "tuple[Corpus, Batches]":
    """What the steps are taken on."""
    import torch

    from qkvtrace.corpus.batches import Batches
    from qkvtrace.corpus.prepared import prepare

    corpus = prepare(settings.data, outputs / "prepared")
    batches = Batches(
        corpus.splits["train"],
        corpus.source,
        corpus.target,
        size=settings.training.batch_size,
        device=torch.device("cpu"),
    )
    return corpus, batches


def full(batches: "Batches", seed: int) -> "Iterator[Batch]":
    """Batches of whole size without end: an epoch's last one may be smaller."""
    for epoch in count(1):
        for batch in batches.shuffled(seed, epoch):
            if len(batch.source) == batches.size:
                yield batch


def step(settings: Settings, corpus: "Corpus", batches: "Batches") -> Step:
    """A training step of ours, with the making of its batch."""
    from qkvtrace.model.device import choose_threads
    from qkvtrace.model.stored import build_model
    from qkvtrace.training.trainer import Trainer

    model = build_model(settings, corpus.source, corpus.target)
    choose_threads(model)
    trainer = Trainer(model, settings.training, 10**9)
    mine = full(batches, 0)
    return lambda: trainer.train_step(next(mine))


def step_together(settings: Settings, corpus: "Corpus", batches: "Batches") -> Step:
    """A step of an ensemble, likewise."""
    import torch

    from qkvtrace.model.device import threads_for
    from qkvtrace.model.stored import build_model
    from qkvtrace.training.ensemble import Ensemble

    ensemble = Ensemble(
        lambda: build_model(settings, corpus.source, corpus.target),
        range(SEEDS),
        settings.training,
        10**9,
        torch.device("cpu"),
    )
    theirs = [full(batches, seed) for seed in ensemble.seeds]

    def take() -> None:
        with threads_for(ensemble.rows.numel()):
            ensemble.train_step([next(each) for each in theirs])

    return take


def step_of_pytorch(settings: Settings, corpus: "Corpus", batches: "Batches") -> Step:
    """A step of PyTorch's modules, likewise."""
    import torch
    from torch import nn

    from qkvtrace.corpus.vocabulary import PAD

    shape = settings.model
    warnings.simplefilter("ignore")  # nn.Transformer's, about an optimisation that it leaves out
    peer = nn.ModuleDict(
        {
            "source": nn.Embedding(len(corpus.source), shape.width),
            "target": nn.Embedding(len(corpus.target), shape.width),
            "source_positions": nn.Embedding(shape.max_positions, shape.width),
            "target_positions": nn.Embedding(shape.max_positions, shape.width),
            "transformer": nn.Transformer(
                shape.width,
                shape.heads,
                shape.layers,
                shape.layers,
                shape.feed_forward,
                shape.dropout,
                batch_first=True,
            ),
            "output": nn.Linear(shape.width, len(corpus.target)),
        }
    )
    optimizer = torch.optim.AdamW(peer.parameters(), settings.training.learning_rate)

    def embed(side: str, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1])
        embedded: torch.Tensor = peer[side](ids) * 8 + peer[f"{side}_positions"](places)
        return nn.functional.dropout(embedded, shape.dropout)

    def take() -> None:
        batch = next(others)
        given, wanted = batch.target[:, :-1], batch.target[:, 1:]
        optimizer.zero_grad()
        out = peer["transformer"](
            embed("source", batch.source),
            embed("target", given),
            tgt_mask=torch.ones(given.shape[1], given.shape[1]).triu(1).bool(),
            src_key_padding_mask=batch.source == PAD,
            memory_key_padding_mask=batch.source == PAD,
        )
        logits = peer["output"](out).flatten(0, 1)
        nn.functional.cross_entropy(logits, wanted.flatten(), ignore_index=PAD).backward()
        nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        optimizer.step()

    others = full(batches, 0)
    return take


if __name__ == "__main__":
    main()
