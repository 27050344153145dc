"""What the parameters of a head can compare: the singular values of its score.

Shapes: D model width, H heads, K = D / H head width.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from torch import Tensor

from qkvtrace.model.attention import Attention
from qkvtrace.model.transformer import Transformer
from qkvtrace.snapshots.sites import Site
from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.geometry import check_finite, effective_rank
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.curves import curves, sites
from qkvtrace.studies.tools.weights import Head
from qkvtrace.studies.tools.wording import then_and_now

Course = tuple[str, int, int, int, float, float]  # site, layer, head, epoch, largest, rank


@dataclass(frozen=True, kw_only=True)
class SingularValues:
    """The matrix between two words that makes their score, and how many directions it uses."""

    title: ClassVar = "Singular values of W_QᵀW_K"
    question: ClassVar = "How many directions does a head compare words along?"
    look: ClassVar = (
        "A score is x · M y for the vectors x and y of two words, with M = W_QᵀW_K, divided by "
        "√K where the model scales its scores. Each singular value of M is how much one pair of "
        "directions counts. A falling effective rank says that few directions come to decide; a "
        "larger value, that the same x and y score higher."
    )

    site: str | None
    layer: int | None
    head: int | None
    epochs: tuple[int, ...] | None

    def answer(self, subject: Subject) -> Answer:
        """Read the parameters of each epoch; no sentence is needed."""
        chosen, heads = sites(self.site), weights.heads(subject, self.layer, self.head)
        epochs = subject.chosen(self.epochs)
        shown = [epoch for epoch in subject.landmarks if epoch in epochs] or epochs[-1:]
        course: list[Course] = []
        spectra: list[tuple[Cell, ...]] = []
        for epoch in epochs:
            model = subject.model(epoch)
            for site in chosen:
                for head in heads:
                    values = singular_values(model, site, head)
                    rank = float(effective_rank(values))
                    course.append((site.name, *head, epoch, float(values[0]), rank))
                    if epoch in shown:
                        spectra += [
                            (site.name, *head, epoch, number, value)
                            for number, value in enumerate(values.tolist(), start=1)
                        ]
        columns = ("site", "layer", "head", "epoch")
        matrix = "W_QᵀW_K / √K" if subject.trained.settings.model.scaled_scores else "W_QᵀW_K"
        return Answer(
            list(_says(course, chosen, heads[0], len(values))),
            [
                Table(
                    "largest",
                    f"Largest singular value of {matrix}",
                    (*columns, "largest"),
                    [row[:-1] for row in course],
                    curves("largest", "largest singular value", heads),
                ),
                Table(
                    "effective_rank",
                    f"Effective rank of W_QᵀW_K, 1 to {len(values)}: exp of the entropy of the "
                    "singular values' shares (Roy and Vetterli 2007)",
                    (*columns, "effective rank"),
                    [(*row[:-2], row[-1]) for row in course],
                    curves("effective rank", "effective rank", heads),
                ),
                Table(
                    "spectrum",
                    f"All singular values of {matrix} at some epochs",
                    (*columns, "number", "singular value"),
                    spectra,
                    replace(
                        curves("singular value", "singular value", heads, "epoch"),
                        x="number",
                        x_title="number, from the largest",
                    ),
                ),
            ],
        )


def singular_values(model: Transformer, site: Site, head: Head) -> Tensor:
    """Those of W_QᵀW_K / √K of one head, falling, (K,).

    W_Q and W_K are the head's rows of its site's projections, (K, D) each, and their product is
    (D, D), of rank K at most: the score of x and y is x · M y, plus what the biases add, which is
    left out. Where scores are not scaled, M is not divided by √K. Raises UserError if a parameter
    is not finite.
    """
    layer, number = head
    attention = cast(Attention, model.get_submodule(site.module.format(layer=layer)))
    query, key = (
        projection.weight.detach().double().unflatten(0, (attention.heads, -1))[number].mT
        for projection in (attention.query, attention.key)
    )  # (D, K) each
    # M = query @ key.T has the singular values of the small product of their triangular factors.
    small = torch.linalg.qr(query).R @ torch.linalg.qr(key).R.mT
    check_finite(small, "parameters")
    return torch.linalg.svdvals(small).cpu() * attention.scale


def _says(course: Sequence[Course], sites: Sequence[Site], head: Head, width: int) -> Iterator[str]:
    """From the first to the last epoch, for the first of the heads at each site."""
    for site in sites:
        rows = [row for row in course if row[:3] == (site.name, *head)]
        (*_, first, largest, rank), (*_, last, now_largest, now_rank) = rows[0], rows[-1]
        largest_is = then_and_now(f"{now_largest:.2f}", f"{largest:.2f}", first, last)
        rank_is = then_and_now(f"{now_rank:.1f} of {width}", f"{rank:.1f}", first, last)
        yield (
            f"{site.title}, layer {head[0]}, head {head[1]}: the largest singular value is "
            f"{largest_is}; the effective rank {rank_is}."
        )
