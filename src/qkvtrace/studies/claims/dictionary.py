"""Claim i: attention as a dictionary whose look-up is soft (Graves et al. 2014, section 3.3.1).

limit         For drawn q, n = 16 keys and values (d), scores s = q · k, the best s_b, its
              lead g over the second best, and x1(β) = Σ softmax(βs) v: each other weight is at
              most exp(-βg), hence |x1(β) - v_b| <= 2 (n - 1) exp(-βg) max|v|. By how much the left
              exceeds the right / max|v|, the largest over d = 4, 8, ..., 1024, 16 queries and
              βg = 1, 2, 4, ..., 64; at the last the right is 5e-27 max|v|. Control: β = 0, equal
              weights, against the bound of βg = 64.
lookup        The share of validation sources that the trained model translates the same when each
              query gives all its weight to its best key. `least`: most of them. Controls: the same
              untrained; trained, with the weight in equal shares in place of the best key.
sharp         (largest weight - 1/n) / (1 - 1/n), where n is the positions that the query may look
              at, from 0, equal weights, to 1, a look-up; mean over queries with n > 1, sites,
              layers and heads; trained minus untrained. `least` is a tenth of the scale. Control:
              one untrained model minus the next.

"Neural Turing Machines" looks keys up by a softmax whose sharpness β is learned.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor

from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.studies.claims.tools.choices import Choices, choices
from qkvtrace.studies.claims.tools.drawn import WIDTHS, draw, products
from qkvtrace.studies.claims.tools.generalisation import differences
from qkvtrace.studies.claims.tools.sources import sources
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory, Member

QUERIES, KEYS = 16, 16
SHARPNESS = tuple(2**n for n in range(7))  # βg
HARD, UNIFORM = (InterventionSettings(attention=each) for each in ("hard", "uniform"))


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """Attention beside the look-up that it resembles."""

    letter: ClassVar = "i"
    title: ClassVar = "A soft dictionary"
    sentence: ClassVar = (
        "Attention is a soft dictionary: as scores sharpen it becomes a hard look-up of the best "
        "key's value."
    )
    source: ClassVar = "shorter tutorials"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="limit",
            says="As scores sharpen, x1 becomes the value of the best key.",
            measure="excess of |x1 − v_best| over 2 (n − 1) exp(−β · lead) max|v|, by max|v|",
            unit="share",
            least=1e-12,  # of float64
            because="each other weight is at most exp(−β · lead), where the best key leads",
        ),
        Part(
            name="lookup",
            says="Trained models translate the same when each query sees its best key alone.",
            measure="share of validation sources translated as with learned attention",
            unit="share of sentences",
            least=0.5,
        ),
        Part(
            name="sharp",
            says="Training sharpens the scores towards a look-up.",
            measure="(largest weight − 1/n) / (1 − 1/n), trained − untrained",
            unit="share of the largest",
            least=0.1,
        ),
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Draw from each seed; translate and look with the members of the base."""
        corpus = laboratory.corpus(laboratory.base)
        members, seen = laboratory.members(laboratory.base), sources(corpus)
        limits = [excess(seed) for seed in laboratory.seeds]
        trained, untrained = (
            [sharpness(member.observe(seen, ["*.weights"], epoch)) for member in members]
            for epoch in (LAST, UNTRAINED)
        )
        return {
            "limit": Measured(
                [sharpening for sharpening, _ in limits],
                {"equal weights": [equal for _, equal in limits]},
            ),
            "lookup": Measured(
                [same(member, HARD) for member in members],
                {
                    "untrained": [same(member, HARD, UNTRAINED) for member in members],
                    "equal weights": [same(member, UNIFORM) for member in members],
                },
            ),
            "sharp": Measured(
                [after - before for after, before in zip(trained, untrained, strict=True)],
                {"another seed, both untrained": differences(untrained)},
            ),
        }


def error(scores: Tensor, values: Tensor, sharpness: float) -> Tensor:
    """|x1(β) - v_b| / max|v| where βg is `sharpness`.

    scores (queries, keys), values (queries, keys, d) -> (queries).
    """
    (first, second), best = scores.topk(2).values.unbind(-1), scores.argmax(-1)
    weights = (scores * (sharpness / (first - second))[:, None]).softmax(-1)
    x1 = (weights[:, None] @ values)[:, 0]
    away = x1 - values[torch.arange(len(values)), best]
    return away.norm(dim=-1) / values.norm(dim=-1).amax(-1)


def bound(sharpness: float) -> float:
    """What the error is at most."""
    return 2 * (KEYS - 1) * math.exp(-sharpness)


def excess(seed: int) -> tuple[float, float]:
    """By how much the error is beyond its bound, as scores sharpen, and with equal weights."""
    q, k, v = (each.double() for each in draw(seed, QUERIES, 1, KEYS, KEYS))
    sharpened, equal = [0.0], []
    for d, scores in zip(WIDTHS, products(q, k), strict=True):
        values = v[..., :d]
        sharpened += [float(error(scores, values, s).max()) - bound(s) for s in SHARPNESS]
        equal.append(float(error(scores, values, 0).max()) - bound(SHARPNESS[-1]))
    largest, without = (float(torch.tensor(each).max()) for each in (sharpened, equal))
    return largest, without


def sharpness(snapshot: Snapshot) -> float:
    """How near a query's largest weight is to being all, mean over sites, layers and heads."""
    return fmean(float(_sharpness(each).mean()) for each in choices(snapshot, "weights"))


def _sharpness(weights: Choices) -> Tensor:
    """(N, H)."""
    equal = 1 / weights.count
    return (weights.rows.amax(-1) - equal) / (1 - equal)


def same(member: Member, change: InterventionSettings, epoch: int = LAST) -> float:
    """The share of validation sources that a change does not translate otherwise."""
    words = sources(member.corpus)
    pairs = zip(
        member.translate(words, epoch=epoch), member.translate(words, change, epoch), strict=True
    )
    return fmean(learned == other for learned, other in pairs)
