"""Claim j: the shape of the weights."""

from collections.abc import Callable

import pytest
import torch

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import Recipe
from qkvtrace.studies.claims import shape
from qkvtrace.studies.claims.shape import (
    HEAD_WIDTHS,
    LENGTHS,
    Shape,
    build,
    counted,
    differing,
)
from qkvtrace.studies.claims.tools.variants import with_model
from qkvtrace.studies.evidence.laboratory import Laboratory
from qkvtrace.studies.evidence.verdict import Result, judged

Judge = Callable[..., Result]


def test_planted_true_it_is_true_by_construction(judge: Judge) -> None:
    result = judge(Shape())
    assert result.verdict == "true by construction"
    (finding,) = result.findings
    assert finding.values == [0] * 12
    wider = len(HEAD_WIDTHS) - 1
    assert finding.controls[0].values == [wider * LENGTHS * 3] * 12  # sites


def test_planted_false_it_does_not_hold(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that have a head for each two numbers: the weights' shape follows the width."""

    def many_heads(settings: Recipe, corpus: Corpus, seed: int) -> Transformer:
        return build(with_model(settings, heads=settings.model.width // 2), corpus, seed)

    monkeypatch.setattr(shape, "build", many_heads)
    result = judge(Shape())
    assert result.verdict == "does not hold"
    assert min(result.findings[0].values) == 2 * LENGTHS * 3


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 2)])
def test_shapes_of_one_model(
    recipe: Callable[..., Recipe], corpus: Corpus, layers: int, heads: int
) -> None:
    narrow = recipe(layers=layers, heads=heads, width=heads * HEAD_WIDTHS[0])
    wide = with_model(narrow, width=heads * 8)
    for settings, q in ((narrow, 0), (wide, 3 * layers)):
        model = build(settings, corpus, seed=1)
        assert differing(model, settings.model, 4, 7) == (0, q)
    # A theory of other heads is wrong at each site and layer, of q too.
    other = with_model(wide, heads=4 * heads).model
    assert differing(model, other, 4, 7) == (3 * layers, 3 * layers)


def test_models_are_those_of_their_seed_and_leave_the_random_state(
    recipe: Callable[..., Recipe], corpus: Corpus
) -> None:
    before = torch.get_rng_state()
    one, same, other = (build(recipe(), corpus, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    first, again, another = (next(model.parameters()) for model in (one, same, other))
    assert torch.equal(first, again)
    assert not torch.equal(first, another)


@pytest.mark.parametrize("changed", [{"positions": "none"}, {"max_positions": 2}, {"norm": "pre"}])
def test_whatever_else_the_model_has(
    recipe: Callable[..., Recipe], corpus: Corpus, changed: dict[str, str | int]
) -> None:
    assert counted(recipe(**changed), corpus, 3) == (0, 2 * LENGTHS * 3)


def test_a_laboratory_with_two_layers_and_heads(trained: Laboratory) -> None:
    (finding,) = judged("shape", Shape(), dict(Shape().measure(trained))).findings
    assert finding.verdict == "true by construction"
    assert finding.controls[0].values == [2 * LENGTHS * 3 * 2] * 2
