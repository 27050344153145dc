"""Words that two sentences share, and how much their vectors differ between the two.

Shapes: B sentences, S positions, H heads, K head width, D model width, N words that are shared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from qkvtrace.snapshots.sites import site_named

ENCODER = site_named("encoder_self")
QKV = ("q", "k", "v")

Place = tuple[Tensor, Tensor]  # sentences and positions, (N,) each


@dataclass(frozen=True)
class SharedWords:
    """Where each word stands in the one sentence, and in the other."""

    one: Place
    other: Place

    @classmethod
    def at(cls, found: Iterable[tuple[int, int, int, int]]) -> "SharedWords":
        """found: sentence and position, other sentence and position."""
        columns = torch.tensor(list(found)).T
        return cls((columns[0], columns[1]), (columns[2], columns[3]))

    def distance(self, values: Tensor) -> Tensor:
        """Mean cosine distance (0: alike, 1: unrelated), (B, H, S, K) -> (H,), (B, S, D) -> ()."""
        return 1 - cosine_similarity(*self._both(values), dim=-1).mean(0)

    def deviation(self, values: Tensor) -> float:
        """The largest |a - b| / |a| of a word's vector in the one sentence and in the other."""
        one, other = self._both(values)
        return float(((one - other).norm(dim=-1) / one.norm(dim=-1)).max())

    def _both(self, values: Tensor) -> tuple[Tensor, Tensor]:
        by_position = values.movedim(-2, 1).double()  # (B, S, H, K) or (B, S, D)
        return by_position[self.one], by_position[self.other]


def gap(values: Mapping[str, Tensor], shared: SharedWords, layer: int, tap: str) -> float:
    """How much farther apart a tap's vectors are than the q, k or v of a layer's encoder.

    Mean cosine distance of the tap less the largest of the three of q, k and v, the mean over
    heads.
    """
    qkv = torch.stack([shared.distance(values[ENCODER.tap(layer, v)]) for v in QKV])  # (3, H)
    return float((shared.distance(values[tap]) - qkv.amax(0)).mean())


def deviation(values: Mapping[str, Tensor], shared: SharedWords, vectors: Iterable[str]) -> float:
    """The largest deviation of some kinds of vectors in the encoder's first layer."""
    found = [shared.deviation(values[ENCODER.tap(0, vector)]) for vector in vectors]
    return float(torch.tensor(found, dtype=torch.float64).max())  # which keeps a NaN
