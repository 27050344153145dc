"""Words as points: vectors of chosen words in chosen sentences, followed over the epochs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.sites import AXES, Site
from qkvtrace.studies.geometry import PCA, fit_pca

COMPONENTS = ("PC1", "PC2", "PC3")  # the columns of a point's coordinates


@dataclass(frozen=True)
class Point:
    """One vector of one word where it stands in one sentence, the same at every epoch."""

    vector: str
    sentence: int
    position: int
    token: str


def points(
    sentences: Sequence[Sentence],
    site: Site,
    vectors: Sequence[str],
    words: Collection[str] | None = None,
) -> list[Point]:
    """Where `words` stand (None: all tokens), for each of `vectors`, at a site."""
    return [
        Point(vector, index, position, token)
        for vector in vectors
        for index, sentence in enumerate(sentences)
        for position, token in enumerate(site.tokens(sentence, AXES[vector]))
        if words is None or token in words
    ]


def standing(
    sentences: Sequence[Sentence], site: Site, vectors: Sequence[str], words: Mapping[str, str]
) -> list[Point]:
    """Where a word stands first in each sentence; words: the one at each axis, query and key."""
    first = {
        (point.vector, point.sentence): point
        for vector in vectors
        for point in reversed(points(sentences, site, [vector], [words[AXES[vector]]]))
    }
    return sorted(first.values(), key=lambda point: (vectors.index(point.vector), point.sentence))


def label(token: str, vector: str, epoch: int) -> str:
    """A point's name as the article has it: eat@K@30."""
    return f"{token}@{vector.upper() if vector in ('q', 'k', 'v') else vector}@{epoch}"


def values(
    snapshot: Snapshot, site: Site, layer: int, head: int, chosen: Sequence[Point]
) -> Tensor:
    """The vectors of points of one width, (points, width)."""
    kinds: dict[str, list[int]] = {}
    for number, point in enumerate(chosen):
        kinds.setdefault(point.vector, []).append(number)
    found = []
    for vector, numbers in kinds.items():
        rows = torch.tensor([(chosen[n].sentence, chosen[n].position) for n in numbers])
        found.append(site.vectors(snapshot.values, layer, head, vector)[rows[:, 0], rows[:, 1]])
    order = torch.tensor([number for numbers in kinds.values() for number in numbers])
    return torch.cat(found).float()[order.argsort()]


def trails(epochs: Tensor) -> tuple[PCA, Tensor]:
    """One space for all epochs, and the way of each point through it.

    epochs (E, N, D) -> the space, and (E, N, 3).
    """
    space = fit_pca(epochs.flatten(0, 1))
    return space, space.project(epochs)
