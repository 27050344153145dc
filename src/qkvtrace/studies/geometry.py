"""Measures of vectors and weights: PCA, cosine, entropy, similarity of whole sets of vectors.

Shapes: N vectors, D their width, C components.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


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

    By eigenvectors of the covariance in float64. Signs are fixed: the largest entry of each axis is
    positive. Beyond the rank of the vectors, axes explain nothing.
    """
    x = vectors.double()
    mean = x.mean(0)
    covariance = (x - mean).T @ (x - mean)
    values, axes = torch.linalg.eigh(covariance)  # ascending, axes in columns
    values, axes = values.flip(0).clamp(min=0), axes.flip(1).T
    if len(axes) < components:  # narrower than the space to be shown
        axes = torch.nn.functional.pad(axes, (0, 0, 0, components - len(axes)))
        values = torch.nn.functional.pad(values, (0, components - len(values)))
    axes = axes[:components]
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    axes = axes * torch.where(largest < 0, -1.0, 1.0)
    total = values.sum()
    explained = (values[:components] / total if total > 0 else values[:components]).tolist()
    return PCA(mean, axes, explained)


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


def debiased_cka(one: Tensor, other: Tensor) -> float:
    """How alike two sets of vectors of the same N >= 4 things are, (N, D) and (N, E): at most 1.

    Linear CKA (Kornblith et al. 2019) with the unbiased estimate of HSIC (Song et al. 2012), which
    is near 0 for unrelated vectors even where N is small; the biased one is not. Rotation, scale
    and shift do not matter. NaN if either set has no structure to compare.
    """
    k, other_k = _gram(one), _gram(other)
    shared = _hsic(k, other_k)
    scale = _hsic(k, k) * _hsic(other_k, other_k)
    return float(shared / scale.sqrt()) if scale > 0 else float("nan")


def _gram(vectors: Tensor) -> Tensor:
    """Inner products, without those of a vector with itself."""
    x = vectors.double()
    x = x - x.mean(0)
    gram = x @ x.T
    return gram.fill_diagonal_(0)


def _hsic(k: Tensor, other: Tensor) -> Tensor:
    n = len(k)
    assert n >= 4, f"debiased CKA needs 4 vectors, found {n}"
    total = (k * other).sum() + k.sum() * other.sum() / ((n - 1) * (n - 2))
    return (total - 2 * (k.sum(0) @ other.sum(0)) / (n - 2)) / (n * (n - 3))
