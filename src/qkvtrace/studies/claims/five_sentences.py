"""Claim d: five sentences that begin alike.

Encoder, at the words that all sentences have, each where it stands first in a sentence; over each
two sentences. d is the mean cosine distance over these, 1 - cos: 0 alike, 1 unrelated.

alike: max |a - b| / |a| over q, k and v of the first layer, before and after training, of words
    that stand at the same position: another position is another vector. 1e-5 leaves room for
    float32's rounding. Control: the same of x1.
x1, x4, output: d(x) - max(d(q), d(k), d(v)), with q, k and v of x1's layer; of each layer and head,
    the mean over these. "output" is the encoder's own, after its last layer. 0.1 is an angle of 26
    degrees between vectors that were one. Control: the same before training.

From "Understanding Q, K, V in Transformer (self attention)".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean
from typing import ClassVar

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.studies.claims.tools.shared_words import ENCODER, QKV, SharedWords, deviation, gap
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory, Member, Words

OUTPUT = "encoder.output"


def _scatters(name: str, vector: str) -> Part:
    return Part(
        name=name,
        says=f"{vector} of the same word differs between the sentences more than q, k and v do.",
        measure=f"d({name}) − max(d(q), d(k), d(v)): mean cosine distances between two sentences",
        unit="cosine distance",
        least=0.1,
    )


@dataclass(frozen=True, kw_only=True)
class FiveSentences:
    """Which vectors know how a sentence goes on."""

    letter: ClassVar = "d"
    title: ClassVar = "Five sentences"
    sentence: ClassVar = (
        "In sentences that begin alike, q, k and v of the words in common look alike, while x1, x4 "
        "and the encoder's output scatter."
    )
    source: ClassVar = "the article"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="alike",
            says="In the first layer q, k and v of the words in common are the same in all "
            "sentences.",
            measure="max |a − b| / |a| over each two sentences, before and after training",
            unit="relative deviation",
            least=1e-5,
            because="the first layer makes them of the word's and the position's vectors alone",
        ),
        _scatters("x1", "x1"),
        _scatters("x4", "x4"),
        _scatters("output", "The encoder's output"),
    )

    sentences: tuple[str, ...]

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Raises UserError unless two sentences have a word in common at the same position."""
        members = laboratory.members(laboratory.base)
        words = list(dict.fromkeys(tuple(members[0].words(text)) for text in self.sentences))
        shared, in_place = (common(words, in_place=in_place) for in_place in (False, True))
        rows = [_numbers(member, words, shared, in_place) for member in members]
        alike, x1, *scatter = zip(*rows, strict=True)
        names = [part.name for part in self.parts[1:]]
        trained, untrained = scatter[: len(names)], scatter[len(names) :]
        return {"alike": Measured(alike, {"x1": x1})} | {
            name: Measured(effect, {"untrained": before})
            for name, effect, before in zip(names, trained, untrained, strict=True)
        }


def _numbers(
    member: Member, sentences: Sequence[Words], shared: SharedWords, in_place: SharedWords
) -> tuple[float, ...]:
    layers = range(member.recipe.model.layers)
    taps = [ENCODER.tap(layer, vector) for layer in layers for vector in (*QKV, "x1", "x4")]
    epochs = (LAST, UNTRAINED)
    both = trained, untrained = [
        member.observe(sentences, [*taps, OUTPUT], epoch) for epoch in epochs
    ]
    return (
        max(deviation(at.values, in_place, QKV) for at in both),
        deviation(trained.values, in_place, ["x1"]),
        *scatter(trained, shared, layers),
        *scatter(untrained, shared, layers),
    )


def scatter(snapshot: Snapshot, shared: SharedWords, layers: Sequence[int]) -> list[float]:
    """How much more x1, x4 and the encoder's output differ than q, k and v, means over layers."""
    rows = [
        [
            gap(snapshot.values, shared, layer, tap)
            for tap in (ENCODER.tap(layer, "x1"), ENCODER.tap(layer, "x4"), OUTPUT)
        ]
        for layer in layers
    ]
    return [mean(each) for each in zip(*rows, strict=True)]


def common(sentences: Sequence[Sequence[str]], *, in_place: bool) -> SharedWords:
    """The words that stand in all sentences, each where it stands first, of each two sentences.

    in_place: only where it stands at the same position in both. Raises UserError if there is none.
    """
    found = [
        (i, one.index(word) + 1, j, other.index(word) + 1)  # <sos> stands at 0
        for (i, one), (j, other) in combinations(enumerate(sentences), 2)
        for word in dict.fromkeys(one)
        if all(word in each for each in sentences)
        and (one.index(word) == other.index(word) or not in_place)
    ]
    if not found:
        raise UserError(
            "five_sentences.sentences: expected two or more that all have a word at the same "
            f"position, found {', '.join(' '.join(each) for each in sentences) or 'none'}"
        )
    return SharedWords.at(found)
