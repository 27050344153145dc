"""Two trainings on two devices, side by side, as Markdown."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

import torch

from qkvtrace.runs.metrics import Metrics
from qkvtrace.settings import GpuSettings

LOSSES = ("train_loss", "valid_loss")


def device_report(
    settings: GpuSettings, overrides: Sequence[str], trainings: Sequence[Sequence[Metrics]]
) -> str:
    """What was trained where, how far the losses lie apart, and how long a step took.

    A step's time is its epoch's, the median over epochs, so that warming up does not count.
    """
    first, second = trainings
    names = settings.devices
    lines = [
        "# The same training on two devices",
        "",
        f"Written by `make gpu` on {datetime.now(UTC):%Y-%m-%d}, PyTorch {torch.__version__}, "
        f"without dropout. Overrides: {' '.join(overrides) or 'none'}.",
        "",
        f"- {names[0]}: {_described(names[0])}",
        f"- {names[1]}: {_described(names[1])}",
        f"- largest difference of a loss: {largest_difference(first, second):.2g} nats a token "
        f"(tolerance {settings.tolerance:g})",
        "",
        f"| | {names[0]} | {names[1]} |",
        "|---|---:|---:|",
    ]
    rows = {
        "seconds of training": [f"{sum(m.seconds for m in t):.2f}" for t in trainings],
        "ms a step": [f"{_step_milliseconds(t):.2f}" for t in trainings],
        "tokens a second": [f"{median(m.tokens_per_second for m in t):,.0f}" for t in trainings],
        "final train_loss": [f"{t[-1].train_loss:.4f}" for t in trainings],
        "final valid_loss": [f"{t[-1].valid_loss:.4f}" for t in trainings],
        "final exact_match": [f"{t[-1].exact_match:.3f}" for t in trainings],
    }
    lines += [f"| {name} | {' | '.join(values)} |" for name, values in rows.items()]
    return "\n".join(lines) + "\n"


def largest_difference(first: Sequence[Metrics], second: Sequence[Metrics]) -> float:
    """The largest absolute difference of any epoch's training or validation loss."""
    return max(
        abs(getattr(a, loss) - getattr(b, loss))
        for a, b in zip(first, second, strict=True)
        for loss in LOSSES
    )


def _step_milliseconds(training: Sequence[Metrics]) -> float:
    steps = [m.step for m in training]
    counts = [after - before for before, after in zip([0, *steps], steps, strict=False)]
    return median(1000 * m.seconds / n for m, n in zip(training, counts, strict=True))


def _described(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{platform.machine()}, {torch.get_num_threads()} threads to be had"
