"""Item 9: five sentences, sensible, nonsensical and misleading."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from qkvtrace.settings import at_least
from qkvtrace.studies.answer import Answer, Cell, Cloud, Heatmap, Table
from qkvtrace.studies.asked import some
from qkvtrace.studies.geometry import fit_pca
from qkvtrace.studies.points import COMPONENTS
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.translations import COLUMNS, translated
from qkvtrace.studies.tools.whereabouts import PARTS, Found, Places, distance
from qkvtrace.studies.tools.wording import listed

Distance = tuple[str, str, int, float]  # part, vector, epoch, mean distance


@dataclass(frozen=True, kw_only=True)
class FiveSentences:
    """The vectors of sentences that differ in their end alone."""

    title: ClassVar = "Five sentences"
    question: ClassVar = "Where inside the model do sentences become different?"
    look: ClassVar = (
        "The sentences begin alike; some make sense and some do not. Points that lie together are "
        "alike in all sentences, points that scatter know how their sentence goes on. Each "
        "picture is a space of its own: compare scatter within one, and by the table of distances "
        "between them."
    )

    sentences: tuple[str, ...]
    words: tuple[str, ...]
    steps: tuple[int, ...]
    layer: int
    head: int

    def answer(self, subject: Subject) -> Answer:
        """Translate the sentences, then compare their vectors, also with the first model's."""
        steps = some("steps", self.steps)
        at_least("study.steps", min(steps), 1)
        (head,) = weights.heads(subject, self.layer, self.head)
        texts = subject.sentences(self.sentences)
        words = subject.words(self.words, [subject.tokens(text) for text in texts])
        places = Places(head, words, steps)
        distances: list[Distance] = []
        for epoch in sorted({subject.epochs[0], subject.last}):
            kinds = places.found(subject.observe(texts, epoch, places.patterns()))
            distances += [
                (*kind, epoch, mean)
                for kind, found in kinds.items()
                if (mean := distance(found)) is not None
            ]
        where = f"layer {self.layer}, head {self.head}, epoch {subject.last}"
        clouds = [
            _cloud(part, where, texts, {v: kinds[part, v] for v in vectors})
            for part, vectors in PARTS.items()
        ]
        return Answer(
            list(_says(distances, self.layer)) if distances else [],
            [
                Table(
                    "translations",
                    f"Translations at epoch {subject.last}",
                    COLUMNS,
                    translated(subject, texts),
                ),
                Table(
                    "distances",
                    "Mean cosine distance between the sentences at the same word or step "
                    f"(0: alike, 1: unrelated), layer {self.layer}, head {self.head}",
                    ("part", "vector", "epoch", "distance"),
                    distances,
                    Heatmap(
                        row="vector",
                        column="epoch",
                        column_title="epoch",
                        value="distance",
                        scale="number",
                        panels=("part",),
                    ),
                ),
                *clouds,
            ],
        )


def _cloud(
    part: str, where: str, texts: Sequence[str], kinds: Mapping[str, Sequence[Found]]
) -> Table:
    """The points of each kind in a space of its own."""
    rows: list[tuple[Cell, ...]] = []
    for vector, found in kinds.items():
        if found:
            vectors = torch.stack([each.vector for each in found])
            space = fit_pca(vectors)
            rows += [
                (vector, sum(space.explained), texts[each.sentence], each.place, each.label, *at)
                for each, at in zip(found, space.project(vectors).tolist(), strict=True)
            ]
    return Table(
        part.replace("-", "_"),
        f"{part.capitalize()} of the sentences, each kind of vector in its own space, {where}",
        ("vector", "variance shown", "sentence", "place", "label", *COMPONENTS),
        rows,
        Cloud(
            axes=COMPONENTS,
            label="label",
            colour="sentence",
            symbol="place",
            panels=("vector", "variance shown"),
        ),
    )


def _says(distances: Sequence[Distance], layer: int) -> Iterator[str]:
    """The distances of each part at the last epoch and at the first; which are always 0."""
    epochs = sorted({epoch for _, _, epoch, _ in distances}, reverse=True)
    for part in PARTS:
        at = [
            f"at epoch {epoch}: "
            + listed([f"{v} {d:.2f}" for of, v, e, d in distances if (of, e) == (part, epoch)])
            for epoch in epochs
        ]
        yield f"{part.capitalize()}, mean cosine distance between the sentences {'; '.join(at)}."
    largest: dict[str, float] = {}
    for part, vector, _, mean in distances:
        kind = f"{part} {vector}"
        largest[kind] = max(mean, largest.get(kind, 0.0))
    same = [kind for kind, most in largest.items() if most < 1e-6]
    if same and layer == 0:
        yield (
            f"Not learned, but by design the same in all sentences: {listed(same)}. In the first "
            "layer these know no more than a word where it stands, or the target words so far."
        )
