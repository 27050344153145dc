"""The way of chosen words' vectors through the epochs, and how alike they are in two sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Sentence
from qkvtrace.snapshots.sites import Site
from qkvtrace.studies import weights
from qkvtrace.studies.answer import Answer, Cell, Cloud, Lines, Table
from qkvtrace.studies.asked import some
from qkvtrace.studies.geometry import cosines
from qkvtrace.studies.points import AXES, Point, label, standing, trails, values
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.weights import Head
from qkvtrace.studies.wording import listed, percent

HeadVector = Literal["q", "k", "v", "x1"]
Alike = tuple[str, str, str, str, int, float]  # word, token, vector, sentences, epoch, cosine


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


@dataclass(frozen=True, kw_only=True)
class Trajectories:
    """What the studies of trajectories share."""

    sentences: tuple[str, ...]
    vectors: tuple[HeadVector, ...]
    layer: int
    head: int
    epochs: tuple[int, ...] | None

    def trajectories(
        self, subject: Subject, texts: Sequence[str], site: Site, followed: Sequence[Followed]
    ) -> Answer:
        """Follow words through the epochs, all of them in one space."""
        (head,) = weights.heads(subject, self.layer, self.head)
        epochs = subject.chosen(self.epochs)
        sentences = subject.observe(texts, patterns=["encoder.embedding"]).sentences
        vectors = some("vectors", self.vectors)
        places = [
            (words.name, point)
            for words in followed
            for point in words.standing(sentences, site, vectors)
        ]
        found = follow(subject, texts, site, head, [point for _, point in places], epochs)
        space, ways = trails(found)
        where = f"{site.title}, layer {self.layer}, head {self.head}"
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                p.token,
                p.vector,
                texts[p.sentence],
                p.position,
                epoch,
                label(p.token, p.vector, epoch),
                *way,
            )
            for (name, p), points in zip(places, ways.transpose(0, 1).tolist(), strict=True)
            for epoch, way in zip(epochs, points, strict=True)
        ]
        trajectories = Table(
            "trajectories",
            f"{where}: {listed([words.name for words in followed])} over training",
            ("word", "token", "vector", "sentence", "position", "epoch", "label", *AXES),
            rows,
            Cloud(
                axes=AXES,
                explained=tuple(space.explained),
                label="label",
                colour="vector",
                symbol="sentence",
                trail=("word", "vector", "sentence"),
                along="epoch",
                marked=tuple(epoch for epoch in subject.landmarks if epoch in epochs),
                panels=("word",) if len(followed) > 1 else (),
            ),
        )
        alike = _cosines(texts, places, epochs, found)
        says = [
            f"Three components hold {percent(sum(space.explained))} of the variance of all "
            f"{len(rows)} vectors shown: those of every epoch, in one space.",
            *(_alike(words, alike, epochs) for words in followed if alike),
        ]
        same = [v for v in vectors if v != "x1" and _identical(v, alike)]
        if same and self.layer == 0 and site.name != "cross":
            says.append(
                f"Between the sentences {listed(same)} never differ: the first layer makes them "
                "from the word where it stands. Other words come in with attention, in x1."
            )
        return Answer(says, [trajectories, *_table(where, alike, followed)])


def _cosines(
    texts: Sequence[str],
    places: Sequence[tuple[str, Point]],
    epochs: Sequence[int],
    found: Tensor,
) -> list[Alike]:
    """Between each two sentences that have the word."""
    return [
        (
            name,
            one.token,
            one.vector,
            f"{texts[one.sentence]} / {texts[other.sentence]}",
            epoch,
            float(cosines(at[i : i + 1], at[j : j + 1])),
        )
        for (i, (name, one)), (j, (words, other)) in combinations(enumerate(places), 2)
        if (name, one.vector) == (words, other.vector)
        for epoch, at in zip(epochs, found, strict=True)
    ]


def _table(
    where: str, rows: Sequence[tuple[Cell, ...]], followed: Sequence[Followed]
) -> list[Table]:
    if not rows:  # a single sentence
        return []
    pairs = {row[3] for row in rows}
    return [
        Table(
            "cosines",
            f"{where}: cosine of a word's vectors in two sentences"
            + (f", {pairs.copy().pop()}" if len(pairs) == 1 else ""),
            ("word", "token", "vector", "sentences", "epoch", "cosine"),
            rows,
            Lines(
                x="epoch",
                y="cosine",
                colour="vector",
                dash="sentences" if len(pairs) > 1 else None,
                panels=("word",) if len(followed) > 1 else (),
                x_title="epoch",
                y_title="cosine between the sentences",
            ),
        )
    ]


def _alike(words: Followed, rows: Sequence[Alike], epochs: Sequence[int]) -> str:
    """How alike a word's vectors are between sentences, at the last epoch and at the first."""
    found = {row[3] for row in rows}
    mean, between = ("mean cosine", "each two") if len(found) > 1 else ("cosine", "the two")

    def at(epoch: int) -> str:
        cosines: dict[str, list[float]] = {}
        for name, token, vector, _, when, cosine in rows:
            if (name, when) == (words.name, epoch):
                of = "" if words.query == words.key else f" of {token}"
                cosines.setdefault(vector + of, []).append(cosine)
        return listed([f"{v} {sum(c) / len(c):.2f}" for v, c in cosines.items()])

    first = f"; at epoch {epochs[0]}: {at(epochs[0])}" if len(epochs) > 1 else ""
    return (
        f"“{words.name}”: {mean} between {between} sentences at epoch {epochs[-1]}: "
        f"{at(epochs[-1])}{first}."
    )


def _identical(vector: str, rows: Sequence[Alike]) -> bool:
    found = [row[5] for row in rows if row[2] == vector]
    return bool(found) and min(found) > 1 - 1e-6
