"""Claim l: learning-rate warm-up tames the first updates.

The same seeds are trained with the recipe's warm-up (or one of 40 steps, where it has none) and
without; all else is the same. Over the first steps t, 40 at most, measures, for each seed:

    updates    log2(max_t u_t without) - log2(max_t u_t with), where u_t = |p_t - p_s| / |p_s| with
               s = t - 1 is how far a step moves all parameters p; `least` 1: twice as far
    loss       max_t L_t without - max_t L_t with, the highest training loss, in nats a token: the
               overshoot that warm-up prevents; `least` 0.1
    quality    exact(with) - exact(without) on the validation split, at the end; `least` 0.01

The claim is the first; the others ask what it is good for ("On Layer Normalization in the
Transformer Architecture", Xiong et al. 2020: post-norm Transformers need it). Control: the same
between the next seed and this one, both with warm-up, which is what chance does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import FIRST_STEPS, Laboratory, Member


@dataclass(frozen=True, kw_only=True)
class Warmup:
    """First updates, first losses and the end, with and without warm-up."""

    letter: ClassVar = "l"
    title: ClassVar = "Warm-up"
    sentence: ClassVar = "Learning-rate warm-up tames the first updates."
    source: ClassVar = "shorter tutorials; Vaswani et al. 2017, section 5.3"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="updates",
            says="Without warm-up, the largest of the first updates is more than twice as large.",
            measure="log2 of the largest |update| / |parameters|, without minus with",
            unit="doublings",
            least=1.0,
        ),
        Part(
            name="loss",
            says="Without warm-up, the training loss overshoots in the first steps.",
            measure="highest loss of the first steps, without minus with",
            unit="nats a token",
            least=0.1,
            beyond=True,
        ),
        Part(
            name="quality",
            says="With warm-up, more sentences are right at the end.",
            measure="exact(with) - exact(without)",
            unit="share of sentences",
            least=0.01,
            beyond=True,
        ),
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Compare each seed with itself, and with the next."""
        base = laboratory.base
        warm_up = base.training.warmup_steps or FIRST_STEPS
        none = 1 if base.training.schedule == "inverse_sqrt" else 0  # which is 1 / sqrt(0) at 0
        tamed, untamed = (
            laboratory.members(replace(base, training=replace(base.training, warmup_steps=steps)))
            for steps in (warm_up, none)
        )
        return {
            name: without_minus_with(
                [worse(member) for member in tamed], [worse(member) for member in untamed]
            )
            for name, worse in MEASURES.items()
        }


def largest_update(member: Member) -> float:
    """log2 of how far the largest of the first steps moves the parameters, by their length."""
    return member.updates.double().max().log2().item()


def highest_loss(member: Member) -> float:
    """The highest training loss of the first steps, in nats a token."""
    return member.losses.max().item()


def wrong(member: Member) -> float:
    """The share of the validation sentences that are not translated as their reference."""
    return 1 - member.exact_match()


MEASURES = {"updates": largest_update, "loss": highest_loss, "quality": wrong}


def without_minus_with(tamed: Sequence[float], untamed: Sequence[float]) -> Measured:
    """The effect on each seed, and as control the next seed's number minus this one's.

    That control's mean is 0 by algebra; its spread is what chance does.
    """
    following = [*tamed[1:], tamed[0]]
    return Measured(
        [other - own for own, other in zip(tamed, untamed, strict=True)],
        {"next seed": [other - own for own, other in zip(tamed, following, strict=True)]},
    )
