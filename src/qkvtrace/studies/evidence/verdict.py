"""From numbers of many seeds to a verdict: the one rule for all claims.

A part `holds` if the whole 95 % interval of its mean effect lies above its `least`, and `does not
hold` if the whole interval lies below; else it is `undecided`. An identity is `true by
construction` if no seed deviates by more than rounding, and else `does not hold`. A claim does not
hold if any part does not; else it is undecided if any part is; else it is true by construction if
all parts are, and else it holds. Parts that ask beyond the claim are judged, but do not count.

Where a seed has no finite number (its training diverged, or there was nothing to compare), the part
is undecided. Controls do not decide: a sentence can be true of a trained model and of an untrained
one. But where the effect is not surely larger than in a control, seed by seed, the finding says so;
of an identity, where a control does not deviate, so that the measure could not have failed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from qkvtrace.studies.evidence.claim import Claim, Measured, Part
from qkvtrace.studies.evidence.interval import Interval, bootstrap

Verdict = Literal["holds", "does not hold", "true by construction", "undecided"]


@dataclass(frozen=True)
class Control:
    """The measure where the claim has no reason to hold."""

    name: str
    values: list[float]  # (N,)
    interval: Interval
    exceeded: bool  # whether the effect is surely larger; of an identity, whether this one deviates


@dataclass(frozen=True)
class Finding:
    """What came out for one part of a claim."""

    part: Part
    values: list[float]  # the effect of each seed, (N,)
    interval: Interval
    verdict: Verdict
    controls: list[Control]


@dataclass(frozen=True)
class Result:
    """What came out for a claim."""

    name: str
    letter: str
    title: str
    sentence: str
    source: str
    verdict: Verdict
    findings: list[Finding]


def judged(name: str, claim: Claim, measured: dict[str, Measured]) -> Result:
    """The verdict on a claim of this name, whose parts were measured."""
    findings = [finding(part, measured[part.name]) for part in claim.parts]
    return Result(
        name,
        claim.letter,
        claim.title,
        claim.sentence,
        claim.source,
        together([each.verdict for each in findings if not each.part.beyond]),
        findings,
    )


def finding(part: Part, measured: Measured) -> Finding:
    """The verdict on one part."""
    effect = list(measured.effect)
    interval = bootstrap(effect)
    controls = [
        Control(name, list(values), bootstrap(values), _exceeds(part, effect, values))
        for name, values in measured.controls.items()
    ]
    return Finding(part, effect, interval, _verdict(part, effect, interval), controls)


def together(parts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim with parts of these verdicts."""
    for verdict in ("does not hold", "undecided"):
        if verdict in parts:
            return verdict
    return "true by construction" if set(parts) == {"true by construction"} else "holds"


def _verdict(part: Part, effect: Sequence[float], interval: Interval) -> Verdict:
    if not all(map(math.isfinite, effect)):
        return "undecided"
    if part.because is not None:
        return "true by construction" if _exact(part, effect) else "does not hold"
    if interval.low > part.least:
        return "holds"
    return "does not hold" if interval.high < part.least else "undecided"


def _exceeds(part: Part, effect: Sequence[float], control: Sequence[float]) -> bool:
    """What `Control.exceeded` says."""
    if part.because is not None:
        return not _exact(part, control)
    differences = [one - other for one, other in zip(effect, control, strict=True)]
    return bootstrap(differences).low > 0


def _exact(part: Part, deviations: Sequence[float]) -> bool:
    return all(abs(value) <= part.least for value in deviations)
