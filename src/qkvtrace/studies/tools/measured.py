"""One head in a few numbers, over all sentences and without padding."""

from dataclasses import dataclass

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import VECTORS, Site
from qkvtrace.studies.geometry import entropy

NORMS = ("q", "k", "v")


@dataclass(frozen=True)
class Measured:
    """A head at one epoch; NaN where the training has diverged."""

    entropy: float  # of a word's attention, the mean, in nats
    uniform: float  # what it would be if every word attended equally to all it may see
    low: float  # the smallest of the scores that are not masked
    high: float  # the largest
    deviation: float  # their standard deviation
    norms: dict[str, float]  # mean Euclidean lengths, by NORMS


def measured(snapshot: Snapshot, site: Site, layer: int, head: int) -> Measured:
    """Measure a head.

    Shapes: B sentences, T queries, S keys.
    """
    weights, scores = (
        snapshot.values[site.tap(layer, value)][:, head] for value in ("weights", "scores")
    )  # (B, T, S)
    there = {
        axis: _there(snapshot, site, axis, positions)
        for axis, positions in zip(("query", "key"), weights.shape[1:], strict=True)
    }
    # What is masked is -inf; a score that is NaN is not.
    seen = there["query"][..., None] & there["key"][:, None] & (scores != -torch.inf)
    inside = scores[seen].double() if seen.any() else torch.tensor([torch.nan])
    norms = {}
    for vector in NORMS:
        lengths = site.vectors(snapshot.values, layer, head, vector).double().norm(dim=-1)
        real = there[VECTORS[vector]]
        norms[vector] = float(lengths[:, : real.shape[1]][real].mean())
    return Measured(
        float(entropy(weights)[there["query"]].mean()),
        float(seen.sum(-1)[there["query"]].double().log().mean()),
        float(inside.min()),
        float(inside.max()),
        float(inside.std(correction=0)),
        norms,
    )


def _there(snapshot: Snapshot, site: Site, axis: str, positions: int) -> Tensor:
    """Where words stand along an axis, and not padding: (B, positions)."""
    lengths = torch.tensor([len(site.tokens(s, axis)) for s in snapshot.sentences])
    return torch.arange(positions) < lengths[:, None]
