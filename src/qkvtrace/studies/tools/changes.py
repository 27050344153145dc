"""What is left of translation when something inside the model is changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from qkvtrace.corpus.batches import Batches
from qkvtrace.settings import InterventionSettings
from qkvtrace.snapshots.interventions import changed
from qkvtrace.studies.answer import Cell
from qkvtrace.studies.subject import AS_LEARNED, Subject
from qkvtrace.studies.tools.translations import yes_no
from qkvtrace.translation.quality import translations

BATCH_SIZE = 64
MOST_WORDS = 12  # of a translation that goes on and on


@dataclass(frozen=True)
class Effect:
    """How the model translates under a change."""

    translations: list[str]
    exact: int  # validation sentences that are translated as their reference, token for token
    different: int  # different translations of these sentences

    def rows(
        self, sentences: Sequence[str], learned: "Effect", *named: Cell
    ) -> list[tuple[Cell, ...]]:
        """For each sentence: `named`, the sentence, its translation, whether it is the learned."""
        return [
            (*named, text, _shortened(translation), yes_no(translation == usual))
            for text, translation, usual in zip(
                sentences, self.translations, learned.translations, strict=True
            )
        ]


class Trial:
    """Translates the same sentences, and the same part of the validation split, each time."""

    def __init__(self, subject: Subject, sentences: Sequence[str], limit: int) -> None:
        """limit: how many validation sentences are translated, the first of them."""
        trained = subject.trained
        self.subject = subject
        self.sentences = subject.sentences(list(dict.fromkeys(sentences)))
        valid = subject.corpus.splits["valid"]
        self.pairs = valid[:limit]
        first = f"the first {limit} of " if limit < len(valid) else ""
        same = " (those of training)" if valid == subject.corpus.splits["train"] else ""
        self.name = f"{first}{len(valid)} validation sentences{same}"
        self.batches = Batches(
            self.pairs,
            trained.source,
            trained.target,
            size=BATCH_SIZE,
            device=next(trained.model.parameters()).device,
        )

    def under(self, change: InterventionSettings = AS_LEARNED) -> Effect:
        """What the last model does under a change."""
        shown = [str(each) for each in self.subject.translate(self.sentences, change)]
        model, target = self.subject.model(), self.subject.trained.target
        with changed(model, change):
            made = translations(model, self.batches, target)
        exact = sum(words == wanted for words, (_, wanted) in zip(made, self.pairs, strict=True))
        return Effect(shown, exact, len(set(map(tuple, made))))


def _shortened(translation: str) -> str:
    words = translation.split()
    if len(words) > MOST_WORDS:
        return " ".join([*words[:MOST_WORDS], "…"])
    return translation or "(nothing)"
