"""Claim h: what several heads look at (Vaswani et al. 2017, section 3.2.2).

The model's heads if it has several; else four, or as few more than one as divide its width.

different     For one query, w_h (S) are the weights of head h = 1 ... H, H(.) entropy, and n the
              positions that it may look at. The generalised Jensen-Shannon divergence (Lin 1991)
              JS = H(mean of w_h) - mean of H(w_h) is 0 if all heads look alike, and at most
              ln min(H, n). JS / ln min(H, n), mean over queries with n > 1, sites and layers, after
              training. `least` is a tenth of the scale. Controls:
                untrained;
                one look: every head has the mean of w_h, sharpened (w^β, scaled to sum 1) until
                  its entropy is H(w_h). So much do heads differ that look for the same, some of
                  them more decidedly;
                heads of different seeds: head h is that of the h-th next seed. So much do heads
                  differ that did not learn side by side, and could not share out the work.
learned       The same after training minus before: heads drawn at random differ, too, but relate
              to nothing. `least` as above. Control: one untrained model minus the next.
generalise    Exact match on validation pairs that training does not hold, of several heads minus
              one head of the same width together: `better` has the controls.

That heads differ does not make all of them needed: "Are Sixteen Heads Really Better than One?"
(Michel et al. 2019) and "Analyzing Multi-Head Self-Attention" (Voita et al. 2019) remove many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor

from qkvtrace.errors import UserError
from qkvtrace.settings import Recipe
from qkvtrace.studies.claims.tools.choices import Choices, choices
from qkvtrace.studies.claims.tools.generalisation import LEAST, better, differences
from qkvtrace.studies.claims.tools.sources import sources
from qkvtrace.studies.claims.tools.variants import with_model
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory
from qkvtrace.studies.geometry import entropy

HEADS = 4
HALVINGS = 40  # of the span of ln β: to 2e-11
BLUNT, SHARP = -10.0, 10.0  # ln β


@dataclass(frozen=True, kw_only=True)
class Heads:
    """Several heads beside one."""

    letter: ClassVar = "h"
    title: ClassVar = "Several heads"
    sentence: ClassVar = "Several heads attend to different relations."
    source: ClassVar = "shorter tutorials, after “Attention Is All You Need” (2017)"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="different",
            says="Heads of one layer look at different words.",
            measure="Jensen-Shannon divergence of the heads' weights / ln min(heads, positions)",
            unit="share of the largest",
            least=0.1,
        ),
        Part(
            name="learned",
            says="Training makes them look at more different words than chance does.",
            measure="the same divergence, trained − untrained",
            unit="share of the largest",
            least=0.1,
        ),
        Part(
            name="generalise",
            says="Several heads translate unseen sentences better than one.",
            measure="exact match on held-out pairs, several heads − one head",
            unit="share of sentences",
            least=LEAST,
            beyond=True,
        ),
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Train with several heads, and on the held-out corpus with one, too."""
        seen = sources(laboratory.corpus(laboratory.base))
        members = laboratory.members(several(laboratory.base))
        trained, untrained = (
            [
                list(choices(member.observe(seen, ["*.weights"], epoch), "weights"))
                for member in members
            ]
            for epoch in (LAST, UNTRAINED)
        )
        after, before = ([difference(each) for each in group] for group in (trained, untrained))
        return {
            "different": Measured(
                after,
                {
                    "untrained": before,
                    "one look": [
                        difference([one_look(layer) for layer in each]) for each in trained
                    ],
                    "heads of different seeds": [
                        difference(each) for each in different_seeds(trained)
                    ],
                },
            ),
            "learned": Measured(
                [one - other for one, other in zip(after, before, strict=True)],
                {"another seed, both untrained": differences(before)},
            ),
            "generalise": better(
                laboratory, several(laboratory.held_out), with_model(laboratory.held_out, heads=1)
            ),
        }


def several(recipe: Recipe) -> Recipe:
    """With HEADS heads where it has one, or as few more than one as divide the width.

    Raises UserError for a width of 1.
    """
    if recipe.model.heads > 1:
        return recipe
    width = recipe.model.width
    fitting = (h for h in (HEADS, *range(2, width + 1)) if width % h == 0)
    heads = next(fitting, None)
    if heads is None:
        raise UserError(f"model.width: expected room for two heads, found {width}")
    return with_model(recipe, heads=heads)


def difference(layers: Sequence[Choices]) -> float:
    """How differently heads look, 0 to 1, mean over queries and then layers."""
    return fmean(float(divergence(each).mean()) for each in layers)


def divergence(weights: Choices) -> Tensor:
    """JS / ln min(H, n) of each query, (N)."""
    apart = entropy(weights.rows.mean(1)) - entropy(weights.rows).mean(1)
    return apart / weights.count[:, 0].clamp(max=weights.rows.shape[1]).log()


def one_look(weights: Choices) -> Choices:
    """The heads' mean weights in place of each head's, made as sharp as that head's were."""
    logs = weights.rows.mean(1, keepdim=True).log()  # -inf where a query may not look
    wanted = entropy(weights.rows)  # (N, H)
    low, high = torch.full_like(wanted, BLUNT), torch.full_like(wanted, SHARP)
    for _ in range(HALVINGS):  # entropy falls as β grows
        middle = (low + high) / 2
        too_blunt = entropy(_sharpened(logs, middle)) > wanted
        low, high = middle.where(too_blunt, low), high.where(too_blunt, middle)
    return replace(weights, rows=_sharpened(logs, high))


def _sharpened(logs: Tensor, exponent: Tensor) -> Tensor:
    """w^β, scaled to sum 1: ln w (N, 1, S), ln β (N, H) -> (N, H, S)."""
    return (logs * exponent.exp()[..., None]).softmax(-1)


def different_seeds(members: Sequence[Sequence[Choices]]) -> list[list[Choices]]:
    """Members whose head h is that of the h-th next member, layer by layer."""
    count = len(members)
    return [
        [
            replace(
                layer,
                rows=torch.stack(
                    [members[(n + h) % count][at].rows[:, h] for h in range(layer.rows.shape[1])],
                    dim=1,
                ),
            )
            for at, layer in enumerate(layers)
        ]
        for n, layers in enumerate(members)
    ]
