"""Item 1: dot products of related and of unrelated sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import ClassVar

from torch import Tensor

from qkvtrace.errors import UserError
from qkvtrace.studies.answer import Answer, Cell, Cloud, Heatmap, Table
from qkvtrace.studies.geometry import cosines, fit_pca
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import made_up
from qkvtrace.studies.tools.made_up import Placed, first_word
from qkvtrace.studies.tools.phrases import means
from qkvtrace.studies.tools.translations import yes_no


@dataclass(frozen=True, kw_only=True)
class DotProducts:
    """Vectors made up by hand, and those of the run for the same phrases."""

    title: ClassVar = "Dot products"
    question: ClassVar = "Do related sentences have larger dot products than unrelated ones?"
    look: ClassVar = (
        "The first two pictures are an example whose vectors were made up so that it comes out. "
        "The others are the run's own vectors: see whether phrases that share a word are more "
        "alike there too, and how alike they were before training."
    )

    phrases: tuple[Placed, ...]
    pairs: tuple[tuple[str, ...], ...]

    def answer(self, subject: Subject) -> Answer:
        """Multiply the made-up vectors, then compare the encoder's."""
        placed = self._by_name()
        sentences = subject.sentences(list(placed))
        tokens = [subject.tokens(text) for text in sentences]
        epochs = sorted({subject.epochs[0], subject.last})
        vectors = {epoch: means(subject, sentences, epoch) for epoch in epochs}
        says, rows = [_by_hand(placed, self.pairs)], []
        for epoch, each in vectors.items():
            alike = cosines(each, each)
            says.append(
                f"In the run at epoch {epoch}, the mean cosine of two phrases is "
                f"{_means(tokens, alike.tolist())}."
            )
            rows += _rows(epoch, sentences, tokens, alike, each @ each.T)
        return Answer(
            says,
            [
                *made_up.tables(list(placed.values())),
                _space(sentences, vectors[subject.last], subject.last),
                _cosines(rows),
            ],
        )

    def _by_name(self) -> dict[str, Placed]:
        """The phrases; raises UserError if they or the pairs are not as they should be."""
        placed = {each.phrase: each for each in self.phrases}
        if not placed:
            raise UserError("study.phrases: expected one or more, found none")
        for each in self.phrases:
            if len(each.vector) != 2 or not each.phrase.split():
                raise UserError(
                    "study.phrases: expected words and a vector of two numbers, found "
                    f"{each.phrase!r} and {list(each.vector)}"
                )
        for pair in self.pairs:
            if len(pair) != 2 or not placed.keys() >= set(pair):
                raise UserError(
                    f"study.pairs: expected pairs of {', '.join(placed)}, found {list(pair)}"
                )
        return placed


def _by_hand(placed: dict[str, Placed], pairs: Sequence[Sequence[str]]) -> str:
    spelt = [
        f"{one} · {other} = {placed[one].calculation(placed[other])} = "
        f"{placed[one].dot(placed[other]):.2f}"
        for one, other in pairs
    ]
    phrases = list(placed.values())
    tokens = [each.phrase.split() for each in phrases]
    mean = _means(tokens, [[one.dot(other) for other in phrases] for one in phrases])
    said = f"By hand, {'; '.join(spelt)}. " if spelt else ""
    return f"{said}The mean product of two made-up vectors is {mean}."


def _means(tokens: Sequence[Sequence[str]], values: Sequence[Sequence[float]]) -> str:
    """The mean value of the pairs of phrases that share a word, and of those that do not."""
    related: list[float] = []
    others: list[float] = []
    for i, j in combinations(range(len(tokens)), 2):
        (related if _share(tokens[i], tokens[j]) else others).append(values[i][j])
    one, other = (
        f"{fmean(found):.2f}" if found else "unknown (there is no such pair)"
        for found in (related, others)
    )
    return f"{one} where they share a word, and {other} where not"


def _share(one: Sequence[str], other: Sequence[str]) -> bool:
    return bool(set(one) & set(other))


def _rows(
    epoch: int,
    sentences: Sequence[str],
    tokens: Sequence[Sequence[str]],
    alike: Tensor,
    products: Tensor,
) -> list[tuple[Cell, ...]]:
    return [
        (epoch, one, other, float(alike[i, j]), float(products[i, j]), yes_no(related))
        for i, one in enumerate(sentences)
        for j, other in enumerate(sentences)
        for related in [_share(tokens[i], tokens[j])]
    ]


def _space(sentences: Sequence[str], vectors: Tensor, epoch: int) -> Table:
    space = fit_pca(vectors, 2)
    return Table(
        "run",
        f"The run's vectors at epoch {epoch}: mean encoder output of a phrase's words, PCA",
        ("phrase", "first word", "PC1", "PC2"),
        [
            (text, first_word(text), *point)
            for text, point in zip(sentences, space.project(vectors).tolist(), strict=True)
        ],
        Cloud(
            axes=("PC1", "PC2"),
            explained=tuple(space.explained),
            label="phrase",
            colour="first word",
        ),
    )


def _cosines(rows: Sequence[tuple[Cell, ...]]) -> Table:
    return Table(
        "run_cosines",
        "Cosine of the run's vectors: mean encoder output of a phrase's words",
        ("epoch", "phrase", "other phrase", "cosine", "dot product", "share a word"),
        rows,
        Heatmap(
            row="phrase", column="other phrase", value="cosine", scale="cosine", panels=("epoch",)
        ),
    )
