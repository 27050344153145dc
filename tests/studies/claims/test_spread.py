"""Claim b: how spread out the vectors of encoder and decoder are."""

import math
from collections.abc import Callable, Hashable, Mapping
from itertools import combinations, product
from statistics import mean
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from qkvtrace.snapshots.probes import Sentence
from qkvtrace.snapshots.sites import SITES, VECTORS, Site
from qkvtrace.studies.claims.spread import Spread, angle, mixed, radius, spread
from qkvtrace.studies.claims.tools.different_vectors import different
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory
from qkvtrace.studies.evidence.verdict import Result

Judge = Callable[..., Result]
Values = Callable[[int, int, list[Sentence]], Mapping[str, Tensor]]

ENCODER, DECODER = SITES[:2]
WIDTH = 64
RIGHT, UP = [1.0, 0.0], [0.0, 1.0]


def test_radius_is_the_distance_from_the_mean() -> None:
    vectors = torch.tensor([[[3.0, 1.0], RIGHT], [[5.0, 1.0], UP]])  # two of two heads
    # 1 to both sides of the mean: sqrt(2 / (2 - 1)); half of sqrt(2) to both sides: sqrt(1 / 1).
    assert radius(vectors).tolist() == pytest.approx([math.sqrt(2), 1])


def test_radius_of_few_is_that_of_many() -> None:
    vectors = torch.randn(4000, 1, 3, generator=torch.Generator().manual_seed(0))
    few = torch.stack([radius(four).square() for four in vectors.split(4)]).mean()
    assert float(few) == pytest.approx(float(radius(vectors).square()), rel=0.02)


def test_angle_is_the_mean_over_each_two() -> None:
    vectors = torch.tensor([[RIGHT], [[7.0, 0.0]], [UP]])  # 0, 1 and 1 apart
    assert angle(vectors).tolist() == pytest.approx([2 / 3])
    some = torch.randn(5, 2, 4, generator=torch.Generator().manual_seed(1))
    expected = [
        mean(1 - float(cosine_similarity(a, b, dim=0)) for a, b in combinations(some[:, head], 2))
        for head in range(2)
    ]
    assert angle(some).tolist() == pytest.approx(expected, abs=1e-6)


def test_spread_is_the_decoders_against_the_encoders() -> None:
    narrow, wide = torch.tensor([[RIGHT], [UP]]), torch.tensor([[[4.0, 0.0]], [[-4.0, 0.0]]])
    # Radii 8/sqrt(2) and 1: log2 of 4 sqrt(2); angles 2 and 1. The second kind has no difference.
    assert spread([(wide, narrow)]) == pytest.approx((2.5, 1))
    assert spread([(narrow, wide)]) == pytest.approx((-2.5, -1))
    assert spread([(wide, narrow), (narrow, narrow)]) == pytest.approx((1.25, 0.5))


def test_mixing_keeps_the_vectors_and_how_many_there_are() -> None:
    both = torch.arange(6.0)[:, None, None], torch.arange(6.0, 10)[:, None, None]
    one, other = mixed(both, torch.Generator().manual_seed(0))
    assert (len(one), len(other)) == (6, 4)
    assert sorted(torch.cat([one, other]).flatten().tolist()) == list(range(10))
    assert not torch.equal(one.flatten().sort().values, torch.arange(6.0))


@pytest.mark.parametrize(
    ("site", "layer", "vector", "expected"),
    [
        (ENCODER, 0, "q", {(0, 0), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (1, 4)}),
        (ENCODER, 0, "x1", {*product((0, 1), range(4)), (1, 4)}),
        (ENCODER, 1, "q", {*product((0, 1), range(4)), (1, 4)}),
        (DECODER, 0, "k", {(0, 0), (0, 1), (0, 2), (1, 2), (1, 3)}),
        (DECODER, 0, "x1", {(0, 0), (0, 1), (0, 2), (1, 2), (1, 3)}),
        (DECODER, 1, "v", {*product((0, 1), range(3)), (1, 3)}),
    ],
)
def test_vectors_differ_by_what_they_are_made_of(
    site: Site, layer: int, vector: str, expected: set[tuple[int, int]]
) -> None:
    sentences = [
        Sentence(["<sos>", "we", "eat", "<eos>"], ["<sos>", "wir", "essen"], [], None),
        Sentence(["<sos>", "we", "we", "eat", "<eos>"], ["<sos>", "wir", "wir", "essen"], [], None),
    ]
    found = different(site, layer, vector, sentences)
    assert set(found) == expected
    for (index, position), token in found.items():
        assert token == site.tokens(sentences[index], VECTORS[vector])[position]


def made_of(site: Site, vector: str, index: int, tokens: list[str], place: int) -> Hashable:
    """Told apart in a first layer."""
    if vector != "x1":
        return tokens[place], place
    return tuple(tokens[: place + 1]) if site is DECODER else (index, place)


def planted(scale: float = 1, angle: float = 0.5, noise: float = 0) -> Values:
    """Vectors of which each two different ones are `angle` apart in the decoder, 0.5 in the other.

    The decoder's lie `scale` times as far from their mean. Both give or take `noise`, and before
    training there is nothing between encoder and decoder.
    """

    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        found = {}
        give = (-1) ** seed * noise
        for site, vector in product((ENCODER, DECODER), VECTORS):
            apart = angle + give if site is DECODER and epoch == LAST else 0.5
            length = scale * 2**give if site is DECODER and epoch == LAST else 1
            value = torch.full((len(sentences), 1, 12, WIDTH), math.nan)
            numbers: dict[Hashable, int] = {}
            for index, sentence in enumerate(sentences):
                tokens = site.tokens(sentence, "query")
                for place in range(len(tokens)):
                    of = made_of(site, vector, index, tokens, place)
                    number = numbers.setdefault(of, len(numbers) + 1)
                    # sqrt(1 - d) in common and sqrt(d) of its own: cosine 1 - d with any other,
                    # and a radius of sqrt(d).
                    value[index, 0, place] = torch.eye(WIDTH)[number] * math.sqrt(apart)
                    value[index, 0, place, 0] = math.sqrt(1 - apart)
                    value[index, 0, place] *= length / math.sqrt(apart)
            found[site.tap(0, vector)] = value
        return found

    return values


def test_what_is_planted_is_found(judge: Judge) -> None:
    result = judge(Spread(), values=planted(scale=4, angle=0.75))
    assert result.verdict == "holds"
    distance, direction = result.findings
    assert distance.values == pytest.approx([2] * 12, abs=1e-5)
    assert direction.values == pytest.approx([0.25] * 12, abs=1e-5)
    for finding in result.findings:
        untrained, shuffled = finding.controls
        assert untrained.values == pytest.approx([0] * 12, abs=1e-5)
        assert 0 < max(map(abs, shuffled.values)) < 1
        assert len(set(shuffled.values)) == 12
        assert untrained.exceeded
        assert shuffled.exceeded


@pytest.mark.parametrize(
    ("changed", "distance", "direction"),
    [
        ({}, "does not hold", "does not hold"),
        ({"scale": 0.5}, "does not hold", "does not hold"),
        ({"scale": 2}, "holds", "does not hold"),
        ({"angle": 0.75}, "does not hold", "holds"),
        ({"scale": 2**0.14, "angle": 0.6, "noise": 0.05}, "undecided", "undecided"),
        ({"scale": 2**0.24, "angle": 0.7, "noise": 0.05}, "holds", "holds"),
    ],
)
def test_each_part_can_fail(
    judge: Judge, changed: dict[str, Any], distance: str, direction: str
) -> None:
    result = judge(Spread(), values=planted(**changed))
    assert [finding.verdict for finding in result.findings] == [distance, direction]


def test_a_trained_model_is_measured_in_all_layers_and_heads(trained: Laboratory) -> None:
    measured = Spread().measure(trained)
    members = trained.members(trained.base)
    texts = list(dict.fromkeys(" ".join(words) for words, _ in members[0].corpus.splits["valid"]))
    for epoch, name in ((LAST, None), (UNTRAINED, "untrained")):
        snapshot = members[1].observe(texts, [], epoch)
        distances, directions = [], []
        for vector, layer, head in product(VECTORS, range(2), range(2)):
            found = []
            for site in (DECODER, ENCODER):
                value = snapshot.values[site.tap(layer, vector)]
                some: dict[Hashable, Tensor] = {}
                for index, sentence in enumerate(snapshot.sentences):
                    tokens = site.tokens(sentence, "query")
                    for place in range(len(tokens)):
                        of = made_of(site, vector, index, tokens, place) if layer == 0 else None
                        some[of or (index, place)] = value[index, head, place]
                vectors = torch.stack(list(some.values())).double()
                apart = 1 - cosine_similarity(vectors[:, None], vectors, dim=-1)
                n = len(vectors)
                found.append(
                    (torch.pdist(vectors).square().mean().sqrt(), apart.sum() / n / (n - 1))
                )
            (far, wide), (near, narrow) = found
            distances.append(math.log2(far / near))
            directions.append(float(wide - narrow))
        for part, numbers in (("distance", distances), ("direction", directions)):
            of_part = measured[part]
            seen = of_part.controls[name] if name else of_part.effect
            assert seen[1] == pytest.approx(mean(numbers), abs=1e-5)
