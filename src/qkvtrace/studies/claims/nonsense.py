"""Claim m: the model maps nonsense to the nearest sentence it knows.

A sentence is nonsense here if the training split does not have it. The distance of two sentences
is Levenshtein's over words: how many must be put in, left out or replaced. Measures, over the
nonsense sentences, for each seed:

    known      the share whose translation is the translation of some training sentence
    nearest    the share whose translation is that of a training sentence at the smallest distance;
               there may be several at that distance, and any will do

`least` is 0.5 for both: more often than not. Controls: the untrained model; and for `nearest`, the
mean share if each translation belonged to another of the nonsense sentences: what a model would
reach that knows sentences, and heeds its own source no more than any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from qkvtrace.corpus.prepared import TokenPair
from qkvtrace.errors import UserError
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory, Words


@dataclass(frozen=True, kw_only=True)
class Nonsense:
    """Translations of sentences that make no sense."""

    letter: ClassVar = "m"
    title: ClassVar = "Nonsense"
    sentence: ClassVar = (
        "The model maps nonsense to the nearest sentence it knows, as “i can eat book” to one of "
        "eating apples or of reading books."
    )
    source: ClassVar = "the article"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="known",
            says="Nonsense is translated as a sentence that the model knows.",
            measure="translations that training has / sentences",
            unit="share of sentences",
            least=0.5,
        ),
        Part(
            name="nearest",
            says="That sentence is one of the nearest, by words to be changed.",
            measure="translations of a nearest training sentence / sentences",
            unit="share of sentences",
            least=0.5,
        ),
    )

    sentences: tuple[str, ...]

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Translate the sentences, trained and untrained."""
        members = laboratory.members(laboratory.base)
        pairs = members[0].corpus.splits["train"]
        sources = [members[0].words(text) for text in dict.fromkeys(self.sentences)]
        if len(sources) < 2:
            raise UserError(
                f"nonsense.sentences: expected two or more, found {len(sources)}: the others are "
                "the control of each"
            )
        for words in sources:
            if any(words == source for source, _ in pairs):
                raise UserError(
                    "nonsense.sentences: expected sentences that training does not have, found "
                    f"{' '.join(words)}"
                )
        answers = [nearest(words, pairs) for words in sources]
        others = [[*answers[at:], *answers[:at]] for at in range(1, len(answers))]
        everything = [[target for _, target in pairs]] * len(sources)
        trained, untrained = (
            [member.translate(sources, epoch=epoch) for member in members]
            for epoch in (LAST, UNTRAINED)
        )

        def among(
            made: Sequence[Sequence[Words]], wanted: Sequence[Sequence[Words]]
        ) -> list[float]:
            return [share(each, wanted) for each in made]

        return {
            "known": Measured(
                among(trained, everything), {"untrained": among(untrained, everything)}
            ),
            "nearest": Measured(
                among(trained, answers),
                {
                    "untrained": among(untrained, answers),
                    "other sentences": [
                        fmean(share(each, other) for other in others) for each in trained
                    ],
                },
            ),
        }


def share(made: Sequence[Words], wanted: Sequence[Sequence[Words]]) -> float:
    """The share of translations that are among those wanted of each."""
    return sum(list(m) in w for m, w in zip(made, wanted, strict=True)) / len(made)


def nearest(words: Words, pairs: Sequence[TokenPair]) -> list[list[str]]:
    """The translations of the training sentences at the smallest distance from `words`."""
    distances = [distance(words, source) for source, _ in pairs]
    least = min(distances)
    return [target for (_, target), far in zip(pairs, distances, strict=True) if far == least]


def distance(one: Words, other: Words) -> int:
    """Levenshtein's distance, in words (Levenshtein 1966)."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, against in enumerate(other, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != against))
    return row[-1]
