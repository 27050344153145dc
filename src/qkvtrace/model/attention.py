"""Multi-head attention: project, split heads, score, mask, softmax, mix, join, project.

"Attention Is All You Need" (Vaswani et al. 2017), section 3.2. Shapes: B sentences, T query and
S key positions, H heads, D model width, K = D / H head width.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from qkvtrace.model.taps import Tap


class KeysValues(NamedTuple):
    """What there is to attend to, split into heads."""

    k: Tensor  # (B, H, S, K)
    v: Tensor  # (B, H, S, K)

    def after(self, earlier: "KeysValues | None") -> "KeysValues":
        """These positions behind earlier ones: the cache of a translation in progress."""
        if earlier is None:
            return self
        return KeysValues(torch.cat([earlier.k, self.k], 2), torch.cat([earlier.v, self.v], 2))


class Attention(nn.Module):
    """Each query takes a mean of the values, weighted by how its q meets their k."""

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        dropout: float,
        scaled: bool = True,
        projections: Literal["separate", "shared"] = "separate",
        implementation: Literal["auto", "explicit", "fused"] = "auto",
    ) -> None:
        """Args:
        width: D, a multiple of `heads`.
        heads: H.
        dropout: probability that a weight is dropped in training.
        scaled: divide scores by sqrt(K), section 3.2.1 of the paper.
        projections: "shared" makes q and k with one projection, as tutorials do that begin simply.
        implementation: "explicit" makes scores and weights one line at a time; "fused" lets
            PyTorch's kernel make x1 from q, k and v, which is faster on a GPU; "auto" is
            fused on a GPU and explicit on a CPU. A watched attention is always explicit.
        """
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5 if scaled else 1.0
        self.implementation = implementation
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        if projections == "shared":
            self.key.weight, self.key.bias = self.query.weight, self.query.bias
        self.dropout = nn.Dropout(dropout)
        self.q = Tap("sentence", "head", "query", "d_head")
        self.k = Tap("sentence", "head", "key", "d_head")
        self.v = Tap("sentence", "head", "key", "d_head")
        self.scores = Tap("sentence", "head", "query", "key")
        self.weights = Tap("sentence", "head", "query", "key")
        self.x1 = Tap("sentence", "head", "query", "d_head")
        self.x4 = Tap("sentence", "query", "d_model")

    def keys_values(self, keys: Tensor) -> KeysValues:
        """keys (B, S, D) -> k and v, (B, H, S, K) each."""
        return KeysValues(
            self.k(self.split(self.key(keys))),
            self.v(self.split(self.value(keys))),
        )

    def forward(self, queries: Tensor, attended: KeysValues, mask: Tensor | None) -> Tensor:
        """queries (B, T, D), mask (B or 1, 1, T or 1, S), True where allowed -> (B, T, D)."""
        q = self.q(self.split(self.query(queries)))  # (B, H, T, K)
        if self.is_explicit(q):
            x1 = self.explicit(q, *attended, mask)
        else:
            x1 = self.fused(q, *attended, mask)
        return self.x4(self.output(self.join(self.x1(x1))))  # (B, T, D)

    def explicit(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """q (B, H, T, K), k and v (B, H, S, K) -> (B, H, T, K), by way of scores and weights."""
        scores = q @ k.mT * self.scale  # (B, H, T, S)
        if mask is not None:
            scores = scores.where(mask, -torch.inf)
        weights = self.weights(self.scores(scores).softmax(-1))  # (B, H, T, S)
        return self.dropout(weights) @ v

    def fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """The same by PyTorch's kernel, which never shows scores and weights."""
        dropout = self.dropout.p if self.training else 0.0
        return scaled_dot_product_attention(q, k, v, mask, dropout, scale=self.scale)

    def is_explicit(self, q: Tensor) -> bool:
        """Whether scores and weights are made one by one."""
        # On a CPU the kernel is no faster, and its bfloat16 backward is much slower.
        fused = self.implementation == "fused" or (self.implementation == "auto" and q.is_cuda)
        return not fused or self.scores.watched or self.weights.watched or self.x1.watched

    def split(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, K)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def join(self, x: Tensor) -> Tensor:
        """(B, H, T, K) -> (B, T, D)."""
        return x.transpose(1, 2).flatten(2)
