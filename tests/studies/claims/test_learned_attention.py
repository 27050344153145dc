"""Claim k, where it is known what breaks."""

import math
from collections.abc import Callable, Sequence

import pytest

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.settings import InterventionSettings
from qkvtrace.studies.claims.learned_attention import LearnedAttention
from qkvtrace.studies.evidence.verdict import Result

Judge = Callable[..., Result]


@pytest.fixture
def translator(corpus: Corpus) -> Callable[[dict[str, int]], Callable[..., list[str]]]:
    """Translate rightly, but for as many validation sentences as a kind of attention loses."""
    valid = [(list(source), target) for source, target in corpus.splits["valid"]]

    def build(lost: dict[str, int]) -> Callable[..., list[str]]:
        def translate(
            seed: int, epoch: int, change: InterventionSettings, words: Sequence[str]
        ) -> list[str]:
            place = [source for source, _ in valid].index(list(words))
            return ["wrong"] if place < lost.get(change.attention, 0) else valid[place][1]

        return translate

    return build


@pytest.mark.parametrize(
    ("lost", "verdicts"),
    [
        ({"uniform": 5, "first3": 4, "last": 3}, ["holds", "holds", "holds"]),
        ({"uniform": 2, "first3": 5}, ["does not hold", "holds", "does not hold"]),
        ({}, ["does not hold"] * 3),
    ],
)
def test_each_kind_that_loses_more_than_half_breaks_translation(
    judge: Judge,
    translator: Callable[..., Callable[..., list[str]]],
    lost: dict[str, int],
    verdicts: list[str],
) -> None:
    result = judge(LearnedAttention(), translation=translator(lost))
    assert [each.verdict for each in result.findings] == verdicts
    shares = [lost.get(each.part.name, 0) / 5 for each in result.findings]
    assert [each.interval.mean for each in result.findings] == pytest.approx(shares)


def test_a_model_that_breaks_with_any_change_is_not_above_its_control(
    judge: Judge, translator: Callable[..., Callable[..., list[str]]]
) -> None:
    result = judge(
        LearnedAttention(),
        translation=translator({"uniform": 5, "first3": 5, "last": 5, "hard": 5}),
    )
    assert not any(control.exceeded for each in result.findings for control in each.controls)


def test_a_model_that_got_nothing_right_says_nothing(
    judge: Judge, translator: Callable[..., Callable[..., list[str]]]
) -> None:
    result = judge(LearnedAttention(), translation=translator({"learned": 5, "uniform": 5}))
    assert all(math.isnan(value) for value in result.findings[0].values)
    assert result.verdict == "undecided"


def test_what_is_lost_is_a_share_of_what_was_right(
    judge: Judge, translator: Callable[..., Callable[..., list[str]]]
) -> None:
    result = judge(LearnedAttention(), translation=translator({"learned": 2, "uniform": 4}))
    assert result.findings[0].interval.mean == pytest.approx(2 / 3)
