"""How queries look that have a choice: those that may look at two positions or more.

Shapes: B sentences, T query and S key positions, H heads, N queries with a choice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, takewhile

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.sites import SITES, Site


@dataclass(frozen=True)
class Choices:
    """The scores or the weights of one layer's heads at one site, a row a query."""

    rows: Tensor  # (N, H, S), float64; 0 where a query may not look
    allowed: Tensor  # (N, 1, S), True where it may

    @property
    def count(self) -> Tensor:
        """How many positions each query may look at, (N, 1), 2 or more."""
        return self.allowed.sum(-1)


def choices(snapshot: Snapshot, value: str) -> Iterator[Choices]:
    """Each site's and layer's `value`, "scores" or "weights", in the order of SITES."""
    for site in SITES:
        for tap in taps(snapshot, site, value):
            found = snapshot.values[tap].double()  # (B, H, T, S)
            allowed = allowed_at(site, snapshot.sentences, *found.shape[2:])
            chooses = allowed.sum(-1) > 1
            where = allowed[chooses][:, None]
            yield Choices(found.transpose(1, 2)[chooses].where(where, 0), where)


def taps(snapshot: Snapshot, site: Site, value: str) -> list[str]:
    """The taps of a value that a snapshot has of a site, layer by layer."""
    names = (site.tap(layer, value) for layer in count())
    return list(takewhile(snapshot.values.__contains__, names))


def allowed_at(site: Site, sentences: Sequence[Sentence], queries: int, keys: int) -> Tensor:
    """Where queries may look, (B, T, S): at no padding, and in the decoder not ahead."""
    sides = (("query", queries), ("key", keys))
    query, key = (
        torch.arange(size) < torch.tensor([[len(site.tokens(s, axis))] for s in sentences])
        for axis, size in sides
    )  # (B, T) and (B, S)
    allowed = query[:, :, None] & key[:, None]
    return allowed.tril() if site.name == "decoder_self" else allowed
