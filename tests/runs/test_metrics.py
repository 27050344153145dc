"""metrics.jsonl: one JSON object an epoch."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvtrace.runs.metrics import Metrics, read_metrics, write_metrics

number = st.floats(allow_nan=False)
metrics = st.builds(
    Metrics,
    epoch=st.integers(1),
    step=st.integers(1),
    **dict.fromkeys(
        (
            "train_loss",
            "valid_loss",
            "valid_ppl",
            "exact_match",
            "learning_rate",
            "tokens_per_second",
            "seconds",
        ),
        number,
    ),
)


@given(st.lists(metrics))
def test_metrics_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[Metrics]
) -> None:
    path = tmp_path_factory.mktemp("metrics") / "metrics.jsonl"
    write_metrics(path, epochs)
    assert read_metrics(path) == epochs


def test_a_file_that_is_not_there_has_no_epochs(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "metrics.jsonl") == []


def test_each_line_holds_the_documented_keys_and_a_loss_that_is_no_number_too(
    tmp_path: Path,
) -> None:
    path = tmp_path / "metrics.jsonl"
    values = {"train_loss": math.nan, "valid_loss": 2.0, "valid_ppl": math.exp(2)}
    values |= {"exact_match": 0.25, "learning_rate": 5e-4, "tokens_per_second": 9.0, "seconds": 1.0}
    write_metrics(path, [Metrics(epoch=epoch, step=10 * epoch, **values) for epoch in (1, 2)])
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [list(json.loads(line)) for line in lines] == [["epoch", "step", *values]] * 2
    first, second = read_metrics(path)
    assert math.isnan(first.train_loss)
    assert (second.epoch, second.step, second.valid_loss) == (2, 20, 2.0)
