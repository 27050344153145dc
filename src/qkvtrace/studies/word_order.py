"""Item 10: word order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.geometry import cosines
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.phrases import means
from qkvtrace.studies.tools.translations import COLUMNS, translated, yes_no

COMPARED = 200  # training sentences, the first, among which the nearest is looked for


@dataclass(frozen=True, kw_only=True)
class WordOrder:
    """Sentences of known words in orders that the corpus never has."""

    title: ClassVar = "Word order"
    question: ClassVar = "What does the model make of known words in an order it never saw?"
    look: ClassVar = (
        "Most corpora have every sentence in one order only. See which words a translation keeps, "
        "and whether it falls back to a sentence that was learned. The nearest is the training "
        "sentence that the encoder makes most alike, by the cosine of its mean output."
    )

    sentences: tuple[str, ...]

    def answer(self, subject: Subject) -> Answer:
        """Translate each sentence with the last model, and find its neighbour in training."""
        sentences = subject.sentences(self.sentences)
        train = dict.fromkeys(" ".join(source) for source, _ in subject.corpus.splits["train"])
        others = [text for text in train if text not in sentences]
        known = (others or list(train))[:COMPARED]
        pairs = zip(
            translated(subject, sentences), _nearest(subject, sentences, known), strict=True
        )
        rows: list[tuple[Cell, ...]] = []
        for row, (text, cosine) in pairs:
            same = sorted(subject.tokens(text)) == sorted(subject.tokens(row[0]))
            as_it = row[2] == " ".join(subject.reference(text) or ())
            rows.append((*row, text, cosine, yes_no(same), yes_no(as_it)))
        columns = ("nearest in training", "cosine", "same words", "translated as the nearest")
        return Answer(
            [
                f"{_count(rows, 3)} translations are sentences of the training corpus.",
                f"The nearest training sentence has the same words for {_count(rows, 6)}; its "
                f"reference is what the model answers for {_count(rows, 7)}.",
            ],
            [
                Table(
                    "translations",
                    f"Unusual word orders and the nearest of {len(known)} training sentences, "
                    f"epoch {subject.last}",
                    (*COLUMNS, *columns),
                    rows,
                )
            ],
        )


def _nearest(
    subject: Subject, sentences: Sequence[str], known: Sequence[str]
) -> list[tuple[str, float]]:
    """For each sentence, the known one whose mean encoder output is most like its own."""
    both = means(subject, [*sentences, *known])
    best = cosines(both[: len(sentences)], both[len(sentences) :]).max(1)
    return [
        (known[index], cosine)
        for index, cosine in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _count(rows: Sequence[Sequence[Cell]], column: int) -> str:
    return f"{sum(row[column] == 'yes' for row in rows)} of {len(rows)}"
