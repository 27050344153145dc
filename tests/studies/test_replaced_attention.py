"""Translations with attention replaced."""

from collections.abc import Callable
from typing import Any

import pytest

from qkvtrace.errors import UserError
from qkvtrace.runs.metrics import read_metrics
from qkvtrace.settings import InterventionSettings
from qkvtrace.studies.answer import Heatmap, Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject

Rows = Callable[[Table], list[dict[str, Any]]]

SITES = ("all three", "encoder_self", "decoder_self", "cross")
KINDS = ("uniform", "first3", "last", "hard")


def one_by_one(subject: Subject, change: InterventionSettings) -> list[list[str]]:
    """Each pair's translation, translated alone."""
    sources = [" ".join(source) for source, _ in subject.corpus.splits["valid"]]
    return [subject.translate([text], change)[0].target for text in sources]


def test_each_kind_at_all_sites_and_at_each(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    translations, exact = ask(study("replaced_attention"), subject).tables
    places = list(
        dict.fromkeys((row["replaced at"], row["attention"]) for row in rows(translations))
    )
    assert places == [("all three", "learned"), *((s, kind) for s in SITES for kind in KINDS)]
    assert len(rows(translations)) == 3 * len(places)
    cells = {(row["replaced at"], row["attention"]) for row in rows(exact)}
    assert cells == {(site, kind) for site in SITES for kind in ("learned", *KINDS)}
    assert isinstance(exact.picture, Heatmap)


@pytest.mark.parametrize(
    ("site", "kind"), [("all three", "uniform"), ("cross", "hard"), ("encoder_self", "last")]
)
def test_exact_matches_are_those_of_sentences_translated_one_by_one(
    subject: Subject, study: Callable[..., Study], rows: Rows, site: str, kind: str
) -> None:
    answer = ask(study("replaced_attention", attention=[kind]), subject)
    found = {(row["replaced at"], row["attention"]): row for row in rows(answer.tables[1])}
    change = InterventionSettings(attention=kind, site=None if site == "all three" else site)
    pairs = subject.corpus.splits["valid"]
    made = one_by_one(subject, change)
    exact = sum(words == wanted for words, (_, wanted) in zip(made, pairs, strict=True))
    row = found[site, kind]
    assert (row["exact"], row["sentences"]) == (exact, 36)
    assert row["share"] == exact / 36
    assert row["different translations"] == len(set(map(tuple, made)))


def test_as_learned_is_the_validation_of_training(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    answer = ask(study("replaced_attention"), subject)
    learned = [row for row in rows(answer.tables[1]) if row["attention"] == "learned"]
    share = read_metrics(subject.run.metrics)[-1].exact_match
    assert share > 0
    assert {row["share"] for row in learned} == {share}
    assert answer.says[0].startswith(
        f"As learned, {round(share * 36)} are translated exactly of 36"
    )
    assert "those of training" in answer.says[0]


def test_translations_are_compared_with_the_learned(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    found = rows(ask(study("replaced_attention"), subject).tables[0])
    learned = {r["sentence"]: r["translation"] for r in found if r["attention"] == "learned"}
    assert list(learned) == ["we want to eat apple", "i can drink beer", "we read newspaper"]
    assert {row["as learned"] for row in found} == {"yes", "no"}
    for row in found:
        if "…" not in row["translation"]:
            same = row["translation"] == learned[row["sentence"]]
            assert row["as learned"] == ("yes" if same else "no")


def test_in_one_layer_and_for_a_part_of_the_sentences(
    subject: Subject, study: Callable[..., Study], rows: Rows
) -> None:
    settings = {"attention": ["last"], "layer": 1, "head": 0, "limit": 5}
    answer = ask(study("replaced_attention", **settings), subject)
    change = InterventionSettings(attention="last", site="cross", layer=1, head=0)
    expected = [str(each) for each in subject.translate(["we read newspaper"], change)]
    (row,) = [
        row
        for row in rows(answer.tables[0])
        if row["replaced at"] == "cross" and row["sentence"] == "we read newspaper"
    ]
    assert [row["translation"]] == expected
    assert {row["sentences"] for row in rows(answer.tables[1])} == {5}
    assert "the first 5 of 36 validation sentences" in answer.says[0]
    assert "in layer 1, head 0" in answer.tables[0].title


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"attention": ["learned"]}, "study.attention: expected one or more kinds"),
        ({"attention": ["first0"]}, "attention: expected one of learned, uniform"),
        ({"layer": 2}, "study.layer: expected 0 to 1, found 2"),
        ({"limit": 0}, "study.limit: expected 1 or more"),
    ],
)
def test_what_does_not_fit_is_told(
    subject: Subject, study: Callable[..., Study], changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask(study("replaced_attention", **changed), subject)
