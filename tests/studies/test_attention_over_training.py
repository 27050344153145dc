"""The weights of one sentence over the epochs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.store import Store
from qkvtrace.studies.answer import Heatmap, Lines, Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Any]]]

TAPS = {
    "encoder_self": "encoder.layers.{}.self_attention.weights",
    "decoder_self": "decoder.layers.{}.self_attention.weights",
    "cross": "decoder.layers.{}.cross_attention.weights",
}


def test_weights_are_those_that_training_recorded(
    subject: Subject, study: Callable[..., Study], run: Run, rows: Rows
) -> None:
    answer = ask(study("attention_over_training", layer=None, head=None, epochs=[0, 2]), subject)
    found = rows(answer.tables[0])
    assert {row["epoch"] for row in found} == {0, 2}
    for epoch in (0, 2):
        recorded = Store(run.snapshots).load(epoch)
        sources = [" ".join(sentence.source[1:-1]) for sentence in recorded.sentences]
        probe = sources.index("we want to eat apple")
        for row in (row for row in found if row["epoch"] == epoch):
            value = recorded.values[TAPS[row["site"]].format(row["layer"])]
            at = probe, row["head"], row["query position"], row["key position"]
            assert row["weight"] == pytest.approx(float(value[at]), abs=1e-5)


def test_a_row_of_weights_sums_to_1(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("attention_over_training", layer=None, head=None), subject)
    sums: dict[tuple[Any, ...], float] = {}
    for row in rows(answer.tables[0]):
        at = row["epoch"], row["site"], row["layer"], row["head"], row["query"]
        if row["site"] != "encoder_self":  # where the queries' labels differ
            sums[at] = sums.get(at, 0) + row["weight"]
    assert len(sums) == 2 * 2 * 2 * 2 * 5  # epochs, sites, layers, heads, steps
    assert list(sums.values()) == pytest.approx([1] * len(sums), abs=1e-5)


def test_epochs_are_the_first_each_tenth_and_the_last(
    run: Run, study: Callable[..., Study], rows: Rows
) -> None:
    subject = Subject(run, torch.device("cpu"))
    found = rows(ask(study("attention_over_training"), subject).tables[0])
    assert list(dict.fromkeys(row["epoch"] for row in found)) == [1, 3]
    subject.epochs = [3]  # no model was kept
    answer = ask(study("attention_over_training"), subject)
    assert {row["epoch"] for row in rows(answer.tables[0])} == {3}
    assert {row["epoch"] for row in rows(answer.tables[1])} == {3}
    assert all(said.count("epoch") == 1 for said in answer.says)


def test_panels_of_a_place_stand_together_and_spread_is_drawn_over_all_epochs(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    weights, spread = ask(study("attention_over_training"), subject).tables
    assert isinstance(weights.picture, Heatmap)
    assert isinstance(spread.picture, Lines)
    panels = [(row["site"], row["epoch"]) for row in rows(weights)]
    assert list(dict.fromkeys(panels)) == [
        (site, epoch) for site in ("encoder_self", "decoder_self", "cross") for epoch in (1, 3)
    ]
    assert {row["epoch"] for row in rows(spread)} == {0, 1, 2, 3}
    for row in rows(spread):
        assert 0 < row["spread"] < 1


def test_the_spread_is_that_of_the_weights(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("attention_over_training", site="cross", epochs=[3]), subject)
    found = torch.tensor([row["weight"] for row in rows(answer.tables[0])]).view(-1, 7)
    entropy = -(found * found.log()).sum(-1) / torch.tensor(7.0).log()
    (spread,) = (row["spread"] for row in rows(answer.tables[1]) if row["epoch"] == 3)
    assert spread == pytest.approx(float(entropy.mean()), abs=1e-5)
    assert len(answer.says) == 1
    assert f"{spread:.2f} at epoch 3" in answer.says[0]


def test_another_corpus_falls_back(subject: Subject, study: Callable[..., Study]) -> None:
    answer = ask(study("attention_over_training", sentence="two dogs run"), subject)
    assert "“two dogs run”" in answer.notes[0]
    assert "“we want to eat apple”" in answer.tables[0].title


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epochs": [1, 9]}, "study.epochs: expected some of 0, 1, 2, 3, found 9"),
        ({"site": "decoder"}, "study.site: expected one of encoder_self"),
        ({"head": 2}, "study.head: expected 0 to 1, found 2"),
    ],
)
def test_what_does_not_fit_is_told(
    subject: Subject, study: Callable[..., Study], changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask(study("attention_over_training", **changed), subject)
