"""Claim l, where it is known what warm-up does."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from qkvtrace.settings import Recipe
from qkvtrace.studies.claims.warmup import Warmup, without_minus_with
from qkvtrace.studies.evidence.laboratory import Laboratory
from qkvtrace.studies.evidence.verdict import Result, finding, judged

PARTS = {part.name: part for part in Warmup.parts}


def planted(largest: float, highest: float) -> Callable[[Recipe], dict[str, Any]]:
    """First steps that without warm-up are `largest` times as long, and whose loss is `highest`."""

    def variant(wanted: Recipe) -> dict[str, Any]:
        warm = wanted.training.warmup_steps > 0
        return {
            "updates": torch.tensor([0.001, 0.002, 0.0015]) * (1 if warm else largest),
            "losses": torch.tensor([3.0, 2.5, 2.0] if warm else [3.0, highest, 2.0]),
        }

    return variant


@pytest.mark.parametrize(
    ("largest", "highest", "verdicts"),
    [
        (4.0, 3.5, ["holds", "holds"]),
        (1.5, 3.05, ["does not hold", "does not hold"]),
        (0.5, 1.0, ["does not hold", "does not hold"]),
    ],
)
def test_what_is_planted_is_found(
    judge: Callable[..., Result], largest: float, highest: float, verdicts: list[str]
) -> None:
    result = judge(Warmup(), variant=planted(largest, highest))
    assert [each.verdict for each in result.findings[:2]] == verdicts
    assert result.verdict == verdicts[0]  # the loss is beyond the claim
    doublings = torch.tensor(largest).log2().item()
    assert result.findings[0].interval.mean == pytest.approx(doublings)
    assert result.findings[1].interval.mean == pytest.approx(max(0.0, highest - 3.0))


def test_without_warm_up_in_the_recipe_it_is_compared_with_40_steps(
    judge: Callable[..., Result], recipe: Callable[..., Recipe]
) -> None:
    asked: list[int] = []

    def variant(wanted: Recipe) -> dict[str, Any]:
        asked.append(wanted.training.warmup_steps)
        return {"updates": torch.ones(3), "losses": torch.ones(3)}

    judge(Warmup(), variant=variant)
    assert set(asked) == {recipe().training.warmup_steps, 0}


def test_noise_is_undecided_and_not_above_the_next_seed() -> None:
    generator = torch.Generator().manual_seed(0)
    with_it, without = torch.randn(2, 32, generator=generator, dtype=torch.float64).tolist()
    found = finding(PARTS["loss"], without_minus_with(with_it, without))
    assert found.verdict == "undecided"
    assert not found.controls[0].exceeded


def test_the_control_compares_each_seed_with_the_next_both_with_warm_up() -> None:
    measured = without_minus_with([1.0, 2.0, 4.0], [2.0, 5.0, 4.0])
    assert measured.effect == [1.0, 3.0, 0.0]
    assert measured.controls == {"next seed": [1.0, 2.0, -3.0]}


def test_on_real_members(trained: Laboratory) -> None:
    result = judged("warmup", Warmup(), dict(Warmup().measure(trained)))
    updates, loss, quality = result.findings
    assert all(value > 0 for value in updates.values)
    assert all(-10 < value < 10 for value in loss.values)
    assert all(-1 <= value <= 1 for value in quality.values)
