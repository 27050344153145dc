"""The attention of one sentence, head by head."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.runs.folder import Run
from qkvtrace.studies.answer import Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Any]]]

TAP = "encoder.layers.{}.self_attention.weights"


def recorded(subject: Subject, epoch: int) -> dict[tuple[int, int], torch.Tensor]:
    snapshot = subject.observe(["we want to eat apple"], epoch, [TAP.format("*")])
    return {
        (layer, head): snapshot.values[TAP.format(layer)][0, head]
        for layer in (0, 1)
        for head in (0, 1)
    }


def test_a_panel_for_each_head(subject: Subject, study: Callable[..., Study], rows: Rows) -> None:
    table = ask(study("attention_heads"), subject).tables[0]
    expected = recorded(subject, 3)
    found = rows(table)
    assert len(found) == 4 * 7 * 7
    for row in found:
        weight = expected[row["layer"], row["head"]][row["query position"], row["key position"]]
        assert row["weight"] == pytest.approx(float(weight), abs=1e-6)
    assert [row["key"] for row in found[:7]] == [
        "<sos>",
        "we",
        "want",
        "to",
        "eat",
        "apple",
        "<eos>",
    ]


def test_habits_are_mean_weights(subject: Subject, study: Callable[..., Study], rows: Rows) -> None:
    found = rows(ask(study("attention_heads"), subject).tables[1])
    assert [row["epoch"] for row in found] == [0] * 4 + [3] * 4 + [None]
    for row in found[:-1]:
        weights = recorded(subject, row["epoch"])[row["layer"], row["head"]]
        own = [float(weights[i, i]) for i in range(7)]
        before = [float(weights[i, i - 1]) for i in range(1, 7)]
        after = [float(weights[i, i + 1]) for i in range(6)]
        assert row["on its own position"] == pytest.approx(sum(own) / 7, abs=1e-5)
        assert row["on the one before"] == pytest.approx(sum(before) / 6, abs=1e-5)
        assert row["on the one after"] == pytest.approx(sum(after) / 6, abs=1e-5)
        assert row["on the first"] == pytest.approx(float(weights[:, 0].mean()), abs=1e-5)
        assert row["on the last"] == pytest.approx(float(weights[:, 6].mean()), abs=1e-5)
    equal = found[-1]
    assert equal["spread"] == pytest.approx(1)
    assert equal["on its own position"] == equal["on the last"] == pytest.approx(1 / 7)


def test_the_most_concentrated_and_the_most_different_heads_are_named(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("attention_heads"), subject)
    last = [row for row in rows(answer.tables[1]) if row["epoch"] == 3]
    low = min(last, key=lambda row: row["spread"])
    assert (
        f"{low['spread']:.2f} in layer {low['layer']}, head {low['head']}, the most concentrated"
        in answer.says[1]
    )
    weights = recorded(subject, 3)
    apart = [float((weights[layer, 0] - weights[layer, 1]).abs().sum() / 2 / 7) for layer in (0, 1)]
    layer = int(apart[1] > apart[0])
    assert f"layer {layer}, head 0 and head 1 differ most" in answer.says[2]
    assert f"{round(100 * apart[layer])} % of its weight" in answer.says[2]


def test_a_single_head_at_the_decoder(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("attention_heads", site="decoder_self", layer=1, head=0), subject)
    assert len(answer.says) == 2
    found = rows(answer.tables[0])
    assert all(r["weight"] == 0 for r in found if r["key position"] > r["query position"])
    assert found[0]["query"] == "1) <sos> → wir"
    equal = rows(answer.tables[1])[-1]
    assert equal["spread"] == pytest.approx(1)
    assert equal["on the first"] == pytest.approx(sum(1 / n for n in range(1, 6)) / 5)
    assert equal["on the one after"] == 0


def test_one_epoch_is_enough(run: Run, study: Callable[..., Study], rows: Rows) -> None:
    subject = Subject(run, torch.device("cpu"))
    subject.epochs = [3]
    answer = ask(study("attention_heads"), subject)
    assert {row["epoch"] for row in rows(answer.tables[1])} == {3, None}


def test_what_does_not_fit_is_told(subject: Subject, study: Callable[..., Study]) -> None:
    for changed in ({"site": "x"}, {"layer": 2}, {"epoch": 4}):
        with pytest.raises(UserError, match=f"study.{next(iter(changed))}: expected"):
            ask(study("attention_heads", **changed), subject)
