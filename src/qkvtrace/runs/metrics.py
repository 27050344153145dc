"""metrics.jsonl: one JSON object an epoch."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from qkvtrace.errors import UserError
from qkvtrace.runs import files


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What an epoch came to.

    Losses are in nats a target token: train_loss the objective as it was trained (with dropout and
    label smoothing), valid_loss plain cross-entropy in eval mode, valid_ppl its exponential.
    exact_match is a share from 0 to 1. seconds, and target tokens_per_second, are of the training
    steps alone.
    """

    epoch: int
    step: int
    train_loss: float
    valid_loss: float
    valid_ppl: float
    exact_match: float
    learning_rate: float
    tokens_per_second: float
    seconds: float


def read_metrics(path: Path) -> list[Metrics]:
    """The epochs so far, oldest first; none if the file is not there yet.

    Raises UserError if it is damaged.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Metrics(**json.loads(line)) for line in lines]
    except (TypeError, ValueError):
        raise UserError(
            f"expected an epoch's metrics a line, found a damaged file: {path}"
        ) from None


def write_metrics(path: Path, epochs: list[Metrics]) -> None:
    """Replace the file as a whole: a few hundred short lines, and never half of one."""
    files.write_text(path, "".join(json.dumps(asdict(metrics)) + "\n" for metrics in epochs))
