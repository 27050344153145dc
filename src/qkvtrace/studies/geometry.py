"""Measures of vectors and weights: PCA, cosine, entropy, similarity of whole sets of vectors.

Shapes: N vectors, D their width, C components.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from qkvtrace.errors import UserError

ROUNDING = 1e-20  # the share of squared lengths that float64 leaves where vectors are all alike


@dataclass(frozen=True)
class PCA:
    """A fixed space of few dimensions, fitted once, into which vectors are projected."""

    mean: Tensor  # (D,)
    axes: Tensor  # (C, D), orthonormal, by falling variance
    explained: list[float]  # each component's share of the variance, 0 to 1

    def project(self, vectors: Tensor) -> Tensor:
        """(..., D) -> (..., C)."""
        return ((vectors.double() - self.mean) @ self.axes.T).float()


def fit_pca(vectors: Tensor, components: int = 3) -> PCA:
    """The directions along which `vectors` (N, D) vary most.

    By eigenvectors of the covariance in float64, or where N < D by singular vectors, which are the
    same. Signs are fixed: the largest entry of each axis is positive. Beyond the rank of the
    vectors, axes explain nothing. Raises UserError if they are not finite.
    """
    check_finite(vectors, "vectors")
    x = vectors.double()
    mean = x.mean(0)
    values, axes = _principal(x - mean)
    if len(axes) < components:  # fewer than the space to be shown has
        axes = torch.nn.functional.pad(axes, (0, 0, 0, components - len(axes)))
        values = torch.nn.functional.pad(values, (0, components - len(values)))
    axes = axes[:components]
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    axes = axes * torch.where(largest < 0, -1.0, 1.0)
    total = values.sum()
    differ = total > ROUNDING * x.square().sum()
    explained = values[:components] / total if differ else torch.zeros(components)
    return PCA(mean, axes, explained.tolist())


def _principal(centred: Tensor) -> tuple[Tensor, Tensor]:
    """Variances (C,) times N, falling, and their axes (C, D); C: the smaller of N and D."""
    n, width = centred.shape
    if n < width:  # a covariance of vocabulary-sized logits would be far larger than they are
        _, lengths, axes = torch.linalg.svd(centred, full_matrices=False)
        return lengths.square(), axes
    values, columns = torch.linalg.eigh(centred.T @ centred)  # ascending
    return values.flip(0).clamp(min=0), columns.flip(1).T


def check_finite(values: Tensor, named: str) -> None:
    """Raise UserError unless all numbers are finite."""
    if not values.isfinite().all():
        raise UserError(f"these {named} are not finite: the training has diverged")


def cosines(one: Tensor, other: Tensor) -> Tensor:
    """The cosine of each of `one` (N, D) with each of `other` (M, D): (N, M); 0 for a zero vector.

    Valid within one model: vectors of different seeds share no basis.
    """
    return _unit(one) @ _unit(other).mT


def _unit(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors.double(), dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """How spread out attention is, in nats: weights (..., S) summing to 1 -> (...).

    0: all on one position; log n: equal over n of them.
    """
    return torch.special.entr(weights.double()).sum(-1)


def effective_rank(values: Tensor) -> Tensor:
    """How many singular values matter: exp of the entropy of their shares, (..., C) -> (...).

    "The effective rank" (Roy and Vetterli 2007): 1 where one value is all there is, n where n are
    equal.
    """
    shares = values.double() / values.double().sum(-1, keepdim=True)
    return entropy(shares).exp()


def debiased_cka(some: Tensor, others: Tensor) -> Tensor:
    """How alike each of `some` sets of vectors is to each of `others`: at most 1.

    Sets are of the same N >= 4 things, and come by their `structure`: (A, N, N) and (B, N, N) ->
    (A, B). Linear CKA (Kornblith et al. 2019) with the unbiased estimate of HSIC (Song et al.
    2012), which is near 0 for unrelated vectors even where N is small; the biased one is not.
    Rotation, scale and shift do not matter. NaN if either set has no structure to compare.
    """
    return some.flatten(1) @ others.flatten(1).T


def structure(vectors: Tensor) -> Tensor:
    """What debiased CKA compares: (N, D) -> (N, N).

    The inner products of different things, less what a thing has in common with all others
    ("U-centred", Szekely and Rizzo 2014), at length 1; NaN if nothing is left.
    """
    n = len(vectors)
    assert n >= 4, f"debiased CKA needs 4 vectors, found {n}"
    x = vectors.double()
    x = x - x.mean(0)
    gram = (x @ x.T).fill_diagonal_(0)
    rows = gram.sum(0) / (n - 2)
    gram = gram - rows - rows[:, None] + gram.sum() / ((n - 1) * (n - 2))
    gram.fill_diagonal_(0)
    length = gram.norm()
    differ = length > ROUNDING * vectors.double().square().sum()
    return gram / length if differ else torch.full_like(gram, torch.nan)
