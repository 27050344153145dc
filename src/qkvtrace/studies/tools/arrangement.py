"""How tokens lie to one another at each epoch, and how alike that is from epoch to epoch.

Shapes: E epochs, N tokens, K width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from qkvtrace.snapshots.sites import Site
from qkvtrace.studies.geometry import debiased_cka, structure


def different(vectors: Tensor) -> Tensor:
    """Without tokens that are the same at every epoch as one before: (E, N, K) -> (E, fewer, K).

    In the first layer a word at the same position is the same in all sentences. Debiased CKA leaves
    out how alike a thing is to itself, and must not meet it again as another.
    """
    rows = vectors.double().transpose(0, 1).flatten(1)
    same = torch.cdist(rows, rows) <= 1e-5 * rows.norm(dim=1)
    first = same.int().argmax(1) == torch.arange(len(rows))
    return vectors[:, first]


@dataclass(frozen=True)
class Compared:
    """One kind of vector at one site."""

    site: Site
    vector: str
    tokens: int  # N, the different ones
    similarity: Tensor  # (E, E)
    shuffled: Tensor  # (shuffles, E): to the last epoch, whose tokens are in another order

    @classmethod
    def of(cls, site: Site, vector: str, found: Tensor, shuffles: int) -> "Compared":
        """found (E, N, K)."""
        arranged = torch.stack([structure(vectors) for vectors in found])  # (E, N, N)
        generator = torch.Generator().manual_seed(0)
        orders = [torch.randperm(found.shape[1], generator=generator) for _ in range(shuffles)]
        control = torch.stack([arranged[-1][order][:, order] for order in orders])
        alike, shuffled = (debiased_cka(some, arranged) for some in (arranged, control))
        return cls(site, vector, found.shape[1], alike, shuffled)
