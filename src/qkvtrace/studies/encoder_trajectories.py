"""Item 2: trajectories in the encoder."""

from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.snapshots.sites import site_named
from qkvtrace.studies.answer import Answer
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.following import Followed
from qkvtrace.studies.tools.trajectories import Trajectories


@dataclass(frozen=True, kw_only=True)
class EncoderTrajectories(Trajectories):
    """q, k, v and x1 of a source word in sentences that differ in another word."""

    title: ClassVar = "Trajectories in the encoder"
    question: ClassVar = "Where do q, k, v and x1 of a word go while the model learns?"
    look: ClassVar = (
        "Each line is one vector on its way through the epochs; large marks are the epochs that "
        "are named. See whether q, k, v and x1 part, and which of them differ between the "
        "sentences. q meets k in a dot product and x1 is a mean of v; between q and v distances "
        "mean nothing."
    )

    words: tuple[str, ...]

    def answer(self, subject: Subject) -> Answer:
        """Follow each word through every kept epoch."""
        texts = subject.sentences(self.sentences)
        words = subject.words(self.words, [subject.tokens(text) for text in texts])
        followed = [Followed(name=word, query=word, key=word) for word in words]
        return self.trajectories(subject, texts, site_named("encoder_self"), followed)
