"""Claim k: learned attention is needed.

Measure: (exact(learned) - exact(replaced)) / exact(learned), where exact is the share of the
validation sentences that are translated as their reference, token for token, and replaced puts
other weights in place of all that the trained model computes, at every site, layer and head.
Translation "breaks" where more than half of those that were right are lost, which is `least`. A
model that got nothing right has nothing to lose, and no number.

Control: the same with hard attention, which is as rigid, but goes where the model learned to look.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.settings import InterventionSettings
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import Laboratory

REPLACED = {
    "uniform": "the same weight on every position",
    "first3": "all weight on the first three positions",
    "last": "all weight on the last position",
}


@dataclass(frozen=True, kw_only=True)
class LearnedAttention:
    """Translations with attention that nobody learned."""

    letter: ClassVar = "k"
    title: ClassVar = "Learned attention"
    sentence: ClassVar = (
        "Learned attention is needed: with uniform, first-three or last-position weights "
        "translation breaks."
    )
    source: ClassVar = "the article"
    parts: ClassVar[tuple[Part, ...]] = tuple(
        Part(
            name=name,
            says=f"With {weights}, translation breaks.",
            measure="(exact(learned) − exact(replaced)) / exact(learned)",
            unit="share of those right as learned",
            least=0.5,
        )
        for name, weights in REPLACED.items()
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Translate the validation split with each kind of attention."""
        members = laboratory.members(laboratory.base)
        learned = [member.exact_match() for member in members]

        def lost(kind: str) -> list[float]:
            change = InterventionSettings(attention=kind)
            return [
                (before - member.exact_match(change)) / before if before else math.nan
                for before, member in zip(learned, members, strict=True)
            ]

        controls = {"hard attention": lost("hard")}
        return {name: Measured(lost(name), controls) for name in REPLACED}
