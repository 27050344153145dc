"""Claim i: a look-up, soft and hard."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.sites import SITES
from qkvtrace.studies.claims import dictionary
from qkvtrace.studies.claims.dictionary import (
    KEYS,
    SHARPNESS,
    Dictionary,
    bound,
    error,
    excess,
    same,
    sharpness,
)
from qkvtrace.studies.claims.tools.drawn import draw
from qkvtrace.studies.evidence.laboratory import AS_LEARNED, UNTRAINED, Laboratory, Words
from qkvtrace.studies.evidence.verdict import Finding, Result, judged

Judge = Callable[..., Result]


def test_error_by_hand() -> None:
    scores = torch.tensor([[1.0, 3, 2], [5, 0, 4]])
    values = torch.tensor([[[0.0, 3], [3, 0], [0, 0]], [[2.0, 0], [0, 0], [0, 4]]])
    # Equal weights give (1, 1), away from (3, 0) by √5, and (2/3, 4/3), away from (2, 0) by 4√2/3.
    expected = torch.tensor([math.sqrt(5) / 3, math.sqrt(32) / 3 / 4])
    assert_close(error(scores, values, 0), expected)
    # The leads are 1: the scores stay as they are when βg is 1.
    weights = torch.tensor([1.0, 3, 2]).softmax(-1)
    x1 = weights @ values[0]
    assert_close(error(scores, values, 1)[0], (x1 - values[0, 1]).norm() / 3)
    assert_close(error(scores * 7, values, 1), error(scores, values, 1))
    assert_close(error(scores, values, 64), torch.zeros(2), atol=1e-12, rtol=0)


def test_the_bound_is_tight_where_all_other_keys_are_second_and_point_away() -> None:
    scores = torch.zeros(1, KEYS, dtype=torch.float64)
    scores[0, 3] = 0.5
    values = -torch.ones(1, KEYS, 1, dtype=torch.float64)
    values[0, 3] = 1
    for sharp in SHARPNESS:
        found = error(scores, values, sharp).item()
        assert found <= bound(sharp)
        assert found == pytest.approx(bound(sharp) / (1 + bound(sharp) / 2), rel=1e-9)


def test_nothing_exceeds_the_bound_but_equal_weights_do() -> None:
    for seed in range(3):
        sharpened, equal = excess(seed)
        assert sharpened <= 1e-12
        assert 0.5 < equal < 2
    assert excess(0)[1] != excess(1)[1]


def test_keys_that_are_all_alike_break_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """No score leads, and sharpening them chooses no value: what came out is no number."""

    def alike(seed: int, queries: int, *counts: int) -> list[Tensor]:
        q, k, v = draw(seed, queries, *counts)
        return [q, k[:, :1].expand_as(k), v]

    monkeypatch.setattr(dictionary, "draw", alike)
    assert not excess(0)[0] <= 1e-12


def looks(weight: float, sentences: list[Sentence], site: int = 2) -> dict[str, Tensor]:
    """Weights at one site: this share on the first position, the rest equally on all."""
    queries, keys = (
        max(len(SITES[site].tokens(sentence, axis)) for sentence in sentences)
        for axis in ("query", "key")
    )
    weights = torch.full((len(sentences), 1, queries, keys), 9.0)
    for each, sentence in zip(weights, sentences, strict=True):
        count = len(SITES[site].tokens(sentence, "key"))
        each[:, :, :count] = (1 - weight) / count
        each[:, :, 0] += weight
    return {SITES[site].tap(0, "weights"): weights}


def test_sharpness_is_the_share_of_the_way_from_equal_weights_to_one() -> None:
    sentences = [
        Sentence(["a", "b", "c"], ["x"], [], None),
        Sentence(["a"] * 5, ["x"] * 2, [], None),
    ]
    for share in (0, 0.3, 1):
        planted = Snapshot(1, 1, sentences, looks(share, sentences))
        assert sharpness(planted) == pytest.approx(share, abs=1e-6)
    both = looks(0.4, sentences) | looks(0.8, sentences, site=0)
    assert sharpness(Snapshot(1, 1, sentences, both)) == pytest.approx(0.6, abs=1e-6)


def plant(
    trained: Callable[[int], float] = lambda seed: 0.7,
    untrained: Callable[[int], float] = lambda seed: 0.3,
    kept: Callable[[str, int, Words], bool] = lambda attention, seed, words: attention == "hard",
) -> dict[str, Any]:
    """Sharpness by seed, and which translations stay as they are under which attention."""

    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        return looks((untrained if epoch == UNTRAINED else trained)(seed), sentences)

    def translation(seed: int, epoch: int, change: InterventionSettings, words: Words) -> list[str]:
        stays = change == AS_LEARNED or (epoch != UNTRAINED and kept(change.attention, seed, words))
        return list(words) if stays else [*words, "more"]

    return {"values": values, "translation": translation}


def parts(result: Result) -> dict[str, Finding]:
    return {finding.part.name: finding for finding in result.findings}


def test_planted_true_it_holds(judge: Judge) -> None:
    result = judge(Dictionary(), **plant())
    assert result.verdict == "holds"
    found = parts(result)
    assert found["limit"].verdict == "true by construction"
    assert found["lookup"].values == [1.0] * 12
    assert [control.values for control in found["lookup"].controls] == [[0.0] * 12] * 2
    assert found["sharp"].values == pytest.approx([0.4] * 12, abs=1e-6)
    assert found["sharp"].controls[0].values == pytest.approx([0] * 12, abs=1e-6)
    assert all(control.exceeded for name in ("lookup", "sharp") for control in found[name].controls)


@pytest.mark.parametrize(
    ("planted", "part"),
    [
        ({"kept": lambda attention, seed, words: attention == "uniform"}, "lookup"),
        ({"trained": lambda seed: 0.38}, "sharp"),
        ({"untrained": lambda seed: 0.9}, "sharp"),
    ],
)
def test_planted_false_it_does_not_hold(judge: Judge, planted: dict[str, Any], part: str) -> None:
    result = judge(Dictionary(), **plant(**planted))
    assert result.verdict == "does not hold"
    assert [f.part.name for f in result.findings if f.verdict == "does not hold"] == [part]


@pytest.mark.parametrize(
    ("planted", "part"),
    [
        ({"kept": lambda attention, seed, words: seed % 2 == 0}, "lookup"),
        ({"trained": lambda seed: 0.3 + 0.2 * (seed % 2)}, "sharp"),
    ],
)
def test_planted_noise_is_undecided(judge: Judge, planted: dict[str, Any], part: str) -> None:
    result = judge(Dictionary(), **plant(**planted))
    assert result.verdict == "undecided"
    assert parts(result)[part].verdict == "undecided"


def test_trained_models_with_two_layers_and_heads(trained: Laboratory) -> None:
    found = parts(judged("dictionary", Dictionary(), dict(Dictionary().measure(trained))))
    assert found["limit"].verdict == "true by construction"
    assert all(0 <= value <= 1 for value in found["lookup"].values)
    member = trained.members(trained.base)[0]
    assert same(member, AS_LEARNED) == 1
    assert all(-1 < value < 1 for value in found["sharp"].values)
