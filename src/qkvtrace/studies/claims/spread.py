"""Claim b: decoder vectors are more spread out than encoder vectors.

Self-attention of the decoder against that of the encoder. For each of q, k, v and x1, X (n, K) are
a head's different vectors over all tokens of the sentences, x its rows, u = x / |x|, m their mean:

distance: log2 of r(decoder) / r(encoder), with r = sqrt(sum |x - m|^2 / (n - 1)), the root mean
    square distance from the mean, to which n - 1 lends no bias where one site has fewer words; the
    mean over q, k, v and x1, layers and heads. 0: as far; 1: twice as far. Pictures of points show
    this one, but it grows with the vectors' length. A tenth farther, log2 1.1 = 0.14, is the least
    worth the name.
direction: d(decoder) - d(encoder), with d the mean of 1 - cos over each two different vectors; the
    mean as above. Length does not matter. On its scale 0 is all alike and 1 unrelated: a tenth of
    that way is the least.

Controls: the same before training, where the two languages' words differ but nothing is learned;
and both sites' vectors mixed and split again at random, where nothing differs but by chance.
Whether the reason that texts give is the right one is not tested: in the first layer the decoder's
self-attention has no more inputs than the encoder's, and fewer words to look at.

From "Understanding Q, K, V in Transformer (self attention)".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import VECTORS, Site, site_named
from qkvtrace.studies.claims.tools.different_vectors import different
from qkvtrace.studies.claims.tools.sources import sources
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory, Member, Words

SENTENCES = 64  # at most, of the validation split
COMPARED = tuple(map(site_named, ("decoder_self", "encoder_self")))

Both = tuple[Tensor, Tensor]  # vectors of decoder and encoder, (n, H, K) each


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far apart the vectors of the two self-attentions lie."""

    letter: ClassVar = "b"
    title: ClassVar = "Spread of encoder and decoder"
    sentence: ClassVar = (
        "Decoder vectors are more spread out than encoder vectors, since the decoder has more "
        "inputs."
    )
    source: ClassVar = "the article"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="distance",
            says="Vectors of the decoder's self-attention lie farther from their mean.",
            measure="log2 of the ratio, decoder to encoder, of the root mean square distance from "
            "the mean; q, k, v and x1",
            unit="doublings",
            least=0.14,
        ),
        Part(
            name="direction",
            says="Vectors of the decoder's self-attention point in more different directions.",
            measure="mean cosine distance between two different vectors, decoder minus encoder; "
            "q, k, v and x1",
            unit="cosine distance",
            least=0.1,
        ),
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Raises UserError where no sentence's words are all known."""
        members = laboratory.members(laboratory.base)
        sentences = sources(members[0].corpus, SENTENCES)
        rows = [_numbers(member, sentences) for member in members]
        trained, untrained, shuffled = (zip(*each, strict=True) for each in zip(*rows, strict=True))
        return {
            part.name: Measured(effect, {"untrained": before, "shuffled": mixed})
            for part, effect, before, mixed in zip(
                self.parts, trained, untrained, shuffled, strict=True
            )
        }


def _numbers(member: Member, sentences: Sequence[Words]) -> tuple[tuple[float, float], ...]:
    """Distance and direction of the trained, the untrained and the shuffled."""
    layers = range(member.recipe.model.layers)
    taps = [site.tap(n, vector) for site, n, vector in product(COMPARED, layers, VECTORS)]
    trained, untrained = (
        [_vectors(snapshot, layer, vector) for layer, vector in product(layers, VECTORS)]
        for snapshot in (member.observe(sentences, taps, epoch) for epoch in (LAST, UNTRAINED))
    )
    generator = torch.Generator().manual_seed(member.seed)
    return spread(trained), spread(untrained), spread([mixed(b, generator) for b in trained])


def _vectors(snapshot: Snapshot, layer: int, vector: str) -> Both:
    decoder, encoder = (at(snapshot, site, layer, vector) for site in COMPARED)
    return decoder, encoder


def at(snapshot: Snapshot, site: Site, layer: int, vector: str) -> Tensor:
    """All different vectors of one kind, (n, H, K)."""
    places = different(site, layer, vector, snapshot.sentences)
    sentences, positions = torch.tensor(list(places)).T
    return snapshot.values[site.tap(layer, vector)].transpose(1, 2)[sentences, positions].double()


def spread(compared: Sequence[Both]) -> tuple[float, float]:
    """Distance and direction, the means over the kinds of vectors and heads."""
    return (
        mean(
            float((radius(decoder) / radius(encoder)).log2().mean())
            for decoder, encoder in compared
        ),
        mean(float((angle(decoder) - angle(encoder)).mean()) for decoder, encoder in compared),
    )


def radius(vectors: Tensor) -> Tensor:
    """Root mean square distance from the mean, (n, H, K) -> (H,)."""
    return vectors.var(0).sum(-1).sqrt()


def angle(vectors: Tensor) -> Tensor:
    """Mean cosine distance between two different vectors, (n, H, K) -> (H,)."""
    n, unit = len(vectors), normalize(vectors, dim=-1)
    pairs = unit.sum(0).square().sum(-1) - unit.square().sum((0, -1))  # each two, both ways
    return 1 - pairs / (n * (n - 1))


def mixed(both: Both, generator: torch.Generator) -> Both:
    """The vectors of both sites, dealt out again at random."""
    together = torch.cat(both)
    order = torch.randperm(len(together), generator=generator)
    decoder, encoder = together[order].split([len(vectors) for vectors in both])
    return decoder, encoder
