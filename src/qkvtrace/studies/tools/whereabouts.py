"""Vectors at the words and steps that sentences have in common, in encoder and decoder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from torch import Tensor

from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import site_named
from qkvtrace.studies.geometry import cosines
from qkvtrace.studies.points import standing
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.weights import Head

ENCODER, CROSS = site_named("encoder_self"), site_named("cross")
PARTS = {
    "encoder": ("q", "k", "v", "x1", "x4", "final output"),
    "cross-attention": ("q", "k", "v", "x4", "logits"),
}
WHOLE = {"final output": "encoder.output", "logits": "logits"}  # of no layer


@dataclass(frozen=True)
class Found:
    """A vector of one sentence, at a word or a step that the others have too."""

    place: str
    sentence: int
    label: str
    vector: Tensor


@dataclass(frozen=True)
class Places:
    """Where to look: words of the source, and steps of the decoder, from 1."""

    head: Head
    words: Sequence[str]
    steps: Sequence[int]

    def patterns(self) -> list[str]:
        """The taps that hold all of PARTS."""
        return list(WHOLE.values()) + [
            site.tap(self.head[0], vector)
            for part, site in (("encoder", ENCODER), ("cross-attention", CROSS))
            for vector in PARTS[part]
            if vector not in WHOLE
        ]

    def found(self, snapshot: Snapshot) -> dict[tuple[str, str], list[Found]]:
        """All vectors, by part and kind."""
        return {
            (part, vector): list(self._kind(snapshot, part, vector))
            for part, vectors in PARTS.items()
            for vector in vectors
        }

    def _kind(self, snapshot: Snapshot, part: str, vector: str) -> Iterator[Found]:
        site = ENCODER if part == "encoder" else CROSS
        tap = WHOLE.get(vector)
        values = snapshot.values[tap] if tap else site.vectors(snapshot.values, *self.head, vector)
        if part == "encoder" or vector in ("k", "v"):
            for word in self.words:
                for point in standing(snapshot.sentences, site, ["k"], {"key": word}):
                    at = values[point.sentence, point.position]
                    yield Found(word, point.sentence, word, at)
            return
        for step in self.steps:
            for index, sentence in enumerate(snapshot.sentences):
                labels = weights.queries(CROSS, sentence)
                if step <= len(labels):
                    at = values[index, step - 1]
                    yield Found(f"step {step}", index, labels[step - 1], at)


def distance(found: Sequence[Found]) -> float | None:
    """1 - cosine, the mean over each two sentences at the same place; None without two."""
    distances = [
        max(0.0, 1 - float(cosines(one.vector[None], other.vector[None])))
        for one, other in combinations(found, 2)
        if one.place == other.place
    ]
    return sum(distances) / len(distances) if distances else None
