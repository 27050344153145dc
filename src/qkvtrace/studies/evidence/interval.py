"""How sure a mean over seeds is: a bootstrap interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import torch

FEWEST = 8  # values of which an interval is made; of fewer it would hold the mean too rarely
RESAMPLES = 10_000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean over seeds, and where the mean over all seeds there are is likely to lie."""

    mean: float
    low: float
    high: float


def bootstrap(values: Sequence[float]) -> Interval:
    """The mean of N values and its 95 % interval, the same for the same values.

    Percentiles of the means of 10,000 samples drawn from the values, with replacement (Efron
    1979), expanded as Hesterberg (2015, "What Teachers Should Know About the Bootstrap") does: the
    plain ones are too narrow where N is small, since t's distribution is wider than the normal one
    and by sqrt((N - 1) / N). Of fewer than FEWEST values nothing is said: the interval is infinite.
    Of values that are not all finite there is no mean either: NaN.
    """
    sample = torch.tensor(values, dtype=torch.float64)
    if not sample.isfinite().all():
        return Interval(math.nan, math.nan, math.nan)
    n, mean = len(sample), sample.mean().item()
    if n < FEWEST:
        return Interval(mean, -math.inf, math.inf)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(n, (RESAMPLES, n), generator=generator)
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * student_t(n - 1))
    places = torch.tensor([tail, 1 - tail], dtype=torch.float64)
    low, high = sample[drawn].mean(1).quantile(places).tolist()
    return Interval(mean, low, high)


def student_t(freedom: int) -> float:
    """Where Student's t has CONFIDENCE between itself and its negative.

    Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5): right to 0.001 from 4 degrees on.
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))
