"""Item 3: trajectories in the decoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from qkvtrace.snapshots.probes import Sentence
from qkvtrace.snapshots.sites import Site, site_named
from qkvtrace.studies.answer import Answer
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools.following import Followed
from qkvtrace.studies.tools.trajectories import Trajectories


@dataclass(frozen=True, kw_only=True)
class WordPair:
    """A target word, and the source word that is shown beside it."""

    target: str
    source: str


@dataclass(frozen=True, kw_only=True)
class DecoderTrajectories(Trajectories):
    """q and x1 of target words, k and v of source words, in sentences that differ in another."""

    title: ClassVar = "Trajectories in the decoder"
    question: ClassVar = "Where do q, k, v and x1 of the decoder go while the model learns?"
    look: ClassVar = (
        "In cross-attention q and x1 stand at target words, k and v at source words. k and v know "
        "the whole source sentence from the encoder; q of the first layer knows the target words "
        "up to its own, and x1 adds what it finds in the source. See which differ between the "
        "sentences."
    )

    site: Literal["decoder_self", "cross"]
    words: tuple[WordPair, ...]

    def answer(self, subject: Subject) -> Answer:
        """Follow each pair of words through every kept epoch."""
        texts = subject.sentences(self.sentences)
        site = site_named(self.site)
        sentences = subject.observe(texts, patterns=["decoder.embedding"]).sentences
        return self.trajectories(subject, texts, site, self._followed(subject, site, sentences))

    def _followed(
        self, subject: Subject, site: Site, sentences: Sequence[Sentence]
    ) -> list[Followed]:
        """The pairs that stand in the sentences, or else a pair of words that does."""
        targets, sources = [s.target for s in sentences], [s.source for s in sentences]
        for_target = subject.words([pair.target for pair in self.words], targets)
        if site.keys == "target":
            return [Followed(name=word, query=word, key=word) for word in for_target]
        for_source = subject.words([pair.source for pair in self.words], sources)
        there = [
            (p.target, p.source)
            for p in self.words
            if p.target in for_target and p.source in for_source
        ]
        pairs = there or list(zip(for_target, for_source, strict=False))
        return [Followed(name=f"{t}, {s}", query=t, key=s) for t, s in pairs]
