"""Which of two networks translates sentences better that it was not trained on."""

import math

from qkvtrace.settings import Recipe
from qkvtrace.studies.evidence.claim import Measured
from qkvtrace.studies.evidence.laboratory import Laboratory

LEAST = 0.01  # one sentence in a hundred


def better(laboratory: Laboratory, one: Recipe, other: Recipe) -> Measured:
    """Exact match of `one` minus that of `other` on the validation pairs, seed by seed.

    Where all models get everything right, or nothing, they cannot be told apart: NaN. Controls:
    `one` with another seed in the place of `other`, whose spread is what chance alone gives (its
    mean is 0 by algebra); and the same difference on the training pairs, which is of learning, not
    of generalising.
    """
    ones, others = (_exact_matches(laboratory, recipe, "valid") for recipe in (one, other))
    learned = [_exact_matches(laboratory, recipe, "train") for recipe in (one, other)]
    told_apart = set(ones + others) not in ({0.0}, {1.0})
    return Measured(
        [a - b if told_apart else math.nan for a, b in zip(ones, others, strict=True)],
        {
            "another seed": differences(ones),
            "training pairs": [a - b for a, b in zip(*learned, strict=True)],
        },
    )


def _exact_matches(laboratory: Laboratory, recipe: Recipe, split: str) -> list[float]:
    return [member.exact_match(split=split) for member in laboratory.members(recipe)]


def differences(values: list[float]) -> list[float]:
    """Each seed's value minus that of the next one, and of the last one minus the first."""
    return [one - next_one for one, next_one in zip(values, values[1:] + values[:1], strict=True)]
