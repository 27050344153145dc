"""Item 10: word order."""

from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.studies.answer import Answer, Table
from qkvtrace.studies.subject import Subject


@dataclass(frozen=True, kw_only=True)
class WordOrder:
    """Sentences of known words in orders that the corpus never has."""

    title: ClassVar = "Word order"
    question: ClassVar = "What does the model make of known words in an order it never saw?"
    look: ClassVar = (
        "Most corpora have every sentence in one order only. See which words a translation keeps, and "
        "whether it falls back to an order that was learned."
    )

    sentences: tuple[str, ...]

    def answer(self, subject: Subject) -> Answer:
        """Translate each sentence with the last model."""
        sentences = subject.sentences(self.sentences)
        translations = subject.translate(sentences)
        known = {" ".join(target) for _, target in subject.corpus.splits["train"]}
        rows = [
            (text, str(translation), "yes" if str(translation) in known else "no")
            for text, translation in zip(sentences, translations, strict=True)
        ]
        learned = sum(row[2] == "yes" for row in rows)
        return Answer(
            [f"{learned} of {len(rows)} translations are sentences of the training corpus."],
            [
                Table(
                    "translations",
                    "Translations of unusual word orders",
                    ("sentence", "translation", "in the training corpus"),
                    rows,
                )
            ],
        )
