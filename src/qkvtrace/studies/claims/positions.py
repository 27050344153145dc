"""Claim g: self-attention without positions does not know any order (Lee et al. 2019).

"Set Transformer" (property 1) states it of self-attention. For the encoder f, source words x in any
order, and a permutation π of the words, <sos> and <eos> staying where they are:

equivariant   |f(πx) - πf(x)| / |f(x)|, where |.| is the root of the sum of squares over all
              sentences; the larger of before and after training, of models without positions.
              Control: the base with its positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from qkvtrace.settings import Recipe
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.studies.claims.tools.sources import sources
from qkvtrace.studies.claims.tools.variants import with_model
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory, Member

OUTPUT = "encoder.output"
SENTENCES = 8  # few, since their other orders are new to the corpus: each is translated by itself


@dataclass(frozen=True, kw_only=True)
class Positions:
    """The same words in another order."""

    letter: ClassVar = "g"
    title: ClassVar = "No positions, no order"
    sentence: ClassVar = "Without positions, self-attention is permutation-equivariant."
    source: ClassVar = "shorter tutorials, after “Set Transformer” (2019)"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="equivariant",
            says="Without positions, words in another order have the same vectors in that order.",
            measure="|f(πx) − πf(x)| / |f(x)| of the encoder f, before or after training",
            unit="share",
            least=1e-5,  # of float32, which adds up in another order
            because="nothing but the position vectors knows a word's place",
        ),
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Train with and without positions."""
        base = laboratory.base

        def deviations(recipe: Recipe) -> list[float]:
            return [
                max(_measured(member, epoch) for epoch in (LAST, UNTRAINED))
                for member in laboratory.members(recipe)
            ]

        without = with_model(base, positions="none")
        with_them = with_model(base, positions="learned") if base == without else base
        return {
            "equivariant": Measured(deviations(without), {"with positions": deviations(with_them)})
        }


def deviation(snapshot: Snapshot, orders: Sequence[Tensor]) -> float:
    """|f(πx) - πf(x)| / |f(x)|.

    The snapshot has some sentences, and then each of them again in its order (words), where word j
    is the one that was at orders[j].
    """
    wanted, found = [], []
    outputs = snapshot.values[OUTPUT].double()  # (sentences, positions, D)
    for once, again, order in zip(*outputs.chunk(2), orders, strict=True):
        places = torch.tensor([0, *(order + 1), len(order) + 1])
        wanted.append(once[places])
        found.append(again[: len(places)])
    return float((torch.cat(found) - torch.cat(wanted)).norm() / torch.cat(wanted).norm())


def _measured(member: Member, epoch: int) -> float:
    """The deviation of one member, by orders of its seed's."""
    generator = torch.Generator().manual_seed(member.seed)
    words = sources(member.corpus, SENTENCES)
    orders = [torch.randperm(len(each), generator=generator) for each in words]
    again = [[each[i] for i in order] for each, order in zip(words, orders, strict=True)]
    return deviation(member.observe([*words, *again], [OUTPUT], epoch), orders)
