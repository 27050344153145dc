"""Every vector of one sentence with every one of another."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import AXES, LAYER_VECTORS, Site
from qkvtrace.studies.answer import Cell
from qkvtrace.studies.geometry import cosines
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.weights import Head

SHOWN = {"cross": ("q", "k", "v", "x4", "weights"), "encoder_self": ("q", "k", "v")}
MEANS = ("same word, same place", "same word elsewhere", "other words")
Means = tuple[float | None, float | None, float | None]  # as MEANS names them


@dataclass(frozen=True)
class Compared:
    """One kind of vector of one sentence, each with each of another's."""

    vector: str
    rows: list[str]  # the tokens at which the one's stand
    columns: list[str]  # and the other's
    row_labels: list[str]
    column_labels: list[str]
    cosine: Tensor  # (rows, columns)

    def cells(self) -> Iterator[tuple[Cell, ...]]:
        """A row a cell."""
        for i, row in enumerate(self.cosine.tolist()):
            for j, cosine in enumerate(row):
                yield self.vector, i, self.row_labels[i], j, self.column_labels[j], cosine

    def means(self) -> Means:
        """The mean cosine of each kind of cell that MEANS names; None where there is none."""
        word = torch.tensor([[one == other for other in self.columns] for one in self.rows])
        place = torch.eye(*word.shape, dtype=torch.bool)
        here, elsewhere, others = (
            float(self.cosine[cells].mean()) if cells.any() else None
            for cells in (word & place, word & ~place, ~word)
        )
        return here, elsewhere, others


def compared(
    snapshot: Snapshot, site: Site, head: Head, one: int, other: int
) -> Iterator[Compared]:
    """Each kind of vector of two sentences of a snapshot."""
    layer, number = head
    sentences = [snapshot.sentences[index] for index in (one, other)]
    for vector in SHOWN[site.name]:
        axis = AXES.get(vector, "query")  # weights have a row a query
        rows, columns = (site.tokens(sentence, axis) for sentence in sentences)
        down, across = (
            weights.queries(site, sentence) if axis == "query" else site.tokens(sentence, axis)
            for sentence in sentences
        )
        values = snapshot.values[site.tap(layer, vector)]
        if vector not in LAYER_VECTORS:
            values = values[:, number]
        alike = cosines(values[one, : len(rows)], values[other, : len(columns)])
        yield Compared(vector, rows, columns, down, across, alike)
