"""Claim h: what several heads look at."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.errors import UserError
from qkvtrace.settings import InterventionSettings, Recipe
from qkvtrace.snapshots.probes import Sentence
from qkvtrace.snapshots.sites import SITES
from qkvtrace.studies.claims.heads import (
    Heads,
    difference,
    different_seeds,
    divergence,
    one_look,
    several,
)
from qkvtrace.studies.claims.tools.choices import Choices
from qkvtrace.studies.evidence.laboratory import UNTRAINED, Laboratory, Words
from qkvtrace.studies.evidence.verdict import Finding, Result, judged
from qkvtrace.studies.geometry import entropy

Judge = Callable[..., Result]


def look(*queries: Sequence[Sequence[float]]) -> Choices:
    """Each query's weights, head by head; a weight of -1 is at a position it may not look at."""
    rows = torch.tensor(queries, dtype=torch.float64)
    return Choices(rows.clamp(min=0), (rows >= 0).all(1, keepdim=True))


def test_divergence_by_hand() -> None:
    same = [[0.5, 0.3, 0.2]] * 2
    apart = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    half = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]  # the mean is 3/4, 1/4
    mean = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    found = divergence(look(same, apart, half))
    assert found.tolist() == pytest.approx([0, 1, (mean - math.log(2) / 2) / math.log(2)])


def test_the_largest_divergence_is_1_for_few_heads_and_for_few_positions() -> None:
    three = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert divergence(look(three)).item() == pytest.approx(1)  # ln 3
    two_positions = [[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]] * 2
    assert divergence(look(two_positions)).item() == pytest.approx(1)  # ln 2


def test_difference_is_the_mean_over_queries_and_then_layers() -> None:
    same, apart = [[1.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 1.0]]
    assert difference([look(same, apart, apart, apart), look(same)]) == pytest.approx(0.375)


def drawn(queries: int, heads: int, keys: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(queries, heads, keys, generator=generator, dtype=torch.float64)
    return scores.softmax(-1)


def test_one_look_is_the_mean_as_sharp_as_each_head() -> None:
    weights = drawn(50, 4, 6)
    weights[:, :, 4:] = 0
    weights /= weights.sum(-1, keepdim=True)
    allowed = torch.tensor([True] * 4 + [False] * 2).expand(50, 1, 6)
    found = one_look(Choices(weights, allowed))
    assert_close(entropy(found.rows), entropy(weights), rtol=0, atol=1e-6)
    assert_close(found.rows.sum(-1), torch.ones(50, 4, dtype=torch.float64))
    order = weights.mean(1).argsort(-1)[:, None].expand(-1, 4, -1)
    assert (found.rows.gather(-1, order).diff(dim=-1) >= 0).all()  # all prefer what the mean does
    assert (found.rows[..., 4:] == 0).all()


def test_one_look_leaves_what_differs_in_sharpness_alone_as_different() -> None:
    one = drawn(30, 1, 5, seed=1)
    powers = torch.tensor([0.2, 1.0, 5.0, 30.0])[:, None]
    weights = Choices((one.log() * powers).softmax(-1), torch.ones(30, 1, 5, dtype=torch.bool))
    assert difference([weights]) > 0.1
    assert difference([one_look(weights)]) == pytest.approx(difference([weights]), rel=0.15)
    alike = Choices(one.expand(-1, 4, -1), weights.allowed)
    assert_close(one_look(alike).rows, alike.rows)


def test_one_look_of_heads_that_look_at_one_position_each() -> None:
    weights = look([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.25, 0.75, 0.0]])
    found = one_look(weights)
    assert found.rows.isfinite().all()
    assert_close(found.rows[0, 0], torch.tensor([0.0, 1, 0], dtype=torch.float64))


def test_heads_of_different_seeds() -> None:
    def member(number: int) -> list[Choices]:
        rows = torch.tensor([[10.0 * number], [10.0 * number + 1]])[None]  # (1, heads, 1)
        allowed = torch.ones(1, 1, 1, dtype=torch.bool)
        return [Choices(rows, allowed), Choices(rows + 100, allowed)]

    found = different_seeds([member(0), member(1), member(2)])
    assert [[each.rows.flatten().tolist() for each in layers] for layers in found] == [
        [[0, 11], [100, 111]],
        [[10, 21], [110, 121]],
        [[20, 1], [120, 101]],
    ]


@pytest.mark.parametrize(("width", "heads"), [(64, 4), (6, 2), (9, 3), (7, 7), (4, 4), (2, 2)])
def test_several_is_four_or_the_fewest_that_fit(
    recipe: Callable[..., Recipe], width: int, heads: int
) -> None:
    assert several(recipe(width=width)).model.heads == heads


def test_a_width_that_no_two_heads_share_is_told(recipe: Callable[..., Recipe]) -> None:
    with pytest.raises(UserError, match=r"model\.width: expected room for two heads, found 1"):
        several(recipe(width=1))


Look = Callable[[int, int, int], Tensor]  # seed, head, keys -> weights (keys)


def own_key(strength: float, seed: int, head: int, keys: int) -> Tensor:
    """Weights of which `strength` lies on a key of the head's own, and the rest on all."""
    weights = torch.full((keys,), (1 - strength) / keys)
    weights[head % keys] += strength
    return weights


def variant(
    corpus: Corpus,
    trained: Look = lambda seed, head, keys: own_key(0.9, seed, head, keys),
    untrained: Look = lambda seed, head, keys: own_key(0.1, seed, head, keys),
    right: Callable[[int, int], bool] = lambda heads, seed: heads > 1,
) -> Callable[[Recipe], dict[str, Any]]:
    """What heads look at in cross-attention, and by the number of heads who translates well."""
    pairs = corpus.splits["train"] + corpus.splits["valid"]
    references = {tuple(source): target for source, target in pairs}

    def plant(recipe: Recipe) -> dict[str, Any]:
        heads = recipe.model.heads

        def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
            chosen = untrained if epoch == UNTRAINED else trained
            longest = max(len(each.source) for each in sentences)
            queries = max(len(each.target) for each in sentences)
            weights = torch.full((len(sentences), heads, queries, longest), 33.0)
            for each, sentence in zip(weights, sentences, strict=True):
                keys = len(sentence.source)
                for head in range(heads):
                    each[head, : len(sentence.target), :keys] = chosen(seed, head, keys)
            return {SITES[2].tap(0, "weights"): weights}

        def translation(
            seed: int, epoch: int, change: InterventionSettings, words: Words
        ) -> list[str]:
            good = recipe.data.name == "held_out" and right(heads, seed)
            return references[tuple(words)] if good else ["no"]

        return {"values": values, "translation": translation}

    return plant


def parts(result: Result) -> dict[str, Finding]:
    return {finding.part.name: finding for finding in result.findings}


def test_planted_true_it_holds(judge: Judge, corpus: Corpus) -> None:
    result = judge(Heads(), variant=variant(corpus))
    assert result.verdict == "holds"
    found = parts(result)["different"]
    assert found.interval.mean > 0.5
    untrained, sharper, other_seeds = found.controls
    assert untrained.exceeded
    assert sharper.exceeded
    # Each seed's head looks at the same key: learning side by side makes no difference.
    assert other_seeds.values == pytest.approx(found.values)
    assert not other_seeds.exceeded


def test_heads_that_share_out_the_work_differ_more_than_those_of_different_seeds(
    judge: Judge, corpus: Corpus
) -> None:
    def shifted(seed: int, head: int, keys: int) -> Tensor:
        return own_key(0.9, seed, (head - seed) % 4, keys)

    found = parts(judge(Heads(), variant=variant(corpus, trained=shifted)))["different"]
    assert found.controls[2].exceeded
    assert max(found.controls[2].values) < 0.01  # head h of seed + h is always the same


def test_heads_that_differ_in_sharpness_alone_do_not_exceed_one_look(
    judge: Judge, corpus: Corpus
) -> None:
    def sharper(seed: int, head: int, keys: int) -> Tensor:
        return own_key((0.05, 0.3, 0.7, 1.0)[head], seed, 0, keys)

    found = parts(judge(Heads(), variant=variant(corpus, trained=sharper)))["different"]
    assert found.verdict == "holds"
    assert found.controls[1].values == pytest.approx(found.values, rel=0.05)


@pytest.mark.parametrize(
    ("planted", "wrong"),
    [
        (
            {"trained": lambda seed, head, keys: own_key(0.9, seed, 0, keys)},
            ["different", "learned"],
        ),
        (
            {"trained": lambda seed, head, keys: own_key(0.2, seed, head, keys)},
            ["different", "learned"],
        ),
        ({"untrained": lambda seed, head, keys: own_key(0.9, seed, head, keys)}, ["learned"]),
        ({"right": lambda heads, seed: heads == 1}, ["generalise"]),
    ],
)
def test_planted_false_it_does_not_hold(
    judge: Judge, corpus: Corpus, planted: dict[str, Any], wrong: list[str]
) -> None:
    result = judge(Heads(), variant=variant(corpus, **planted))
    assert [f.part.name for f in result.findings if f.verdict == "does not hold"] == wrong
    beyond = wrong == ["generalise"]  # which texts do not claim
    assert result.verdict == ("holds" if beyond else "does not hold")


@pytest.mark.parametrize(
    ("planted", "part"),
    [
        (
            {
                "trained": lambda seed, head, keys: own_key(
                    0.55 if seed % 2 else 0.1, seed, head, keys
                )
            },
            "different",
        ),
        (
            {
                "trained": lambda seed, head, keys: own_key(0.9, seed, head, keys),
                "untrained": lambda seed, head, keys: own_key(
                    0.9 if seed % 2 else 0.8, seed, head, keys
                ),
            },
            "learned",
        ),
        ({"right": lambda heads, seed: (seed % 2 == 0) == (heads > 1)}, "generalise"),
        ({"right": lambda heads, seed: True}, "generalise"),  # who cannot be told apart
        ({"right": lambda heads, seed: False}, "generalise"),
    ],
)
def test_planted_noise_is_undecided(
    judge: Judge, corpus: Corpus, planted: dict[str, Any], part: str
) -> None:
    result = judge(Heads(), variant=variant(corpus, **planted))
    assert parts(result)[part].verdict == "undecided"


def test_trained_models_with_two_layers(trained: Laboratory) -> None:
    found = parts(judged("heads", Heads(), dict(Heads().measure(trained))))["different"]
    _, sharper, other_seeds = found.controls
    assert all(0 < value < 1 for value in found.values)
    assert all(0 < one < value for one, value in zip(sharper.values, found.values, strict=True))
    assert other_seeds.values != found.values
