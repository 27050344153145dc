"""Item 13: the embedding spaces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import ClassVar

from qkvtrace.settings import at_least
from qkvtrace.studies.answer import Answer, Cloud, Heatmap, Table
from qkvtrace.studies.geometry import cosines, fit_pca
from qkvtrace.studies.points import COMPONENTS
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.wording import then_and_now
from qkvtrace.studies.tools.words import Neighbour, Words, by_side, closest, neighbours

MOST_SAID = 4
SIDES = ("source", "target")


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """The vectors that words enter the model with, before position and context."""

    title: ClassVar = "Embedding spaces"
    question: ClassVar = "Which words are neighbours before any attention?"
    look: ClassVar = (
        "Vectors begin as random numbers; words that can stand in one another's place may become "
        "alike. Source and target words are two tables which nothing binds to the same directions: "
        "take cosines between them as a control, and those at the first epoch as another."
    )

    drawn: int
    compared: int
    neighbours: int

    def answer(self, subject: Subject) -> Answer:
        """Read both tables from the parameters of the last model and of the first."""
        for name in ("drawn", "compared", "neighbours"):
            at_least(f"study.{name}", getattr(self, name), 1)
        first, last = (by_side(subject, epoch) for epoch in (subject.epochs[0], subject.last))
        before = {side: words.first(self.compared) for side, words in first.items()}
        after = {side: words.first(self.compared) for side, words in last.items()}
        nearest = {side: neighbours(words, self.neighbours) for side, words in after.items()}
        epochs = subject.epochs[0], subject.last
        return Answer(
            [
                *(_mutual(side, nearest[side], before[side], epochs) for side in SIDES),
                _across(before, after, epochs),
            ],
            [
                *(_cloud(side, last[side].first(self.drawn), subject.last) for side in SIDES),
                *(
                    _matrix(one, other, after, subject.last)
                    for one, other in combinations_with_replacement(SIDES, 2)
                ),
                Table(
                    "neighbours",
                    f"Each word's nearest words of its own side, epoch {subject.last}",
                    ("side", "word", "rank", "neighbour", "cosine"),
                    [(side, *row) for side in SIDES for row in nearest[side]],
                ),
            ],
            _notes(subject),
        )


def _mutual(side: str, nearest: Sequence[Neighbour], before: Words, epochs: tuple[int, int]) -> str:
    """The pairs of words that are each other's nearest, and how alike nearest words are."""
    first = {word: (other, cosine) for word, rank, other, cosine in nearest if rank == 1}
    pairs = sorted(
        (
            (cosine, word, other)
            for word, (other, cosine) in first.items()
            if word < other and first[other][0] == word
        ),
        reverse=True,
    )
    named = [f"{word} and {other} ({cosine:.2f})" for cosine, word, other in pairs[:MOST_SAID]]
    now = [cosine for _, cosine in first.values()]
    then = [cosine for _, rank, _, cosine in neighbours(before, 1)]
    if not now:
        return f"There is one {side} word only."
    return (
        f"Among the {len(first)} most frequent {side} words, each other's nearest are "
        f"{'; '.join(named) or 'none'}. The mean cosine of a word and its nearest is "
        f"{then_and_now(_mean(now), _mean(then), *epochs)}."
    )


def _across(
    before: Mapping[str, Words], after: Mapping[str, Words], epochs: tuple[int, int]
) -> str:
    """The most alike source and target word, with the untrained as a control."""
    now, then = (closest(words["source"], words["target"]) for words in (after, before))
    return f"The most alike source and target words are {then_and_now(now, then, *epochs)}."


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.2f}"


def _cloud(side: str, words: Words, epoch: int) -> Table:
    space = fit_pca(words.vectors)
    return Table(
        f"{side}_words",
        f"{len(words.tokens)} {side} words, epoch {epoch}",
        ("token", *COMPONENTS),
        [
            (token, *at)
            for token, at in zip(words.tokens, space.project(words.vectors).tolist(), strict=True)
        ],
        Cloud(axes=COMPONENTS, explained=tuple(space.explained), label="token", colour="token"),
    )


def _matrix(one: str, other: str, words: Mapping[str, Words], epoch: int) -> Table:
    rows, columns = words[one], words[other]
    return Table(
        f"{one}_{other}",
        f"Cosine of {one} words with {other} words, epoch {epoch}",
        ("word", "other word", "cosine"),
        [
            (word, another, cosine)
            for word, line in zip(
                rows.tokens, cosines(rows.vectors, columns.vectors).tolist(), strict=True
            )
            for another, cosine in zip(columns.tokens, line, strict=True)
        ],
        Heatmap(
            row="word",
            row_title=f"{one} word",
            column="other word",
            column_title=f"{other} word",
            value="cosine",
            scale="cosine",
        ),
    )


def _notes(subject: Subject) -> list[str]:
    if not subject.trained.settings.model.tied_embeddings:
        return []
    return ["target embeddings are the output projection too: they also say what comes next"]
