"""How alike the representations of two epochs are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from qkvtrace.settings import at_least
from qkvtrace.studies.answer import Answer, Cell, Heatmap, Lines, Table
from qkvtrace.studies.asked import some
from qkvtrace.studies.points import points
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.arrangement import Compared, different
from qkvtrace.studies.tools.curves import sites
from qkvtrace.studies.tools.following import HeadVector, follow
from qkvtrace.studies.tools.wording import listed

MOST_PLACES = 2000  # where different tokens are looked for
MOST_TOKENS = 400  # N: what is held for each epoch grows with its square
FEWEST = 4  # debiased CKA needs so many


@dataclass(frozen=True, kw_only=True)
class SimilarityOverTraining:
    """Debiased CKA of q, k, v and x1 between each two epochs."""

    title: ClassVar = "Similarity over training"
    question: ClassVar = "When do q, k, v and x1 become what they are at the end?"
    look: ClassVar = (
        "1 says that the tokens lie to one another as at the other epoch, 0 that their "
        "arrangement is unrelated; turning or scaling all of them does not count. A block of one "
        "colour is a time in which little changed. The control has its tokens shuffled, and "
        "should be near 0."
    )

    sentences: tuple[str, ...] | None
    site: str | None
    vectors: tuple[HeadVector, ...]
    layer: int
    head: int
    epochs: tuple[int, ...] | None
    most_epochs: int
    shuffles: int

    def answer(self, subject: Subject) -> Answer:
        """Compare the arrangement of the different tokens of all sentences."""
        at_least("study.most_epochs", self.most_epochs, 2)
        at_least("study.shuffles", self.shuffles, 1)
        (head,) = weights.heads(subject, self.layer, self.head)
        texts = subject.sentences(self.sentences)
        epochs = subject.chosen(self.epochs)
        if self.epochs is None:
            epochs = spread(epochs, self.most_epochs)
        sentences = subject.observe(texts, patterns=["*.embedding"]).sentences
        compared: list[Compared] = []
        notes: list[str] = []
        vectors = some("vectors", self.vectors)
        for site in sites(self.site):
            every = [p for v in vectors for p in points(sentences, site, [v])[:MOST_PLACES]]
            whole = follow(subject, texts, site, head, every, epochs)
            for vector in vectors:
                found = different(whole[:, [point.vector == vector for point in every]])
                count = found.shape[1]
                if count < FEWEST:
                    notes.append(f"{site.name} {vector}: {count} different tokens are too few")
                    continue
                if count > MOST_TOKENS:
                    notes.append(f"{site.name} {vector}: the first {MOST_TOKENS} of {count} tokens")
                compared.append(Compared.of(site, vector, found[:, :MOST_TOKENS], self.shuffles))
        where = f"layer {self.layer}, head {self.head}"
        return Answer(
            list(_says(compared, epochs)),
            [_matrices(compared, epochs, where), _to_the_last(compared, epochs, where)],
            notes,
        )


def spread(epochs: Sequence[int], most: int) -> list[int]:
    """At most so many of them, evenly spaced, the first and the last among them."""
    places = torch.linspace(0, len(epochs) - 1, min(most, len(epochs))).round().int()
    return [epochs[place] for place in places.tolist()]


def _matrices(compared: Sequence[Compared], epochs: Sequence[int], where: str) -> Table:
    return Table(
        "similarity",
        f"Similarity between epochs (debiased CKA), {where}",
        ("site", "vector", "epoch", "other epoch", "similarity"),
        [
            (each.site.name, each.vector, epoch, other, float(each.similarity[i, j]))
            for each in compared
            for i, epoch in enumerate(epochs)
            for j, other in enumerate(epochs)
        ],
        Heatmap(
            row="epoch",
            row_title="epoch",
            column="other epoch",
            column_title="epoch",
            value="similarity",
            scale="weight",
            panels=("site", "vector"),
        ),
    )


def _to_the_last(compared: Sequence[Compared], epochs: Sequence[int], where: str) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (each.site.name, each.vector, order, epoch, float(line[at]))
        for at, epoch in enumerate(epochs)
        for each in compared
        for order, line in (
            ("as they are", each.similarity[-1]),
            ("shuffled, mean", each.shuffled.mean(0)),
        )
    ]
    return Table(
        "to_the_last",
        f"Similarity of each epoch to epoch {epochs[-1]} (debiased CKA), {where}",
        ("site", "vector", "tokens", "epoch", "similarity"),
        rows,
        Lines(
            x="epoch",
            y="similarity",
            colour="vector",
            dash="tokens",
            panels=("site",),
            x_title="epoch",
            y_title="debiased CKA",
        ),
    )


def _says(compared: Sequence[Compared], epochs: Sequence[int]) -> Iterator[str]:
    """The first epoch beside the last, and the control, for each site."""
    if len(epochs) == 1:
        yield f"Epoch {epochs[0]} is the only one: there is nothing to compare it with."
        return
    by_site: dict[str, list[Compared]] = {}
    for each in compared:
        by_site.setdefault(each.site.title, []).append(each)
    for title, found in by_site.items():
        first = [f"{each.vector} {float(each.similarity[-1, 0]):.2f}" for each in found]
        numbers = [f"{each.vector} {float(each.shuffled.abs().max()):.2f}" for each in found]
        counts = [f"{each.tokens} of {each.vector}" for each in found]
        yield (
            f"{title}: similarity of epoch {epochs[0]} to epoch {epochs[-1]} is {listed(first)}; "
            f"with shuffled tokens at most {listed(numbers)}. Different tokens: {listed(counts)}."
        )
