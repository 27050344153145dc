"""Pairs of sentences, every word with every word."""

from collections.abc import Callable
from statistics import mean
from typing import Any, cast

import pytest
from torch.nn.functional import cosine_similarity

from qkvtrace.errors import UserError
from qkvtrace.studies.answer import Answer, Cell, Heatmap, Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Cell]]]
Named = Callable[[Answer, str], Table]
Build = Callable[..., Study]

APPLE = "we can eat apple"
OTHERS = [APPLE, "we can read bread", "eat bread can we", "apple eat can we"]


@pytest.fixture(scope="module")
def answer(subject: Subject, study: Build) -> Answer:
    return ask(study("sentence_pairs"), subject)


def test_the_articles_pairs_are_compared(answer: Answer, rows: Rows) -> None:
    pictures = [cast(Heatmap, table.picture) for table in answer.tables if table.picture]
    assert [(p.row_title, p.column_title) for p in pictures] == [
        *((APPLE, other) for other in OTHERS),
        (APPLE, "we can eat bread"),
    ]
    kinds = [list(dict.fromkeys(r["vector"] for r in rows(t))) for t in answer.tables if t.picture]
    assert kinds == [["q", "k", "v", "x4", "weights"]] * 4 + [["q", "k", "v"]]
    assert answer.notes == []


@pytest.mark.parametrize("vector", ["q", "k", "v", "x4", "weights"])
def test_each_cell_is_the_cosine_of_two_vectors(
    answer: Answer, subject: Subject, rows: Rows, named: Named, vector: str
) -> None:
    tap = f"decoder.layers.0.cross_attention.{vector}"
    snapshot = subject.observe([APPLE, OTHERS[3]], None, [tap])
    values = snapshot.values[tap]
    values = values if vector == "x4" else values[:, 0]
    found = [row for row in rows(named(answer, "cross_4")) if row["vector"] == vector]
    side = [s.source if vector in ("k", "v") else s.target for s in snapshot.sentences]
    assert len(found) == len(side[0]) * len(side[1])
    for row in found:
        one = values[0, cast(int, row["position"])]
        other = values[1, cast(int, row["other position"])]
        expected = float(cosine_similarity(one, other, dim=0))
        assert row["cosine"] == pytest.approx(expected, abs=1e-5)


def test_a_sentence_is_like_itself_on_the_diagonal(
    answer: Answer, rows: Rows, named: Named
) -> None:
    found = rows(named(answer, "cross_1"))
    cells = {(r["vector"], r["position"], r["other position"]): r["cosine"] for r in found}
    for (vector, i, j), cosine in cells.items():
        assert cosine == pytest.approx(cells[vector, j, i], abs=1e-6)
        if i == j:
            assert cosine == pytest.approx(1, abs=1e-6)


def test_steps_label_queries_and_words_label_keys(answer: Answer, rows: Rows, named: Named) -> None:
    found = rows(named(answer, "cross_1"))
    labels = {kind: [r["word"] for r in found if r["vector"] == kind] for kind in ("q", "v")}
    assert list(dict.fromkeys(labels["q"])) == [
        "1) <sos> → wir",
        "2) wir → konnen",
        "3) konnen → apfel",
        "4) apfel → essen",
        "5) essen → <eos>",
    ]
    assert list(dict.fromkeys(labels["v"])) == ["<sos>", "we", "can", "eat", "apple", "<eos>"]


def test_means_are_those_of_the_cells(answer: Answer, rows: Rows, named: Named) -> None:
    cells = [row for row in rows(named(answer, "cross_4")) if row["vector"] == "k"]
    kinds: dict[str, list[float]] = {}
    for row in cells:
        same_word = row["word"] == row["other word"]
        same_place = row["position"] == row["other position"]
        kind = ("other words", "same word elsewhere")[same_word]
        kind = "same word, same place" if same_word and same_place else kind
        kinds.setdefault(kind, []).append(cast(float, row["cosine"]))
    (row,) = (
        row
        for row in rows(named(answer, "means"))
        if (row["site"], row["other sentence"], row["vector"], row["epoch"])
        == ("cross", OTHERS[3], "k", 3)
    )
    assert len(kinds) == 3
    for kind, cosines in kinds.items():
        assert row[kind] == pytest.approx(mean(cosines), abs=1e-5)
    said = f"k {row['same word elsewhere']:.2f} against {row['other words']:.2f} at epoch 3"
    assert said in answer.says[1]


def test_there_is_no_mean_of_nothing(answer: Answer, rows: Rows, named: Named) -> None:
    for row in rows(named(answer, "means")):
        if row["other sentence"] == APPLE:
            assert row["same word elsewhere"] is None
            assert row["same word, same place"] == pytest.approx(1, abs=1e-6)


def test_nothing_is_said_of_a_sentence_and_itself(subject: Subject, study: Build) -> None:
    pairs = [["we eat bread we", "we eat bread we"]]  # with a word elsewhere
    assert ask(study("sentence_pairs", pairs=pairs), subject).says == []


def test_unknown_sentences_are_replaced_by_the_runs_own(
    subject: Subject, study: Build, named: Named
) -> None:
    pairs = [["he sings", "he reads"], ["he sings", "he sings"]]
    answer = ask(study("sentence_pairs", pairs=pairs), subject)
    picture = cast(Heatmap, named(answer, "cross_2").picture)
    assert picture.row_title == "we want to eat apple"
    assert picture.column_title == "we want to eat bread"
    assert "sentences of its own instead" in answer.notes[0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pairs": [["we", "we", "i"]]}, r"study.pairs: expected pairs of sentences, found \['we'"),
        ({"encoder_pairs": []}, "study.encoder_pairs: expected one or more, found none"),
        ({"head": 2}, "study.head: expected 0 to 1, found 2"),
    ],
)
def test_settings_that_do_not_fit_are_told(
    subject: Subject, study: Build, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask(study("sentence_pairs", **wrong), subject)
