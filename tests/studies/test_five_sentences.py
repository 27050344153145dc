"""Five sentences that begin alike."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, cast

import pytest
import torch
from torch.nn.functional import cosine_similarity

from qkvtrace.errors import UserError
from qkvtrace.studies.answer import Answer, Cell, Cloud, Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Cell]]]
Named = Callable[[Answer, str], Table]
Build = Callable[..., Study]

TEXTS = [f"i can eat {what}" for what in ("apple", "bread", "book", "newspaper", "apple book")]
ENCODER = "encoder.layers.0.self_attention"
CROSS = "decoder.layers.0.cross_attention"
TAPS = {
    ("encoder", "q"): f"{ENCODER}.q",
    ("encoder", "x1"): f"{ENCODER}.x1",
    ("encoder", "x4"): f"{ENCODER}.x4",
    ("encoder", "final output"): "encoder.output",
    ("cross-attention", "q"): f"{CROSS}.q",
    ("cross-attention", "v"): f"{CROSS}.v",
    ("cross-attention", "x4"): f"{CROSS}.x4",
    ("cross-attention", "logits"): "logits",
}


@pytest.fixture(scope="module")
def answer(subject: Subject, study: Build) -> Answer:
    return ask(study("five_sentences"), subject)


def test_the_articles_sentences_are_translated(
    answer: Answer, subject: Subject, rows: Rows, named: Named
) -> None:
    found = rows(named(answer, "translations"))
    assert [row["sentence"] for row in found] == TEXTS
    assert [row["in training"] for row in found] == ["yes", "yes", "no", "no", "no"]
    targets = {" ".join(target) for _, target in subject.corpus.splits["train"]}
    for row in found:
        assert row["translation"] == str(subject.translate([cast(str, row["sentence"])])[0])
        assert row["a translation in training"] == ("no", "yes")[row["translation"] in targets]
    assert answer.notes == []


def test_points_are_words_of_the_source_and_steps_of_the_decoder(
    answer: Answer, rows: Rows, named: Named
) -> None:
    for name, kinds in (
        ("encoder", {kind: {"can", "eat"} for kind in ("q", "k", "v", "x1", "x4", "final output")}),
        (
            "cross_attention",
            {
                **{kind: {"step 1", "step 3"} for kind in ("q", "x4", "logits")},
                **{kind: {"can", "eat"} for kind in ("k", "v")},
            },
        ),
    ):
        table = named(answer, name)
        found = rows(table)
        for kind, places in kinds.items():
            mine = [row for row in found if row["vector"] == kind]
            assert {(row["sentence"], row["place"]) for row in mine} == {
                (text, place) for text in TEXTS for place in places
            }
            assert len({row["variance shown"] for row in mine}) == 1
            assert 0 < cast(float, mine[0]["variance shown"]) <= 1 + 1e-6
        assert cast(Cloud, table.picture).panels == ("vector", "variance shown")
    labels = {row["label"] for row in found if row["place"] == "step 1"}
    assert all(str(label).startswith("1) <sos> → ") for label in labels)


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("kind", TAPS, ids=" ".join)
def test_distances_are_means_over_pairs_and_places(
    answer: Answer, subject: Subject, rows: Rows, named: Named, kind: tuple[str, str], epoch: int
) -> None:
    part, vector = kind
    values = subject.observe(TEXTS, epoch, [TAPS[kind]]).values[TAPS[kind]]
    if values.dim() == 4:
        values = values[:, 0]
    places = [2, 3] if part == "encoder" or vector == "v" else [0, 2]
    expected = torch.stack(
        [
            1 - cosine_similarity(values[i, place], values[j, place], dim=0)
            for place in places
            for i, j in combinations(range(5), 2)
        ]
    ).mean()
    (row,) = (
        row
        for row in rows(named(answer, "distances"))
        if (row["part"], row["vector"], row["epoch"]) == (part, vector, epoch)
    )
    assert row["distance"] == pytest.approx(float(expected), abs=1e-5)


def test_what_the_first_layer_cannot_know_is_said_to_be_the_same(
    answer: Answer, subject: Subject, study: Build
) -> None:
    (said,) = (line for line in answer.says if line.startswith("Not learned"))
    assert "encoder q, encoder k" in said
    assert "x1" not in said
    later = ask(study("five_sentences", layer=1), subject)
    assert not any(line.startswith("Not learned") for line in later.says)


def test_one_sentence_has_nothing_to_be_compared_with(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    answer = ask(study("five_sentences", sentences=TEXTS[:1], steps=[1, 99]), subject)
    assert named(answer, "distances").rows == []
    assert {row["place"] for row in rows(named(answer, "cross_attention"))} == {
        "can",
        "eat",
        "step 1",
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": [0]}, "study.steps: expected 1 or more, found 0"),
        ({"steps": []}, "study.steps: expected one or more, found none"),
        ({"layer": 5}, "study.layer: expected 0 to 1, found 5"),
    ],
)
def test_settings_that_do_not_fit_are_told(
    subject: Subject, study: Build, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask(study("five_sentences", **wrong), subject)


def test_other_words_and_sentences_are_found_in_other_corpora(
    subject: Subject, study: Build, rows: Rows, named: Named
) -> None:
    answer = ask(study("five_sentences", sentences=["he sings"], words=["sings"]), subject)
    assert len(answer.notes) == 2
    (row,) = rows(named(answer, "translations"))
    assert row["sentence"] == "we want to eat apple"
