"""PCA, cosine, entropy and debiased CKA: against other ways to compute them, and by hand."""

import math
from itertools import permutations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.errors import UserError
from qkvtrace.studies.geometry import (
    cosines,
    debiased_cka,
    effective_rank,
    entropy,
    fit_pca,
    structure,
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rotation(width: int) -> Tensor:
    return torch.linalg.qr(random(width, width, seed=9).double()).Q.float()


@pytest.mark.parametrize(("n", "width"), [(31, 7), (7, 31), (7, 7)])
def test_pca_is_that_of_the_singular_value_decomposition(n: int, width: int) -> None:
    x = random(n, width)
    centred = (x - x.mean(0)).double()
    _, lengths, axes = torch.linalg.svd(centred, full_matrices=False)
    space = fit_pca(x)
    assert_close(space.explained, (lengths**2 / (lengths**2).sum())[:3].tolist(), rtol=1e-5, atol=0)
    assert_close((space.axes * axes[:3]).sum(1).abs(), torch.ones(3).double(), rtol=0, atol=1e-6)
    assert_close(space.axes @ space.axes.mT, torch.eye(3).double(), rtol=0, atol=1e-12)
    assert_close(space.project(x).abs(), (centred @ axes[:3].mT).abs().float(), rtol=0, atol=1e-5)


def test_pca_by_hand() -> None:
    space = fit_pca(torch.tensor([[3.0, 1, 0], [-1, 1, 0], [1, 2, 0], [1, 0, 0]]), 2)
    assert_close(space.mean, torch.tensor([1.0, 1, 0]).double())
    assert_close(space.axes, torch.tensor([[1.0, 0, 0], [0, 1, 0]]).double())
    assert space.explained == pytest.approx([0.8, 0.2])
    assert_close(space.project(torch.tensor([[4.0, -1, 5]])), torch.tensor([[3.0, -2]]))


@pytest.mark.parametrize(("n", "width"), [(31, 7), (5, 31)])
def test_signs_do_not_depend_on_where_the_vectors_point(n: int, width: int) -> None:
    x = random(n, width)
    assert_close(fit_pca(x).axes, fit_pca(-x).axes, rtol=0, atol=1e-9)
    axes = fit_pca(x).axes
    assert (axes.gather(1, axes.abs().argmax(1, keepdim=True)) > 0).all()


@pytest.mark.parametrize("n", [4, 40])
def test_beyond_the_rank_nothing_is_explained(n: int) -> None:
    line = torch.linspace(-1, 1, n)[:, None] * random(1, 9)
    space = fit_pca(line)
    assert space.explained == pytest.approx([1, 0, 0], abs=1e-9)
    assert_close(space.project(line)[:, 1:], torch.zeros(n, 2), rtol=0, atol=1e-5)


@pytest.mark.parametrize("n", [1, 3, 7, 300])
def test_vectors_that_are_all_alike_stand_at_the_origin(n: int) -> None:
    """Though their mean in floating point may differ from each of them."""
    alike = (random(1, 50).double() / 3).expand(n, 50)
    space = fit_pca(alike)
    assert space.explained == [0, 0, 0]
    assert_close(space.project(alike), torch.zeros(n, 3), rtol=0, atol=1e-6)


@pytest.mark.parametrize("width", [1, 2])
def test_vectors_narrower_than_the_space_leave_axes_empty(width: int) -> None:
    x = random(11, width)
    space = fit_pca(x)
    at = space.project(x)
    assert at.shape == (11, 3)
    assert sum(space.explained[:width]) == pytest.approx(1)
    assert (at[:, width:] == 0).all()
    assert_close(torch.cdist(at, at), torch.cdist(x, x), rtol=0, atol=1e-3)


@pytest.mark.parametrize("n", [4, 40])
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_vectors_that_are_not_finite_have_no_space(n: int, broken: float) -> None:
    x = random(n, 9)
    x[1, 2] = broken
    with pytest.raises(UserError, match="these vectors are not finite: the training has diverged"):
        fit_pca(x)


def test_a_space_takes_vectors_of_any_shape() -> None:
    x = random(3, 11, 7)
    space = fit_pca(x.flatten(0, 1))
    assert_close(space.project(x)[2, 5], space.project(x[2, 5]))


def test_cosines_by_hand() -> None:
    one = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    other = torch.tensor([[6.0, 8.0], [-4.0, 3.0], [-3.0, -4.0]])
    assert_close(cosines(one, other), torch.tensor([[1.0, 0, -1], [0, 0, 0]]).double())


def test_entropy_by_hand() -> None:
    weights = torch.tensor([[1, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0]])
    assert entropy(weights).tolist() == pytest.approx([0, math.log(4), math.log(2)])


def test_effective_rank_counts_equal_values_and_lies_between_for_others() -> None:
    values = torch.tensor([[3.0, 0, 0], [5, 5, 0], [2, 2, 2], [3, 1, 0]])
    shares = math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert effective_rank(values).tolist() == pytest.approx([1, 2, 3, shares])
    assert_close(effective_rank(values * 7), effective_rank(values))


def cka(one: Tensor, other: Tensor) -> float:
    return float(debiased_cka(structure(one)[None], structure(other)[None]))


def hsic_u_statistic(one: Tensor, other: Tensor) -> float:
    """Song et al. 2012, theorem 3: the mean over each four different things, one after another."""
    k, m = (x.double() @ x.double().T for x in (one, other))
    terms = [
        float(k[t, u] * m[t, u] + k[t, u] * m[v, w] - 2 * k[t, u] * m[t, v])
        for t, u, v, w in permutations(range(len(k)), 4)
    ]
    return sum(terms) / len(terms)


def biased_cka(one: Tensor, other: Tensor) -> float:
    k, m = ((x - x.mean(0)) @ (x - x.mean(0)).T for x in (one.double(), other.double()))
    return float((k * m).sum() / (k.norm() * m.norm()))


@pytest.mark.parametrize("n", [4, 7])
def test_debiased_cka_is_made_of_u_statistics(n: int) -> None:
    one = random(n, 3)
    other = one @ random(3, 5, seed=1) + random(n, 5, seed=2)
    expected = hsic_u_statistic(one, other) / math.sqrt(
        hsic_u_statistic(one, one) * hsic_u_statistic(other, other)
    )
    assert cka(one, other) == pytest.approx(expected, abs=1e-9)


def test_unrelated_vectors_are_not_alike_though_the_biased_estimate_says_so() -> None:
    pairs = [(random(8, 64, seed=s), random(8, 64, seed=100 + s)) for s in range(50)]
    debiased = [cka(*pair) for pair in pairs]
    assert abs(sum(debiased) / 50) < 0.1
    assert min(biased_cka(*pair) for pair in pairs) > 0.7


def test_cka_does_not_mind_rotation_scale_and_shift() -> None:
    x, y = random(12, 6), random(12, 4, seed=1)
    moved = 3 * x @ rotation(6) + 7 * random(1, 6, seed=2)
    assert cka(x, moved) == pytest.approx(1, abs=1e-6)
    assert cka(moved, y) == pytest.approx(cka(x, y), abs=1e-6)
    assert cka(y, x) == pytest.approx(cka(x, y), abs=1e-12)
    stretched = x * torch.tensor([9.0, 1, 1, 1, 1, 1])
    assert cka(x, stretched) < 0.9


def test_structure_leaves_out_what_things_have_in_common() -> None:
    found = structure(random(9, 5))
    assert_close(found.sum(0), torch.zeros(9).double(), rtol=0, atol=1e-12)
    assert (found.diagonal() == 0).all()
    assert float(found.norm()) == pytest.approx(1)


def test_cka_without_structure_is_unknown() -> None:
    alike = (random(1, 50).double() / 3).expand(9, 50)
    assert math.isnan(cka(alike, random(9, 5)))
    with pytest.raises(AssertionError, match="needs 4 vectors, found 3"):
        cka(random(3, 5), random(3, 5))
