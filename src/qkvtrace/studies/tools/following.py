"""Words whose vectors are followed through the epochs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Sentence
from qkvtrace.snapshots.sites import Site
from qkvtrace.studies.points import Point, standing, values
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.weights import Head

HeadVector = Literal["q", "k", "v", "x1"]


@dataclass(frozen=True, kw_only=True)
class Followed:
    """What one panel shows: the word that stands at each axis of attention."""

    name: str
    query: str
    key: str

    def standing(
        self, sentences: Sequence[Sentence], site: Site, vectors: Sequence[str]
    ) -> list[Point]:
        """Where the words stand."""
        return standing(sentences, site, vectors, {"query": self.query, "key": self.key})


def follow(
    subject: Subject,
    sentences: Sequence[str],
    site: Site,
    head: Head,
    chosen: Sequence[Point],
    epochs: Sequence[int],
) -> Tensor:
    """The vectors of points at each of some epochs, (epochs, points, width)."""
    layer, number = head
    patterns = [site.tap(layer, vector) for vector in dict.fromkeys(p.vector for p in chosen)]
    return torch.stack(
        [
            values(subject.observe(sentences, epoch, patterns), site, layer, number, chosen)
            for epoch in epochs
        ]
    )
