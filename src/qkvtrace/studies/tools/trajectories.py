"""What the studies of trajectories share: the way of chosen words' vectors through the epochs."""

from collections.abc import Sequence
from dataclasses import dataclass

from qkvtrace.snapshots.sites import Site
from qkvtrace.studies.answer import Answer, Cell, Cloud, Table
from qkvtrace.studies.asked import some
from qkvtrace.studies.points import COMPONENTS, label, trails
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import same_word, weights
from qkvtrace.studies.tools.following import Followed, HeadVector, follow
from qkvtrace.studies.tools.wording import listed, percent


@dataclass(frozen=True, kw_only=True)
class Trajectories:
    """What the studies of trajectories share."""

    sentences: tuple[str, ...]
    vectors: tuple[HeadVector, ...]
    layer: int
    head: int
    epochs: tuple[int, ...] | None

    def trajectories(
        self, subject: Subject, texts: Sequence[str], site: Site, followed: Sequence[Followed]
    ) -> Answer:
        """Follow words through the epochs, all of them in one space."""
        (head,) = weights.heads(subject, self.layer, self.head)
        epochs = subject.chosen(self.epochs)
        sentences = subject.observe(texts, patterns=["encoder.embedding"]).sentences
        vectors = some("vectors", self.vectors)
        places = [
            (words.name, point)
            for words in followed
            for point in words.standing(sentences, site, vectors)
        ]
        found = follow(subject, texts, site, head, [point for _, point in places], epochs)
        space, ways = trails(found)
        where = f"{site.title}, layer {self.layer}, head {self.head}"
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                p.token,
                p.vector,
                texts[p.sentence],
                p.position,
                epoch,
                label(p.token, p.vector, epoch),
                *way,
            )
            for (name, p), points in zip(places, ways.transpose(0, 1).tolist(), strict=True)
            for epoch, way in zip(epochs, points, strict=True)
        ]
        trajectories = Table(
            "trajectories",
            f"{where}: {listed([words.name for words in followed])} over training",
            ("word", "token", "vector", "sentence", "position", "epoch", "label", *COMPONENTS),
            rows,
            Cloud(
                axes=COMPONENTS,
                explained=tuple(space.explained),
                label="label",
                colour="vector",
                symbol="sentence",
                trail=("word", "vector", "sentence"),
                along="epoch",
                marked=tuple(epoch for epoch in subject.landmarks if epoch in epochs),
                panels=("word",) if len(followed) > 1 else (),
            ),
        )
        alike = same_word.between(texts, places, epochs, found)
        says = [
            f"Three components hold {percent(sum(space.explained))} of the variance of all "
            f"{len(rows)} vectors shown: those of every epoch, in one space.",
            *(
                same_word.said(words, alike, epochs)
                for words in followed
                if any(row[0] == words.name for row in alike)
            ),
        ]
        same = [v for v in vectors if v != "x1" and same_word.identical(v, alike)]
        if same and self.layer == 0 and site.name != "cross":
            says.append(
                f"Between the sentences {listed(same)} never differ: the first layer makes them "
                "from the word where it stands. Other words come in with attention, in x1."
            )
        return Answer(says, [trajectories, *same_word.table(where, alike, followed)])
