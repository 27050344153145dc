"""Item 8: the decoder's last vectors."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from qkvtrace.corpus.vocabulary import EOS, SPECIALS
from qkvtrace.settings import InterventionSettings, at_least
from qkvtrace.snapshots.interventions import changed
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.studies.answer import Answer, Cell, Cloud, Table
from qkvtrace.studies.geometry import cosines, fit_pca
from qkvtrace.studies.points import COMPONENTS
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.wording import percent

OTHER = "other words"
MOST_PARTS = 11  # and OTHER: as many as there are colours
TAPS = ("decoder.output", "logits")


@dataclass(frozen=True, kw_only=True)
class Part:
    """Target words that are coloured alike."""

    part: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Vectors:
    """The decoder's output at each target position of all sentences, under one attention."""

    places: list[tuple[int, str, str]]  # sentence, step, the word that comes next
    vectors: Tensor  # (N, D)
    right: float  # how often the model takes that word to be the likeliest, 0 to 1

    def alike(self) -> float:
        """How often the most alike vector of another sentence leads to the same word, 0 to 1."""
        sentence = torch.tensor([place[0] for place in self.places])
        cosine = cosines(self.vectors, self.vectors)
        cosine[sentence[:, None] == sentence] = -torch.inf
        words = [word for *_, word in self.places]
        nearest = [words[index] for index in cosine.argmax(1).tolist()]
        return _share(map(str.__eq__, words, nearest))


@dataclass(frozen=True, kw_only=True)
class DecoderVectors:
    """The vectors from which target words are read, with learned attention and with another."""

    title: ClassVar = "The decoder's last vectors"
    question: ClassVar = "Do vectors that lead to the same kind of word lie together?"
    look: ClassVar = (
        "A point is what the decoder makes of one target position; its colour is the kind of word "
        "that comes next there. Both pictures have the same axes: see which groups fall apart when "
        "attention is not the learned one, and which hold, because the words so far give them away."
    )

    split: Literal["train", "valid", "test"]
    limit: int
    attention: str
    parts: tuple[Part, ...]

    def answer(self, subject: Subject) -> Answer:
        """Give the decoder each reference, under both kinds of attention, and fit one space."""
        at_least("study.limit", self.limit, 2)
        change = InterventionSettings(attention=self.attention)
        pairs = subject.corpus.splits[self.split]
        texts = list(dict.fromkeys(" ".join(source) for source, _ in pairs))[: self.limit]
        both = {"learned": _vectors(subject, subject.observe(texts, patterns=TAPS))}
        with changed(subject.model(), change):
            both[self.attention] = _vectors(subject, subject.observe(texts, patterns=TAPS))
        space = fit_pca(torch.cat([each.vectors for each in both.values()]))
        words = Counter(word for *_, word in both["learned"].places)
        parts, notes = self._parts(words)
        rows: list[tuple[Cell, ...]] = [
            (name, texts[sentence], step, word, parts.get(word, OTHER), *at)
            for name, each in both.items()
            for (sentence, step, word), at in zip(
                each.places, space.project(each.vectors).tolist(), strict=True
            )
        ]
        chance = sum((count / words.total()) ** 2 for count in words.values())
        return Answer(
            [
                *(_says(name, each, len(texts)) for name, each in both.items()),
                f"Of two positions picked at random, {percent(chance)} lead to the same word.",
            ],
            [
                Table(
                    "vectors",
                    f"Last decoder vectors of {len(texts)} sentences, epoch {subject.last}, with "
                    f"learned attention and with {self.attention}",
                    ("attention", "sentence", "step", "next word", "part", *COMPONENTS),
                    rows,
                    Cloud(
                        axes=COMPONENTS,
                        explained=tuple(space.explained),
                        label="step",
                        colour="part",
                        panels=("attention",),
                    ),
                )
            ],
            notes,
        )

    def _parts(self, words: Counter[str]) -> tuple[dict[str, str], list[str]]:
        """The part of each word; the most frequent words themselves if some have none."""
        parts = {word: part.part for part in self.parts for word in part.words}
        without = [word for word in words if word not in parts]
        if not without:
            return parts, []
        named = ", ".join(without[:3])
        note = f"study.parts lacks words of this corpus ({named}): the most frequent are coloured"
        return {word: word for word, _ in words.most_common(MOST_PARTS)}, [note]


def _vectors(subject: Subject, snapshot: Snapshot) -> Vectors:
    """What was recorded, position by position, without padding."""
    places, vectors, right = [], [], []
    for index, sentence in enumerate(snapshot.sentences):
        following = [*sentence.target[1:], SPECIALS[EOS]]
        steps = weights.steps(sentence.target, following)
        places += [(index, step, word) for step, word in zip(steps, following, strict=True)]
        vectors.append(snapshot.values["decoder.output"][index, : len(steps)])
        ids = subject.trained.target.ids(following[:-1])[1:]
        likeliest = snapshot.values["logits"][index, : len(steps)].argmax(-1)
        right += (likeliest == torch.tensor(ids)).tolist()
    return Vectors(places, torch.cat(vectors), _share(right))


def _share(true: Iterable[bool]) -> float:
    found = list(true)
    return sum(found) / len(found)


def _says(name: str, found: Vectors, sentences: int) -> str:
    nearest = (
        f"; the most alike vector of another sentence leads to the same word for "
        f"{percent(found.alike())}"
        if sentences > 1
        else ""
    )
    return (
        f"With {name} attention the right next word is the likeliest at {percent(found.right)} of "
        f"{len(found.places)} positions{nearest}."
    )
