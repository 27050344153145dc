"""Claim f: what dividing scores by √d does."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.settings import Recipe
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.sites import SITES
from qkvtrace.studies.claims.scaling import Scaling, gradients, near_1, nearness, spread
from qkvtrace.studies.claims.tools.choices import choices
from qkvtrace.studies.claims.tools.drawn import WIDTHS, draw, products
from qkvtrace.studies.evidence.laboratory import UNTRAINED, Laboratory
from qkvtrace.studies.evidence.verdict import Finding, Result, judged

Judge = Callable[..., Result]
ENCODER, DECODER, CROSS = SITES

# Of three and two source tokens, two and three target tokens.
SENTENCES = [
    Sentence(["<sos>", "we", "<eos>"], ["<sos>", "wir"], [], None),
    Sentence(["<sos>", "<eos>"], ["<sos>", "wir", "wir"], [], None),
]


def snapshot(value: str, *sites: Tensor) -> Snapshot:
    """One value at the first layer of each site."""
    values = {site.tap(0, value): v for site, v in zip(SITES, sites, strict=False)}
    return Snapshot(1, 1, SENTENCES, values)


def test_choices_are_the_queries_that_may_look_at_two_positions_or_more() -> None:
    numbered = torch.arange(2 * 2 * 3 * 3.0).view(2, 2, 3, 3) + 1  # sentence, head, query, key
    encoder, decoder, cross = choices(snapshot("scores", numbered, numbered, numbered), "scores")
    assert encoder.rows[:, 1].tolist() == [
        [10, 11, 12],
        [13, 14, 15],
        [16, 17, 18],
        [28, 29, 0],
        [31, 32, 0],
    ]
    assert encoder.count.flatten().tolist() == [3, 3, 3, 2, 2]
    assert decoder.rows[:, 0].tolist() == [[4, 5, 0], [22, 23, 0], [25, 26, 27]]
    assert decoder.allowed[:, 0].tolist() == [
        [True, True, False],
        [True, True, False],
        [True, True, True],
    ]
    assert cross.rows[:, 0].tolist() == [
        [1, 2, 3],
        [4, 5, 6],
        [19, 20, 0],
        [22, 23, 0],
        [25, 26, 0],
    ]


def test_choices_have_nothing_of_what_is_masked_or_padding() -> None:
    scores = torch.full((2, 1, 3, 3), torch.nan)
    scores[0], scores[1, :, :2, :2] = 1, 1
    (encoder,) = choices(snapshot("scores", scores), "scores")
    assert encoder.rows.sum() == 9 + 4
    decoder = list(choices(snapshot("scores", scores, scores.tril().nan_to_num(7)), "scores"))[1]
    assert decoder.rows.isfinite().all()


def test_each_layer_has_its_choices_in_the_order_of_the_sites() -> None:
    values = {
        site.tap(layer, "weights"): torch.full((2, 1, 3, 3), float(10 * number + layer))
        for layer in (1, 0)
        for number, site in enumerate(SITES)
    }
    found = choices(Snapshot(1, 1, SENTENCES, values), "weights")
    assert [float(each.rows.max()) for each in found] == [0, 1, 10, 11, 20, 21]


def test_products_are_those_of_the_beginnings_of_vectors() -> None:
    q, k = draw(3, 5, 1, 7)
    assert q.shape == (5, 1, 1024)
    found = products(q, k)
    for d, each in zip(WIDTHS, found, strict=True):
        assert_close(each, torch.einsum("qud,qkd->qk", q[..., :d], k[..., :d]))
    assert not torch.equal(draw(4, 5, 1)[0], q)
    assert torch.equal(draw(3, 5, 1)[0], q)


def test_near_1_is_the_width_that_is_furthest_from_it() -> None:
    row = torch.tensor([[-1.0, 0, 1]])  # variance 1
    assert near_1(torch.stack([row, row * 2, row / 3])) == pytest.approx(1 / 9)
    assert near_1(torch.stack([row, row * 2, row * 5])) == pytest.approx(1 / 25)
    assert near_1(torch.stack([row, row])) == pytest.approx(1)


def test_gradients_by_hand() -> None:
    no = -torch.inf
    equal, one, two = [0.0] * 4, [0, no, no, no], [0, 0, no, no]
    found = gradients(torch.tensor([[equal, equal], [one, one], [two, two], [equal, one]]))
    assert found.tolist() == pytest.approx([1, 0, 0.5 / 0.75, 0.5])


def test_gradients_are_the_trace_of_the_softmax_s_derivative() -> None:
    scores = draw(1, 1, 1)[0][0, :, :9].double()
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores[0])
    assert gradients(scores[None]).item() == pytest.approx(float(jacobian.trace()) / (8 / 9))


def test_nearness_by_hand() -> None:
    first = torch.tensor([[0.0, 2, 4], [1, 1, 4], [3, 3, 3]])  # variances 4, 3 and 0
    second = torch.tensor([[0.0, 2, 9], [5, 5, 9], [9, 9, 9]])  # 2 and 0; 9 is padding's
    variance = (4 + 3 + 0 + 2 + 0) / 5
    scores = torch.stack([first, second])[:, None]
    both = torch.cat([scores, scores / 10], dim=1)  # two heads, of variances above and below 1
    expected = -(math.log(variance) - math.log(variance / 100)) / 2
    assert nearness(snapshot("scores", both)) == pytest.approx(expected)
    assert nearness(snapshot("scores", scores / math.sqrt(variance))) == pytest.approx(0, abs=1e-6)


def test_spread_by_hand() -> None:
    half = torch.tensor([[0.5, 0.5, 0], [0.5, 0.5, 0], [0.5, 0.5, 0]]).expand(2, 1, 3, 3)
    one = math.log(2) / math.log(3)
    encoder = (3 * one + 2 * 1) / 5
    # The decoder's first queries have no choice; the third one of the second sentence has three.
    decoder = (1 + 1 + one) / 3
    assert spread(snapshot("weights", half)) == pytest.approx(encoder)
    assert spread(snapshot("weights", half, half)) == pytest.approx((encoder + decoder) / 2)
    assert spread(snapshot("weights", torch.eye(3).expand(2, 1, 3, 3))) == 0


def looks(
    deviation: float, share: float, seed: int, sentences: list[Sentence]
) -> dict[str, Tensor]:
    """Scores of about this deviation, and weights of which this share is spread out evenly."""
    values = {}
    for number, site in enumerate(SITES):
        queries, keys = (
            max(len(site.tokens(sentence, axis)) for sentence in sentences)
            for axis in ("query", "key")
        )
        shape = (len(sentences), 1, queries, keys)
        generator = torch.Generator().manual_seed(seed * 3 + number)
        values[site.tap(0, "scores")] = deviation * torch.randn(shape, generator=generator)
        counts = torch.tensor([len(site.tokens(sentence, "key")) for sentence in sentences])
        weights = (torch.arange(keys) < counts[:, None]).double()[:, None, None].expand(shape)
        if site is DECODER:
            weights = weights.tril()
        one = torch.eye(keys)[torch.zeros(queries).long()]
        values[site.tap(0, "weights")] = (
            share * weights / weights.sum(-1, keepdim=True) + (1 - share) * one
        )
    return values


def variant(
    scaled: Callable[[int, int], tuple[float, float]] = lambda seed, epoch: (1, 0.9),
    unscaled: Callable[[int, int], tuple[float, float]] = lambda seed, epoch: (8, 0.01),
) -> Callable[[Recipe], dict[str, Any]]:
    """Deviation of the scores and spread of the weights by seed and epoch."""

    def plant(recipe: Recipe) -> dict[str, Any]:
        chosen = scaled if recipe.model.scaled_scores else unscaled

        def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
            return looks(*chosen(seed, epoch), seed, sentences)

        return {"values": values}

    return plant


def parts(result: Result) -> dict[str, Finding]:
    return {finding.part.name: finding for finding in result.findings}


def test_planted_true_it_holds(judge: Judge) -> None:
    def untrained(seed: int, epoch: int) -> tuple[float, float]:
        return (1, 0.9) if epoch == UNTRAINED else (8, 0.01)

    result = judge(Scaling(), variant=variant(unscaled=untrained))
    assert result.verdict == "holds"
    found = parts(result)
    assert all(
        control.exceeded
        for finding in result.findings
        for control in finding.controls
        if finding.part.name != "near"  # models that divide are planted the same at both epochs
    )
    assert found["near"].verdict == "holds"
    assert found["near"].controls[0].values == pytest.approx(found["near"].values, abs=1e-6)
    assert found["trained"].interval.mean == pytest.approx(math.log(64), abs=0.5)
    assert found["trained"].controls[0].values == [0] * 12
    assert found["softmax"].controls[0].values == [0] * 12
    assert found["variance"].interval.mean == pytest.approx(1, abs=0.07)
    assert found["variance"].controls[0].interval.mean == pytest.approx(1 / 1024, rel=0.1)
    assert found["saturation"].interval.mean == pytest.approx(0.87, abs=0.03)
    assert found["saturation"].controls[0].interval.mean < 0.3


@pytest.mark.parametrize(
    ("planted", "parts_that_fail"),
    [
        ({"unscaled": lambda seed, epoch: (1.3, 0.01)}, ["trained"]),
        ({"unscaled": lambda seed, epoch: (8, 0.85)}, ["softmax"]),
        (
            {
                "scaled": lambda seed, epoch: (8, 0.01),
                "unscaled": lambda seed, epoch: (1, 0.9),
            },
            ["trained", "near", "softmax"],
        ),
        ({"scaled": lambda seed, epoch: (2, 0.9)}, ["near"]),  # beyond what texts claim
        # Scores that are too small are as far from 1 as scores that are too large.
        ({"scaled": lambda seed, epoch: (1 / 8, 0.9)}, ["trained", "near"]),
    ],
)
def test_planted_false_it_does_not_hold(
    judge: Judge, planted: dict[str, Any], parts_that_fail: list[str]
) -> None:
    result = judge(Scaling(), variant=variant(**planted))
    assert result.verdict == ("holds" if parts_that_fail == ["near"] else "does not hold")
    failed = [f.part.name for f in result.findings if f.verdict == "does not hold"]
    assert failed == parts_that_fail


def test_planted_noise_is_undecided(judge: Judge) -> None:
    def noisy(seed: int, epoch: int) -> tuple[float, float]:
        return (1.25, 0.55) if seed % 2 else (1.65, 0.9)

    result = judge(Scaling(), variant=variant(unscaled=noisy))
    verdicts = [finding.verdict for finding in result.findings]
    assert verdicts == ["holds", "holds", "undecided", "holds", "undecided"]
    assert result.verdict == "undecided"


def test_trained_models_with_two_layers_and_heads(trained: Laboratory) -> None:
    found = parts(judged("scaling", Scaling(), dict(Scaling().measure(trained))))
    for name in ("trained", "softmax"):
        assert len(found[name].values) == 2
        assert min(found[name].controls[0].values) > 0
        assert found[name].values != found[name].controls[0].values
