"""The rule that turns intervals into verdicts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.interval import FEWEST
from qkvtrace.studies.evidence.laboratory import Laboratory
from qkvtrace.studies.evidence.verdict import Verdict, finding, judged, together

N = 32


def part(name: str = "planted", **changed: object) -> Part:
    given = {"says": "It is so.", "measure": "m", "unit": "u", "least": 0.1} | changed
    return Part(name=name, **given)  # type: ignore[arg-type]


def noise(mean: float, deviation: float = 0.2, seed: int = 0, n: int = N) -> list[float]:
    """Numbers of exactly this mean and standard deviation."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(n, generator=generator, dtype=torch.float64)
    values = (values - values.mean()) / values.std()
    return (mean + deviation * values).tolist()


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (0.5, "holds"),
        (0.19, "holds"),  # the interval is about 0.19 ± 0.07
        (0.15, "undecided"),
        (0.1, "undecided"),
        (0.05, "undecided"),
        (0.01, "does not hold"),
        (-0.5, "does not hold"),
    ],
)
def test_the_whole_interval_must_lie_above_or_below(mean: float, verdict: Verdict) -> None:
    assert finding(part(), Measured(noise(mean))).verdict == verdict


def test_more_seeds_decide_what_few_cannot() -> None:
    few, many = (finding(part(), Measured(noise(0.15, n=n))) for n in (N, 100))
    assert (few.verdict, many.verdict) == ("undecided", "holds")


def test_too_few_seeds_decide_nothing_however_clear() -> None:
    assert finding(part(), Measured([9.0] * (FEWEST - 1))).verdict == "undecided"
    assert finding(part(), Measured([9.0] * FEWEST)).verdict == "holds"


@pytest.mark.parametrize("seeds", [1, N])
def test_an_identity_is_true_if_no_seed_deviates(seeds: int) -> None:
    identity = part(least=1e-5, because="algebra")
    exact = Measured([1e-7] * seeds)
    assert finding(identity, exact).verdict == "true by construction"
    assert finding(identity, Measured([*exact.effect, 2e-5])).verdict == "does not hold"
    assert finding(identity, Measured([*exact.effect, -2e-5])).verdict == "does not hold"


@pytest.mark.parametrize("because", [None, "algebra"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_seed_without_a_finite_number_leaves_a_part_undecided(
    because: str | None, value: float
) -> None:
    found = finding(part(because=because), Measured([*noise(0.5), value]))
    assert found.verdict == "undecided"
    assert math.isnan(found.interval.mean)


def test_a_control_is_exceeded_seed_by_seed() -> None:
    effect = noise(0.5, 0.4)
    below = [value - 0.02 for value in effect]  # always, though both scatter widely
    found = finding(part(), Measured(effect, {"below": below, "alike": noise(0.5, 0.4, seed=1)}))
    assert {control.name: control.exceeded for control in found.controls} == {
        "below": True,
        "alike": False,
    }
    assert found.verdict == "holds"
    assert found.controls[0].interval.mean == pytest.approx(0.48)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        (["holds"], "holds"),
        (["true by construction"], "true by construction"),
        (["true by construction", "holds"], "holds"),
        (["holds", "undecided"], "undecided"),
        (["undecided", "true by construction"], "undecided"),
        (["undecided", "does not hold", "holds"], "does not hold"),
    ],
)
def test_a_claim_is_as_true_as_its_parts(parts: list[Verdict], verdict: Verdict) -> None:
    assert together(parts) == verdict


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A claim with one part that texts make, and one beyond."""

    letter: ClassVar = "z"
    title: ClassVar = "Planted"
    sentence: ClassVar = "It is so, and so on."
    source: ClassVar = "nowhere"
    parts: ClassVar[tuple[Part, ...]] = (part("claimed"), part("more", beyond=True))

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        raise NotImplementedError


def test_what_is_asked_beyond_the_claim_does_not_decide() -> None:
    measured = {"claimed": Measured(noise(0.5)), "more": Measured(noise(-0.5))}
    result = judged("planted", Planted(), measured)
    assert result.verdict == "holds"
    assert [each.verdict for each in result.findings] == ["holds", "does not hold"]
    assert (result.name, result.letter) == ("planted", "z")
