"""Dot products of made-up vectors, and the run's own beside them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.studies.answer import Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Any]]]


def placed(phrase: str, *vector: float) -> dict[str, Any]:
    return {"phrase": phrase, "vector": list(vector), "article": False}


def test_the_articles_two_products(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("dot_products"), subject)
    example, products, _, _ = answer.tables
    found = {(row["phrase"], row["other phrase"]): row for row in rows(products)}
    assert found["eat apple", "eat bread"]["dot product"] == pytest.approx(0.58)
    assert found["eat apple", "read book"]["dot product"] == pytest.approx(0.24)
    assert found["eat apple", "eat bread"]["calculation"] == "0.8·0.7 + 0.1·0.2"
    assert "0.8·0.2 + 0.1·0.8 = 0.24" in answer.says[0]
    from_article = {row["phrase"] for row in rows(example) if row["from the article"] == "yes"}
    assert from_article == {"eat apple", "eat bread", "read book"}


def test_each_placed_phrase_is_nearest_to_the_one_with_its_verb(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    products = rows(ask(study("dot_products"), subject).tables[1])
    phrases = {row["phrase"] for row in products}
    assert len(phrases) == 6
    for phrase in phrases:
        others = [r for r in products if r["phrase"] == phrase != r["other phrase"]]
        best = max(others, key=lambda row: row["dot product"])["other phrase"]
        assert best.split()[0] == phrase.split()[0]


def test_the_runs_cosines_are_of_mean_encoder_outputs(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("dot_products"), subject)
    found = {(r["epoch"], r["phrase"], r["other phrase"]): r for r in rows(answer.tables[3])}
    assert {epoch for epoch, _, _ in found} == {0, 3}
    for epoch in (0, 3):
        alone = [
            subject.observe([text], epoch, ["encoder.output"]).values["encoder.output"][0, 1:-1]
            for text in ("eat apple", "drink beer")
        ]
        one, other = (words.mean(0) for words in alone)
        row = found[epoch, "eat apple", "drink beer"]
        assert row["cosine"] == pytest.approx(
            float(torch.cosine_similarity(one, other, dim=0)), abs=1e-5
        )
        assert row["dot product"] == pytest.approx(float(one @ other), rel=1e-4)
        assert row["share a word"] == "no"
        assert found[epoch, "eat apple", "eat bread"]["share a word"] == "yes"
        assert found[epoch, "read book", "read book"]["cosine"] == pytest.approx(1)
        shared = [
            r["cosine"]
            for (at, a, b), r in found.items()
            if at == epoch and a < b and a.split()[0] == b.split()[0]
        ]
        assert len(shared) == 3
        said = next(line for line in answer.says if f"epoch {epoch}" in line)
        assert f"is {sum(shared) / 3:.2f} where they share a word" in said


def test_unknown_phrases_leave_the_example_and_fall_back_to_probes(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    phrases = [placed("fry fish", 1, 2), placed("fry eggs", 3, 4)]
    answer = ask(study("dot_products", phrases=phrases, pairs=[]), subject)
    assert [row["dot product"] for row in rows(answer.tables[1])] == [5, 11, 11, 25]
    assert {row["phrase"] for row in rows(answer.tables[2])} == {
        "we want to eat apple",
        "we want to eat bread",
    }
    assert "does not know" in answer.notes[0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"phrases": []}, "study.phrases: expected one or more"),
        ({"phrases": [placed("a", 1, 2, 3)]}, "two numbers, found 'a' and .1.0, 2.0, 3.0."),
        ({"phrases": [placed(" ", 1, 2)]}, "study.phrases: expected words"),
        ({"pairs": [["eat apple", "eat soup"]]}, "study.pairs: expected pairs of eat apple"),
        ({"pairs": [["eat apple"]]}, "study.pairs"),
    ],
)
def test_what_does_not_fit_is_told(
    subject: Subject, study: Callable[..., Study], changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask(study("dot_products", **changed), subject)
