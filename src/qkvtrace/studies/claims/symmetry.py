"""Claim e: what one shared projection for q and k does to scores.

S (S, S) are the scores of encoder self-attention in one sentence, between its own positions, and
|.|_F is the root of the sum of squares, here over all sentences together.

shared        |S - Sᵀ|_F / |S|_F of models whose q and k are of one projection, the largest over
              heads, layers, before and after training. Control: separate projections, trained.
separate      |S - Sᵀ|_F / 2 |S|_F of models with separate projections, trained, mean over heads
              and layers. (S - Sᵀ) / 2 is the part of S that is antisymmetric, and lies at right
              angles to the symmetric rest: the measure is its share of the length of S, 0 if S is
              symmetric and √½ = 0.71 if S has no structure. 0.1 is 1 % of the sum of squares.
              Controls: the same untrained; shared projections, trained.
generalise    exact match on validation pairs that training does not hold, of separate projections
              minus shared ones, which have fewer parameters: `better` has the controls.

Sources: shorter tutorials; "Reformer" (Kitaev et al. 2020, section 2) shares them on purpose and
finds no loss. All sites of a variant share, though only self-attention can be symmetric.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import site_named
from qkvtrace.studies.claims.tools.choices import allowed_at, taps
from qkvtrace.studies.claims.tools.generalisation import LEAST, better
from qkvtrace.studies.claims.tools.sources import sources
from qkvtrace.studies.claims.tools.variants import with_model
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory

ENCODER = site_named("encoder_self")
SCORES = "encoder.*.scores"


@dataclass(frozen=True, kw_only=True)
class Symmetry:
    """Scores of a word with a word, and the other way round."""

    letter: ClassVar = "e"
    title: ClassVar = "Separate projections"
    sentence: ClassVar = (
        "Scores from one projection for q and k are symmetric; separate projections give "
        "asymmetric scores and generalise better."
    )
    source: ClassVar = "shorter tutorials"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="shared",
            says="One projection for q and k makes the encoder's scores symmetric.",
            measure="|S − Sᵀ| / |S|, largest over heads, layers, before and after training",
            unit="share",
            least=1e-5,  # of float32, whose own rounding of S is some 1e-6
            because="q = k, and q · k is k · q",
        ),
        Part(
            name="separate",
            says="Separate projections make them asymmetric.",
            measure="|S − Sᵀ| / 2|S|, the antisymmetric share: 0 symmetric, 0.71 no structure",
            unit="share",
            least=0.1,
        ),
        Part(
            name="generalise",
            says="Separate projections translate unseen sentences better than a shared one.",
            measure="exact match on held-out pairs, separate − shared",
            unit="share of sentences",
            least=LEAST,
        ),
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Train with separate and with shared projections, on both corpora."""
        base, held_out = laboratory.base, laboratory.held_out
        seen = sources(laboratory.corpus(base))

        def asymmetries(projections: str, epoch: int) -> list[Tensor]:
            settings = with_model(base, projections=projections)
            return [
                asymmetry(member.observe(seen, [SCORES], epoch))
                for member in laboratory.members(settings)
            ]

        shared, separate = (asymmetries(each, LAST) for each in ("shared", "separate"))
        before = asymmetries("shared", UNTRAINED)
        return {
            "shared": Measured(
                [2 * float(torch.stack(both).max()) for both in zip(shared, before, strict=True)],
                {"separate projections": [2 * float(each.max()) for each in separate]},
            ),
            "separate": Measured(
                [float(each.mean()) for each in separate],
                {
                    "untrained": [
                        float(each.mean()) for each in asymmetries("separate", UNTRAINED)
                    ],
                    "shared projection": [float(each.mean()) for each in shared],
                },
            ),
            "generalise": better(
                laboratory,
                *(with_model(held_out, projections=each) for each in ("separate", "shared")),
            ),
        }


def asymmetry(snapshot: Snapshot) -> Tensor:
    """|S - Sᵀ| / 2|S| of the encoder's heads, 0 symmetric to 1 antisymmetric: (layers, heads)."""
    found = []
    for tap in taps(snapshot, ENCODER, "scores"):
        scores = snapshot.values[tap].double()  # (B, H, S, S)
        own = allowed_at(ENCODER, snapshot.sentences, *scores.shape[2:])[:, None]
        scores = scores.where(own, 0)
        odd = (scores - scores.mT) / 2
        lengths = (torch.linalg.vector_norm(each, dim=(0, 2, 3)) for each in (odd, scores))
        found.append(torch.div(*lengths))
    return torch.stack(found)
