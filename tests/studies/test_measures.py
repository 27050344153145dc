"""Entropy, norms and scores of each head, over training."""

import math
from collections.abc import Callable
from itertools import product
from statistics import mean, pstdev
from typing import Any

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.snapshots.sites import SITES
from qkvtrace.studies.answer import Answer, Cell, Lines, Table
from qkvtrace.studies.study import Study, ask
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.curves import curves

Rows = Callable[[Table], list[dict[str, Cell]]]
Named = Callable[[Answer, str], Table]
Build = Callable[..., Study]

TEXTS = ["we eat apple", "i want to eat apple"]  # of different lengths: there is padding


@pytest.fixture(scope="module")
def answer(subject: Subject, study: Build) -> Answer:
    return ask(study("measures", sentences=TEXTS), subject)


def alone(subject: Subject, text: str, epoch: int, tap: str) -> torch.Tensor:
    """Of one sentence by itself, so that there is no padding: (heads, positions, ...)."""
    return subject.observe([text], epoch, [tap]).values[tap][0]


def test_there_is_a_row_for_each_head_at_each_epoch(
    answer: Answer, rows: Rows, named: Named
) -> None:
    places = set(product((site.name for site in SITES), (0, 1), (0, 1), range(4)))
    for name, each in (("entropy", 1), ("norms", 3), ("scores", 3)):
        found = rows(named(answer, name))
        assert {(r["site"], r["layer"], r["head"], r["epoch"]) for r in found} == places
        assert len(found) == each * len(places)


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
@pytest.mark.parametrize("head", [(0, 1), (1, 0)])
def test_measures_are_means_over_words_and_not_over_padding(
    answer: Answer, subject: Subject, rows: Rows, named: Named, site: Any, head: tuple[int, int]
) -> None:
    layer, number = head
    epoch = 2

    def row(name: str, **of: str) -> dict[str, Cell]:
        wanted = {"site": site.name, "layer": layer, "head": number, "epoch": epoch, **of}
        (found,) = (r for r in rows(named(answer, name)) if wanted.items() <= r.items())
        return found

    entropies, equal, scores = [], [], []
    for text in TEXTS:
        weights = alone(subject, text, epoch, site.tap(layer, "weights"))[number]
        for t, line in enumerate(weights.tolist()):
            entropies.append(-sum(w * math.log(w) for w in line if w > 0))
            equal.append(math.log(t + 1 if site.name == "decoder_self" else len(line)))
        inside = alone(subject, text, epoch, site.tap(layer, "scores"))[number]
        scores += [score for score in inside.flatten().tolist() if score > -math.inf]
    assert row("entropy")["entropy"] == pytest.approx(mean(entropies), abs=1e-4)
    assert row("entropy")["of equal weights"] == pytest.approx(mean(equal), abs=1e-5)
    for measure, expected in (
        ("min", min(scores)),
        ("max", max(scores)),
        ("standard deviation", pstdev(scores)),
    ):
        assert row("scores", measure=measure)["score"] == pytest.approx(expected, abs=1e-4)
    for vector in ("q", "k", "v"):
        tap = site.tap(layer, vector)
        norms = [alone(subject, text, epoch, tap)[number].norm(dim=-1) for text in TEXTS]
        expected = float(torch.cat(norms).mean())
        assert row("norms", vector=vector)["length"] == pytest.approx(expected, abs=1e-4)


def test_it_says_where_each_site_began_and_ended(answer: Answer, rows: Rows, named: Named) -> None:
    course = {
        (row["site"], row["epoch"]): row["entropy"]
        for row in rows(named(answer, "entropy"))
        if (row["layer"], row["head"]) == (0, 0)
    }
    for site, line in zip(SITES, answer.says, strict=True):
        now, then = course[site.name, 3], course[site.name, 0]
        assert f"{now:.2f} nats at epoch 3 ({then:.2f} at epoch 0)" in line


def test_without_sentences_the_runs_probes_are_measured(subject: Subject, study: Build) -> None:
    answer = ask(study("measures", epochs=[3], site="cross", layer=1, head=0), subject)
    assert "15 sentences" in answer.tables[0].title
    assert [len(table.rows) for table in answer.tables] == [1, 3, 3]
    (line,) = answer.says
    assert "epoch 0" not in line


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"site": "middle"}, "study.site: expected one of encoder_self, decoder_self, cross"),
        ({"layer": 2}, "study.layer: expected 0 to 1, found 2"),
        ({"sentences": []}, "study.sentences: expected one or more, found none"),
    ],
)
def test_settings_that_do_not_fit_are_told(
    subject: Subject, study: Build, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask(study("measures", **wrong), subject)


def test_curves_are_few_pictures_whatever_the_size() -> None:
    one, heads = [(0, 0)], [(0, 0), (0, 1), (1, 0), (1, 1)]

    def drawn(lines: Lines) -> tuple[str, str | None, tuple[str, ...]]:
        return lines.colour, lines.dash, lines.panels

    assert drawn(curves("y", "", one)) == ("site", None, ())
    assert drawn(curves("y", "", [(0, 0), (1, 0)])) == ("site", None, ("layer",))
    assert drawn(curves("y", "", heads)) == ("head", None, ("site", "layer"))
    assert drawn(curves("y", "", one, "vector")) == ("vector", None, ("site",))
    assert drawn(curves("y", "", heads, "vector")) == ("vector", "head", ("site", "layer"))
