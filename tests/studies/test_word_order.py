"""Known words in an order that was never seen."""

from collections.abc import Callable
from typing import cast

import pytest
from torch.nn.functional import cosine_similarity

from qkvtrace.studies import word_order
from qkvtrace.studies.answer import Cell, Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Cell]]]
Build = Callable[..., Study]

TEXTS = ["apple eat can we", "eat apple can i", "eat drink read we can", "we beer can read"]


def test_each_sentence_has_its_translation(subject: Subject, study: Build, rows: Rows) -> None:
    answer = ask(study("word_order"), subject)
    found = rows(answer.tables[0])
    assert [row["sentence"] for row in found] == TEXTS
    known = {" ".join(target) for _, target in subject.corpus.splits["train"]}
    for row, translation in zip(found, subject.translate(TEXTS), strict=True):
        assert row["translation"] == str(translation)
        assert row["in training"] == "no"
        assert row["a translation in training"] == ("no", "yes")[str(translation) in known]
    learned = sum(row["a translation in training"] == "yes" for row in found)
    assert answer.says[0].startswith(f"{learned} of 4 translations")


def test_the_nearest_is_the_most_alike_of_the_training_sentences(
    subject: Subject, study: Build, rows: Rows
) -> None:
    train = [" ".join(source) for source, _ in subject.corpus.splits["train"]]
    output = {}
    for text in [*train, *TEXTS]:  # each alone: without padding
        output[text] = subject.observe([text], None, ["encoder.output"]).values["encoder.output"]
    means = {text: value[0, 1:-1].mean(0) for text, value in output.items()}
    for row in rows(ask(study("word_order"), subject).tables[0]):
        text, nearest = cast(str, row["sentence"]), cast(str, row["nearest in training"])
        alike = {t: float(cosine_similarity(means[text], means[t], dim=0)) for t in train}
        assert abs(alike[nearest] - max(alike.values())) < 1e-5
        assert abs(alike[nearest] - cast(float, row["cosine"])) < 1e-5
        same = sorted(nearest.split()) == sorted(text.split())
        assert row["same words"] == ("no", "yes")[same]
        answered = " ".join(subject.reference(nearest) or ()) == row["translation"]
        assert row["translated as the nearest"] == ("no", "yes")[answered]


def test_a_training_sentence_is_compared_with_the_others(
    subject: Subject, study: Build, rows: Rows
) -> None:
    answer = ask(study("word_order", sentences=["we eat apple"]), subject)
    (row,) = rows(answer.tables[0])
    assert row["in training"] == "yes"
    assert row["nearest in training"] != "we eat apple"
    assert row["nearest in training"] in {" ".join(s) for s, _ in subject.corpus.splits["train"]}


def test_large_corpora_are_compared_in_part(
    subject: Subject, study: Build, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_order, "COMPARED", 1)
    found = rows(ask(study("word_order"), subject).tables[0])
    assert {row["nearest in training"] for row in found} == {"i want to eat bread"}


def test_where_every_training_sentence_is_asked_for_each_is_its_own_nearest(
    subject: Subject, study: Build, rows: Rows
) -> None:
    every = [" ".join(source) for source, _ in subject.corpus.splits["train"]]
    found = rows(ask(study("word_order", sentences=every), subject).tables[0])
    assert all(row["nearest in training"] == row["sentence"] for row in found)
