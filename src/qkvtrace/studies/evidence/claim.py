"""What every claim is: sentences that can be tested, and a number for each seed that tests them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from qkvtrace.studies.evidence.laboratory import Laboratory


@dataclass(frozen=True, kw_only=True)
class Part:
    """One sentence of a claim, and the number that tests it.

    The number, the effect, is above `least` in a seed where the sentence is true and the more so
    the truer it is. An identity is true by algebra: its number is a deviation, and `least` is the
    rounding that is allowed.
    """

    name: str  # short; no other part of the claim has it
    says: str
    measure: str  # the formula in words and symbols
    unit: str
    least: float
    because: str | None = None  # why it must be so, which makes it an identity
    beyond: bool = False  # asks further than texts claim, and does not decide about the claim


@dataclass(frozen=True)
class Measured:
    """A part's number for each seed, and the same number where the claim has no reason to hold."""

    effect: Sequence[float]  # (N,)
    controls: Mapping[str, Sequence[float]] = field(default_factory=dict)  # (N,) each


class Claim(Protocol):
    """A frozen dataclass whose fields are its settings; `configs/claims.yaml` has their defaults.

    Its module's docstring defines the measure of each part in one formula.
    """

    letter: ClassVar[str]  # by which claims are ordered, a to m
    title: ClassVar[str]
    sentence: ClassVar[str]  # the claim, as texts make it
    source: ClassVar[str]  # which texts
    parts: ClassVar[tuple[Part, ...]]

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Each part's numbers, by its name; raises UserError where the settings do not fit."""
        ...
