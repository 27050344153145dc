"""How long a training step and a whole training take on this machine: make bench.

Each is measured in turn with something that everybody has: the step with the same step of PyTorch's
own `nn.Transformer` and `torch.optim.AdamW`, the whole training with `import torch`. Their ratios
hold where milliseconds drift.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from omegaconf import DictConfig

from qkvtrace.command import command, composed, plain
from qkvtrace.conversion import from_config
from qkvtrace.settings import BenchmarkSettings, Settings


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
        ours, theirs = steps(settings, Path(folder))
    seconds = [(training[0], importing[0]) for training, importing in pairs]
    report("a whole training, 30 epochs", "s", seconds, "import torch")
    print(f"its peak memory: {max(training[1] for training, _ in pairs):.0f} MB")

    milliseconds = [
        (timed(ours, benchmark.steps), timed(theirs, benchmark.steps))
        for _ in range(1 + benchmark.repeats)
    ][1:]
    report("a training step, 8 sentences", "ms", milliseconds, "nn.Transformer")


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


def timed(step: Callable[[], None], count: int) -> float:
    """The median of `count` steps, in milliseconds."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def steps(settings: Settings, outputs: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    """A training step of ours and one of PyTorch's modules, each with the making of its batch."""
    import torch
    from torch import nn

    from qkvtrace.corpus.batches import Batch, Batches
    from qkvtrace.corpus.prepared import prepare
    from qkvtrace.corpus.vocabulary import PAD
    from qkvtrace.model.device import choose_threads
    from qkvtrace.model.stored import build_model
    from qkvtrace.training.trainer import Trainer

    corpus = prepare(settings.data, outputs / "prepared")
    batches = Batches(
        corpus.splits["train"],
        corpus.source,
        corpus.target,
        size=settings.training.batch_size,
        device=torch.device("cpu"),
    )

    def forever() -> Iterator[Batch]:
        epoch = 0
        while True:
            epoch += 1
            for batch in batches.shuffled(0, epoch):
                if len(batch.source) == batches.size:  # an epoch's last batch may be smaller
                    yield batch

    model = build_model(settings, corpus.source, corpus.target)
    choose_threads(model)
    trainer = Trainer(model, settings.training, 10**9)
    mine, others = forever(), forever()

    def ours() -> None:
        trainer.train_step(next(mine))

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

    def theirs() -> None:
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

    return ours, theirs


if __name__ == "__main__":
    main()
