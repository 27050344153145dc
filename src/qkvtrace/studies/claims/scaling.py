"""Claim f: what dividing scores by √d does (Vaswani et al. 2017, section 3.2.1 and footnote 4).

variance      For q and k of d independent numbers of mean 0 and variance 1, var(q · k / √d) = 1.
              The least of min(var, 1 / var) over d = 4, 8, ..., 1024, where var is that of 4,096
              drawn pairs: 1 if none deviates. It is no identity, since 4,096 pairs deviate by some
              hundredths. `least` asks for a variance within a tenth of 1. Control: not divided,
              where the variance is d.
saturation    Where s (16) are the scores of a drawn query with 16 drawn keys, and p = softmax(s),
              dp/ds = diag(p) - ppᵀ has the trace Σ p (1 - p), which is 1 - 1/16 at most. The share
              of that most, mean over 64 queries, of divided scores minus undivided ones at
              d = 1024. `least` is half of the scale. Control: d = 4.
trained       var is the variance of a query's scores over the keys that it may look at, mean over
              queries: what all of a query's keys share, the softmax does not see. -|ln var|, mean
              over sites, layers and heads of trained models, of those that divide minus those that
              do not. `least` is ln 2: nearer to 1 by a factor of two. Control: untrained.
near          -|ln var| of trained models that divide, by itself. `least` is -ln 2: within a factor
              of two of 1. Control: untrained. This asks further: texts derive the 1 from random
              vectors, and do not say that it lasts.
softmax       Entropy of a query's weights / ln of the positions that it may look at, from 0, one
              alone, to 1, all alike; mean over queries, sites, layers and heads of trained models,
              of those that divide minus those that do not. `least` is a tenth of the scale.
              Control: untrained.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.studies.claims.tools.choices import Choices, choices
from qkvtrace.studies.claims.tools.drawn import WIDTHS, draw, products
from qkvtrace.studies.claims.tools.sources import sources
from qkvtrace.studies.claims.tools.variants import with_model
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory
from qkvtrace.studies.geometry import entropy

ROOTS = torch.tensor(WIDTHS).sqrt()[:, None, None]
PAIRS = 4096
QUERIES, KEYS = 64, 16


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Scores of random vectors, and those of models that were trained with and without."""

    letter: ClassVar = "f"
    title: ClassVar = "Scaled scores"
    sentence: ClassVar = (
        "Dividing scores by √d keeps their variance near 1 and the softmax out of saturation."
    )
    source: ClassVar = "shorter tutorials, after “Attention Is All You Need” (2017)"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="variance",
            says="Divided scores of random q and k have a variance near 1 at every width.",
            measure="least min(var, 1 / var) over d = 4, 8, ..., 1024",
            unit="ratio",
            least=0.9,
        ),
        Part(
            name="saturation",
            says="At width 1024, undivided scores take the softmax's gradient away.",
            measure="Σ p(1 − p) / (1 − 1/16), divided − undivided",
            unit="share of the largest",
            least=0.5,
        ),
        Part(
            name="trained",
            says="The scores of models that divide have a variance nearer to 1.",
            measure="−|ln var| over a query's keys, divided − undivided",
            unit="nats",
            least=math.log(2),
        ),
        Part(
            name="near",
            says="Their variance stays within a factor of two of 1.",
            measure="−|ln var| over a query's keys, divided",
            unit="nats",
            least=-math.log(2),
            beyond=True,
        ),
        Part(
            name="softmax",
            says="The weights of models that divide are more spread out.",
            measure="entropy / ln of the positions, divided − undivided",
            unit="share of the largest",
            least=0.1,
        ),
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Draw from each seed, and train with and without scaling."""
        pairs = [products(*draw(seed, PAIRS, 1, 1)) for seed in laboratory.seeds]
        rows = [products(*draw(seed, QUERIES, 1, KEYS)) for seed in laboratory.seeds]
        narrow, *_, wide = torch.stack(
            [gradients(each / ROOTS) - gradients(each) for each in rows], dim=1
        ).tolist()
        nearer, near, spread_out = _compared(laboratory, LAST)
        nearer_before, near_before, spread_out_before = _compared(laboratory, UNTRAINED)
        return {
            "variance": Measured(
                [near_1(each / ROOTS) for each in pairs],
                {"not divided": [near_1(each) for each in pairs]},
            ),
            "saturation": Measured(wide, {f"d = {WIDTHS[0]}": narrow}),
            "trained": Measured(nearer, {"untrained": nearer_before}),
            "near": Measured(near, {"untrained": near_before}),
            "softmax": Measured(spread_out, {"untrained": spread_out_before}),
        }


def near_1(scores: Tensor) -> float:
    """The least min(var, 1 / var) of any width, (widths, ...)."""
    variances = scores.flatten(1).var(1)
    return float(torch.minimum(variances, 1 / variances).min())


def gradients(scores: Tensor) -> Tensor:
    """How much the softmax responds, (widths, queries, keys) -> (widths), 0 not at all to 1."""
    p = scores.double().softmax(-1)
    return (p * (1 - p)).sum(-1).mean(-1) / (1 - 1 / scores.shape[-1])


def nearness(snapshot: Snapshot) -> float:
    """-|ln var| of a query's scores, mean over sites, layers and heads; 0: all variances are 1."""
    return -fmean(
        float(_variances(each).log().abs().mean()) for each in choices(snapshot, "scores")
    )


def spread(snapshot: Snapshot) -> float:
    """The entropy of a query's weights by the largest there is, mean over sites, layers, heads."""
    return fmean(
        float((entropy(each.rows) / each.count.log()).mean())
        for each in choices(snapshot, "weights")
    )


def _variances(scores: Choices) -> Tensor:
    """Of a query's scores, the mean over queries, (heads)."""
    means = scores.rows.sum(-1) / scores.count  # (N, heads)
    squares = (scores.rows - means[..., None]).square().where(scores.allowed, 0)
    return (squares.sum(-1) / (scores.count - 1)).mean(0)


def _compared(laboratory: Laboratory, epoch: int) -> list[list[float]]:
    """Of models that divide, seed by seed: how much nearer to 1 than others, how near, how spread.

    The first and the last are differences to models that do not divide.
    """
    base = laboratory.base
    seen = sources(laboratory.corpus(base))

    def found(scaled: bool) -> Tensor:
        members = laboratory.members(with_model(base, scaled_scores=scaled))
        looks = [member.observe(seen, ["*.scores", "*.weights"], epoch) for member in members]
        return torch.tensor([[nearness(each) for each in looks], [spread(each) for each in looks]])

    divided = found(scaled=True)
    (nearer, spread_out), near = divided - found(scaled=False), divided[0]
    return [each.tolist() for each in (nearer, near, spread_out)]
