"""Intervals cover the true mean as often as they say, and nothing is said of too few seeds."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from qkvtrace.studies.evidence.interval import CONFIDENCE, FEWEST, bootstrap, student_t

DRAWS = 500
BINOMIAL = 1.96 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DRAWS)  # 0.019

POPULATIONS: dict[str, tuple[Callable[[torch.Generator, int], Tensor], float]] = {
    "normal": (lambda g, n: torch.randn(n, generator=g, dtype=torch.float64), 0.0),
    "uniform": (lambda g, n: torch.rand(n, generator=g, dtype=torch.float64), 0.5),
    "skewed": (lambda g, n: torch.randn(n, generator=g, dtype=torch.float64).exp(), math.exp(0.5)),
}


def coverage(draw: Callable[[torch.Generator, int], Tensor], mean: float, n: int) -> float:
    generator = torch.Generator().manual_seed(1)
    intervals = (bootstrap(draw(generator, n).tolist()) for _ in range(DRAWS))
    return sum(each.low <= mean <= each.high for each in intervals) / DRAWS


@pytest.mark.parametrize("n", [8, 32])
@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_95_of_100_intervals_hold_the_true_mean(name: str, n: int) -> None:
    draw, mean = POPULATIONS[name]
    assert coverage(draw, mean, n) == pytest.approx(CONFIDENCE, abs=BINOMIAL)


def test_of_32_very_skewed_values_fewer_intervals_hold_it() -> None:
    assert 0.85 < coverage(*POPULATIONS["skewed"], 32) < CONFIDENCE


def test_a_wrong_mean_is_rarely_held() -> None:
    draw, mean = POPULATIONS["normal"]
    assert coverage(draw, mean + 1, 32) < 0.01


@pytest.mark.parametrize(
    ("freedom", "table"), [(7, 2.3646), (10, 2.2281), (31, 2.0395), (120, 1.9799)]
)
def test_student_s_t_is_that_of_the_tables(freedom: int, table: float) -> None:
    assert student_t(freedom) == pytest.approx(table, abs=1e-4)


def test_the_interval_of_normal_values_is_about_student_s() -> None:
    values = torch.randn(40, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = bootstrap(values.tolist())
    half = student_t(39) * values.std().item() / math.sqrt(40)
    assert found.mean == pytest.approx(values.mean().item())
    assert found.low == pytest.approx(found.mean - half, abs=half / 10)
    assert found.high == pytest.approx(found.mean + half, abs=half / 10)


def test_the_same_values_have_the_same_interval_in_any_scale() -> None:
    values = [0.1, 0.5, 0.2, 0.9, 0.4, 0.3, 0.8, 0.7]
    one, other = bootstrap(values), bootstrap([10 * value for value in values])
    assert bootstrap(values) == one
    assert other.low == pytest.approx(10 * one.low)


def test_equal_values_leave_no_doubt() -> None:
    found = bootstrap([0.25] * FEWEST)
    assert (found.low, found.high) == (0.25, 0.25)


def test_of_too_few_values_nothing_is_said() -> None:
    found = bootstrap([0.25] * (FEWEST - 1))
    assert (found.mean, found.low, found.high) == (0.25, -math.inf, math.inf)
