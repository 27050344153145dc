"""Random vectors in the place of a model's, of any width."""

import torch
from torch import Tensor

WIDTHS = tuple(2**n for n in range(2, 11))  # 4 ... 1024


def draw(seed: int, queries: int, *counts: int) -> list[Tensor]:
    """Independent numbers of mean 0 and variance 1, (queries, count, 1024) for each count."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(queries, count, WIDTHS[-1], generator=generator) for count in counts]


def products(q: Tensor, k: Tensor) -> Tensor:
    """q · k at each of WIDTHS, where a narrow vector is the beginning of a wide one.

    q (queries, 1, 1024), k (queries, keys, 1024) -> (widths, queries, keys).
    """
    return torch.stack([(q[..., :d] * k[..., :d]).sum(-1) for d in WIDTHS])
