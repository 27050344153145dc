"""Claim e: symmetric scores, and what generalises better."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.settings import InterventionSettings, Recipe
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.studies.claims.symmetry import Symmetry, asymmetry
from qkvtrace.studies.claims.tools.generalisation import differences
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory, Words
from qkvtrace.studies.evidence.verdict import Finding, Result, judged

Judge = Callable[..., Result]
TAP = "encoder.layers.{}.self_attention.scores"


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def snapshot(*layers: Tensor, lengths: list[int]) -> Snapshot:
    """Sentences of so many tokens, and the scores of each layer."""
    sentences = [Sentence(["w"] * length, ["<sos>"], [], None) for length in lengths]
    values = {TAP.format(number): scores for number, scores in enumerate(layers)}
    return Snapshot(1, 1, sentences, values)


def test_asymmetry_by_hand() -> None:
    symmetric = torch.tensor([[1.0, 2], [2, 5]])
    antisymmetric = torch.tensor([[0.0, 3], [-3, 0]])
    corner = torch.tensor([[0.0, 7], [0, 0]])  # half of its sum of squares is antisymmetric
    both = torch.tensor([[3.0, 4 + 5], [4 - 5, 3]])  # 2 * 25 of 2 * 9 + 2 * 16 + 2 * 25
    one, other = torch.stack([symmetric, antisymmetric]), torch.stack([corner, both])
    found = asymmetry(snapshot(one[None], other[None], lengths=[2]))
    assert found.tolist() == [[0, 1], pytest.approx([math.sqrt(0.5), math.sqrt(0.5)])]


def test_all_sentences_count_together_and_padding_does_not() -> None:
    scores = random(2, 1, 5, 5, seed=1)
    own = [scores[0, 0], scores[1, 0, :3, :3].clone()]
    scores[1, 0, 3:], scores[1, 0, :, 3:] = math.nan, -math.inf
    expected = math.sqrt(
        sum(float(((s - s.T) / 2).square().sum()) for s in own)
        / sum(float(s.square().sum()) for s in own)
    )
    assert asymmetry(snapshot(scores, lengths=[5, 3])).item() == pytest.approx(expected)


def test_without_structure_half_the_sum_of_squares_is_antisymmetric() -> None:
    scores = random(1, 1, 400, 400, seed=2)
    assert asymmetry(snapshot(scores, lengths=[400])).item() == pytest.approx(
        math.sqrt(0.5), abs=0.01
    )


def test_differences_are_those_of_neighbours_around_the_ring() -> None:
    assert differences([5.0, 3.0, 4.0]) == [2, -1, -1]


def scores(share: float, seed: int, sentences: list[Sentence]) -> dict[str, Tensor]:
    """Scores whose antisymmetric share is this, or a hair's breadth beside it."""
    length = max(len(each.source) for each in sentences)
    drawn = random(len(sentences), 1, length, length, seed=seed).double()
    for one, sentence in zip(drawn, sentences, strict=True):
        own = len(sentence.source)
        inside = one[:, :own, :own].clone()
        even, odd = inside + inside.mT, inside - inside.mT
        one.fill_(99)  # padding's
        one[:, :own, :own] = even / even.norm() * math.sqrt(1 - share**2) + odd / odd.norm() * share
    return {TAP.format(0): drawn}


def variant(
    corpus: Corpus,
    separate: Callable[[int], float] = lambda seed: 0.6,
    shared: Callable[[int, int], float] = lambda seed, epoch: 0.0,
    right: Callable[[str, int], bool] = lambda projections, seed: projections == "separate",
) -> Callable[[Recipe], dict[str, Any]]:
    """What is planted: asymmetry by the seed (and epoch), and who translates well."""
    pairs = corpus.splits["train"] + corpus.splits["valid"]
    references = {tuple(source): target for source, target in pairs}

    def plant(recipe: Recipe) -> dict[str, Any]:
        projections = recipe.model.projections

        def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
            share = separate(seed) if projections == "separate" else shared(seed, epoch)
            return scores(share, seed, sentences)

        def translation(
            seed: int, epoch: int, change: InterventionSettings, words: Words
        ) -> list[str]:
            if recipe.data.name == "held_out" and right(projections, seed):
                return references[tuple(words)]
            return ["no"]

        return {"values": values, "translation": translation}

    return plant


def parts(result: Result) -> dict[str, Finding]:
    return {finding.part.name: finding for finding in result.findings}


def test_planted_true_it_holds(judge: Judge, corpus: Corpus) -> None:
    result = judge(Symmetry(), variant=variant(corpus))
    assert result.verdict == "holds"
    found = parts(result)
    assert found["shared"].verdict == "true by construction"
    assert found["separate"].interval.mean == pytest.approx(0.6)
    assert found["generalise"].values == [1.0] * 12
    shared, separate, generalise = (each.controls for each in result.findings)
    assert shared[0].values == pytest.approx([1.2] * 12)
    assert {each.name: each.exceeded for each in separate} == {
        "untrained": False,
        "shared projection": True,
    }
    assert generalise[0].values == [0.0] * 12
    assert generalise[0].exceeded


def test_one_head_that_is_not_symmetric_is_enough(judge: Judge) -> None:
    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        layers = [scores(share, seed, sentences)[TAP.format(0)] for share in (0.0, 0.3)]
        return {TAP.format(number): layer for number, layer in enumerate(layers)}

    found = parts(judge(Symmetry(), values=values))
    assert found["shared"].verdict == "does not hold"
    assert found["shared"].values == pytest.approx([0.6] * 12)
    assert found["shared"].controls[0].values == pytest.approx([0.6] * 12)
    assert found["separate"].values == pytest.approx([0.15] * 12)


@pytest.mark.parametrize(
    ("planted", "part"),
    [
        ({"shared": lambda seed, epoch: 0.3}, "shared"),
        ({"shared": lambda seed, epoch: 1e-4 * (seed == 7)}, "shared"),
        ({"shared": lambda seed, epoch: 1e-4 * (epoch == UNTRAINED)}, "shared"),
        ({"shared": lambda seed, epoch: 1e-4 * (epoch == LAST)}, "shared"),
        ({"separate": lambda seed: 0.08}, "separate"),
        ({"right": lambda projections, seed: projections == "shared"}, "generalise"),
    ],
)
def test_planted_false_it_does_not_hold(
    judge: Judge, corpus: Corpus, planted: dict[str, Any], part: str
) -> None:
    result = judge(Symmetry(), variant=variant(corpus, **planted))
    assert result.verdict == "does not hold"
    wrong = [f.part.name for f in result.findings if f.verdict == "does not hold"]
    assert wrong == [part]


@pytest.mark.parametrize(
    ("planted", "part"),
    [
        ({"separate": lambda seed: 0.1 + 0.05 * (-1) ** seed}, "separate"),
        ({"right": lambda name, seed: True}, "generalise"),  # who cannot be told apart
        ({"right": lambda name, seed: False}, "generalise"),
        ({"right": lambda name, seed: (seed % 2 == 0) == (name == "shared")}, "generalise"),
    ],
)
def test_planted_noise_is_undecided(
    judge: Judge, corpus: Corpus, planted: dict[str, Any], part: str
) -> None:
    result = judge(Symmetry(), variant=variant(corpus, **planted))
    assert result.verdict == "undecided"
    assert parts(result)[part].verdict == "undecided"


def test_trained_models_with_two_layers_and_heads(trained: Laboratory) -> None:
    found = parts(judged("symmetry", Symmetry(), dict(Symmetry().measure(trained))))
    assert found["shared"].verdict == "true by construction"
    assert min(found["shared"].controls[0].values) > 0.1
    assert min(found["separate"].values) > 0.1
    assert max(found["separate"].controls[1].values) < 1e-5
    assert found["separate"].values != found["separate"].controls[0].values
