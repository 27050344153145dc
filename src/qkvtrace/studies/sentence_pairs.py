"""Item 11: pairs of sentences, every word with every word."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.errors import UserError
from qkvtrace.snapshots.sites import site_named
from qkvtrace.studies.answer import Answer, Cell, Heatmap, Table
from qkvtrace.studies.asked import some
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.word_by_word import MEANS, SHOWN, Compared, Means, compared

Pair = tuple[str, ...]  # two sentences


@dataclass(frozen=True, kw_only=True)
class SentencePairs:
    """The cosine of each vector of one sentence with each of another."""

    title: ClassVar = "Sentence pairs"
    question: ClassVar = "Which vectors are alike in two sentences, and which follow word or place?"
    look: ClassVar = (
        "A vector that follows its word is alike wherever the word stands; one that follows its "
        "place is alike on the diagonal. q, x4 and weights stand at the decoder's steps (what it "
        "is given → what comes next), k and v at source words; weights are compared source "
        "position by position. Where the corpus has no translation, the decoder is given the "
        "model's own."
    )

    pairs: tuple[Pair, ...]
    encoder_pairs: tuple[Pair, ...]
    layer: int
    head: int

    def answer(self, subject: Subject) -> Answer:
        """Compare at the last epoch, and in a few numbers at the first."""
        (head,) = weights.heads(subject, self.layer, self.head)
        asked = [
            (site_named(name), number, pair)
            for name, pairs in self._known(subject).items()
            for number, pair in enumerate(pairs, start=1)
        ]
        texts = list(dict.fromkeys(text for *_, pair in asked for text in pair))
        patterns = [
            site_named(name).tap(self.layer, vector)
            for name, vectors in SHOWN.items()
            for vector in vectors
        ]
        means: dict[tuple[Cell, ...], Means] = {}
        for epoch in sorted({subject.epochs[0], subject.last}):
            snapshot = subject.observe(texts, epoch, patterns)
            tables = []
            for site, number, pair in asked:
                found = list(compared(snapshot, site, head, *map(texts.index, pair)))
                means |= {(site.name, *pair, each.vector, epoch): each.means() for each in found}
                where = f"{site.title}, layer {head[0]}, head {head[1]}, epoch {epoch}"
                tables.append(_matrices(f"{site.name}_{number}", where, pair, found))
        summary = Table(
            "means",
            f"Mean cosine by word and place, layer {self.layer}, head {self.head}",
            ("site", "sentence", "other sentence", "vector", "epoch", *MEANS),
            [  # the last epoch first: the other is its control
                (*key, *found)
                for key, found in sorted(means.items(), key=lambda item: -int(item[0][4] or 0))
            ],
        )
        return Answer(list(_says(means)), [summary, *tables])

    def _known(self, subject: Subject) -> dict[str, list[Pair]]:
        """The pairs of each site whose words the run knows, or else some of its own sentences."""
        found = {}
        for key, site, pairs in (
            ("pairs", "cross", self.pairs),
            ("encoder_pairs", "encoder_self", self.encoder_pairs),
        ):
            for pair in pairs:
                if len(pair) != 2:
                    raise UserError(f"study.{key}: expected pairs of sentences, found {list(pair)}")
            texts = subject.sentences(some(key, (text for pair in pairs for text in pair)))
            known = [pair for pair in pairs if set(pair) <= set(texts)]
            found[site] = known or [(texts[0], other) for other in texts[: len(pairs)]]
        return found


def _matrices(name: str, where: str, pair: Pair, found: Sequence[Compared]) -> Table:
    one, other = pair
    return Table(
        name,
        f"{where}: cosine of “{one}” with " + ("itself" if one == other else f"“{other}”"),
        ("vector", "position", "word", "other position", "other word", "cosine"),
        [cell for each in found for cell in each.cells()],
        Heatmap(
            row="position",
            row_label="word",
            row_title=one,
            column="other position",
            column_label="other word",
            column_title=other,
            value="cosine",
            scale="cosine",
            panels=("vector",),
        ),
    )


def _says(means: dict[tuple[Cell, ...], Means]) -> Iterator[str]:
    """What follows its word, for each two sentences that have a word at different places."""
    found: dict[str, dict[str, list[str]]] = {}
    for (site, one, other, vector, epoch, *_), (_, elsewhere, others) in means.items():
        if one != other and elsewhere is not None and others is not None:
            title = site_named(str(site)).title
            kinds = found.setdefault(f"{title}, “{one}” with “{other}”", {})
            at = f"{elsewhere:.2f} against {others:.2f} at epoch {epoch}"
            kinds.setdefault(str(vector), []).insert(0, at)  # the last epoch first
    for pair, kinds in found.items():
        each = "; ".join(f"{vector} {', '.join(at)}" for vector, at in kinds.items())
        yield f"{pair}, mean cosine of the same word elsewhere against other words: {each}."
