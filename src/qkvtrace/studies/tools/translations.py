"""Translations as a table: what became of sentences that the corpus may not have."""

from collections.abc import Sequence

from qkvtrace.studies.subject import Subject

COLUMNS = ("sentence", "in training", "translation", "a translation in training")  # of a row


def translated(subject: Subject, sentences: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Each sentence, its translation by the last model, and whether the training split has them."""
    train = subject.corpus.splits["train"]
    sources = {" ".join(source) for source, _ in train}
    targets = {" ".join(target) for _, target in train}
    return [
        (text, yes_no(" ".join(t.source) in sources), str(t), yes_no(str(t) in targets))
        for text, t in zip(sentences, subject.translate(sentences), strict=True)
    ]


def yes_no(true: bool) -> str:
    """How a table says it."""
    return "yes" if true else "no"
