"""One number for each vector."""

from collections.abc import Callable
from typing import cast

import pytest
import torch

from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Cell]]]
Named = Callable[[Answer, str], Table]
Build = Callable[..., Study]

APPLE, BREAD = "we want to eat apple", "we want to eat bread"
VECTORS = ("q", "k", "v", "x1")
ENCODER = "encoder.layers.0.self_attention"


@pytest.fixture(scope="module")
def answer(subject: Subject, study: Build) -> Answer:
    return ask(study("one_number"), subject)


def vectors(subject: Subject, epoch: int) -> torch.Tensor:
    """Of "eat", (vectors, sentences, K)."""
    values = subject.observe([APPLE, BREAD], epoch, [f"{ENCODER}.*"]).values
    return torch.stack([values[f"{ENCODER}.{vector}"][:, 0, 4] for vector in VECTORS])


def test_numbers_are_places_on_the_first_component(
    answer: Answer, subject: Subject, rows: Rows, named: Named
) -> None:
    x = torch.stack([vectors(subject, epoch) for epoch in range(4)]).double()  # (E, 4, 2, K)
    x = x - x.flatten(0, 2).mean(0)
    _, lengths, axes = torch.linalg.svd(x.flatten(0, 2), full_matrices=False)
    expected = x @ axes[0]
    found = rows(named(answer, "numbers"))
    assert len(found) == 4 * 4 * 2
    at = torch.tensor(
        [
            [
                [
                    next(
                        cast(float, row["number"])
                        for row in found
                        if (row["epoch"], row["vector"], row["sentence"]) == (epoch, vector, text)
                    )
                    for text in (APPLE, BREAD)
                ]
                for vector in VECTORS
            ]
            for epoch in range(4)
        ]
    ).double()
    sign = torch.sign(at[0, 0, 0] * expected[0, 0, 0])
    torch.testing.assert_close(at * sign, expected, rtol=0, atol=1e-4)
    share = float(lengths[0] ** 2 / (lengths**2).sum())
    assert f"holds {share:.0%}".replace("%", " %") in answer.says[0]


def test_products_are_early_and_late(
    answer: Answer, subject: Subject, rows: Rows, named: Named
) -> None:
    found = rows(named(answer, "products"))
    assert [(row["epoch"], row["sentence"]) for row in found] == [
        (1, APPLE),
        (1, BREAD),
        (3, APPLE),
        (3, BREAD),
    ]
    numbers = {
        (row["epoch"], row["sentence"], row["vector"]): cast(float, row["number"])
        for row in rows(named(answer, "numbers"))
    }
    agreeing = 0
    for row in found:
        place = (row["epoch"], row["sentence"])
        q, k, v = (numbers[*place, vector] for vector in ("q", "k", "v"))
        assert row["x1"] == numbers[*place, "x1"]
        assert row["q × k"] == pytest.approx(q * k)
        assert row["q × k × v"] == pytest.approx(q * k * v)
        whole = vectors(subject, cast(int, row["epoch"]))[:, (APPLE, BREAD).index(str(place[1]))]
        assert row["q · k, whole vectors"] == pytest.approx(float(whole[0] @ whole[1]), abs=1e-4)
        agreeing += q * k * float(whole[0] @ whole[1]) > 0
    assert f"in {agreeing} of 4 cases" in answer.says[1]


def test_one_epoch_and_a_target_word_will_do(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    changed = {"epochs": [0], "site": "decoder_self", "word": "essen", "layer": 1, "head": 1}
    answer = ask(study("one_number", **changed), subject)
    assert len(named(answer, "products").rows) == 2
    assert {row["epoch"] for row in rows(named(answer, "numbers"))} == {0}
    assert answer.notes == []


def test_a_word_that_does_not_stand_there_is_replaced(subject: Subject, study: Build) -> None:
    answer = ask(study("one_number", word="sing"), subject)
    assert answer.notes == ["none of sing stands in the sentences: want is followed"]
