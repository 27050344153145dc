"""Item 5: the weights of one sentence while they are learned."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qkvtrace.snapshots.sites import Site
from qkvtrace.studies.answer import Answer, Cell, Lines, Table
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.curves import sites
from qkvtrace.studies.tools.weights import Head

Rows = list[tuple[Cell, ...]]


@dataclass(frozen=True, kw_only=True)
class AttentionOverTraining:
    """Attention's weights for one sentence at some epochs, and how spread out they are at all."""

    title: ClassVar = "Attention over training"
    question: ClassVar = "How do the attention weights of one sentence come to be?"
    look: ClassVar = (
        "A row is a word that attends, or a step of the decoder: what it is given → what comes "
        "next. Its weights sum to 1. See which rows find a word to look at, and when, and which "
        "stay spread out. How spread out they are at epoch 0, by chance, is where the curves begin."
    )

    sentence: str
    epochs: tuple[int, ...] | None
    site: str | None
    layer: int | None
    head: int | None

    def answer(self, subject: Subject) -> Answer:
        """Record the weights of each epoch that is kept, one at a time."""
        heads, chosen = weights.heads(subject, self.layer, self.head), sites(self.site)
        drawn = subject.chosen(self.epochs) if self.epochs else _tenths(subject)
        text = subject.sentences([self.sentence])[0]
        places = [(site, head) for site in chosen for head in heads]
        cells: dict[tuple[Site, Head], Rows] = {place: [] for place in places}
        spreads: Rows = []
        for epoch in subject.epochs:
            snapshot = subject.observe([text], epoch, weights.taps(chosen, heads))
            sentence = snapshot.sentences[0]
            for site, head in places:
                found = weights.weights(snapshot, site, head)
                spreads.append((epoch, site.name, *head, weights.spread(found, site)))
                if epoch in drawn:
                    sides = weights.queries(site, sentence), site.tokens(sentence, "key")
                    cells[site, head] += [
                        (epoch, site.name, *head, *row) for row in weights.rows(found, *sides)
                    ]
        rows = [row for place in places for row in cells[place]]
        return Answer(
            list(_course(chosen, heads, spreads)),
            [_attention(text, rows), _spreads(text, spreads)],
        )


def _tenths(subject: Subject) -> list[int]:
    """Of the epochs that are kept: epoch 1, each tenth after it and the last."""
    return [
        epoch
        for epoch in subject.epochs
        if epoch in (1, subject.last) or (epoch > 0 and epoch % 10 == 0)
    ]


def _attention(text: str, rows: Rows) -> Table:
    return Table(
        "attention",
        f"Attention while it is learned: “{text}”",
        ("epoch", "site", "layer", "head", *weights.COLUMNS),
        rows,
        weights.picture("site", "layer", "head", "epoch"),
    )


def _spreads(text: str, rows: Rows) -> Table:
    return Table(
        "spread",
        "How spread out attention is, from 0 (each word looks at one position) to 1 (equally at "
        f"all): “{text}”",
        ("epoch", "site", "layer", "head", "spread"),
        rows,
        Lines(
            x="epoch",
            y="spread",
            colour="site",
            panels=("layer", "head"),
            x_title="epoch",
            y_title="entropy, as a share of the highest possible",
        ),
    )


def _course(chosen: Sequence[Site], heads: Sequence[Head], spreads: Rows) -> Iterator[str]:
    """What happened to the first of the heads at each site."""
    layer, head = heads[0]
    for site in chosen:
        course = [row for row in spreads if row[1:4] == (site.name, layer, head)]
        (first, *_, before), (last, *_, after) = course[0], course[-1]
        early = f"{before:.2f} at epoch {first} and " if first != last else ""
        yield (
            f"{site.title}, layer {layer}, head {head}: the spread of the weights is {early}"
            f"{after:.2f} at epoch {last}; it is 1 where all are equal."
        )
