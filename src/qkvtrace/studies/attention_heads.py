"""Item 14: what each head looks at."""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import torch
from torch import Tensor

from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import Site
from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.weights import Head
from qkvtrace.studies.tools.wording import percent

HABITS = (
    "on its own position",
    "on the one before",
    "on the one after",
    "on the first",
    "on the last",
    "spread",
)


@dataclass(frozen=True, kw_only=True)
class AttentionHeads:
    """The attention weights of one sentence, a picture a head."""

    title: ClassVar = "Attention heads"
    question: ClassVar = "What does each head look at?"
    look: ClassVar = (
        "A row is a word that attends, and its weights sum to 1. A strong column is a word that "
        "all others look at; in self-attention the diagonal is a word's look at itself, and the "
        "lines beside it are its neighbours. Of several heads, see whether they look at different "
        "things."
    )

    sentence: str
    site: str
    epoch: int | None
    layer: int | None
    head: int | None

    def answer(self, subject: Subject) -> Answer:
        """Record the weights, and beside them those of the first epoch that is kept."""
        heads, site = weights.heads(subject, self.layer, self.head), weights.site(self.site)
        epoch = weights.at_epoch(subject, self.epoch)
        text = subject.sentences([self.sentence])[0]
        rows: list[tuple[Cell, ...]] = []
        says: list[str] = []
        for at in sorted({subject.epochs[0], epoch}):
            snapshot = subject.observe([text], at, weights.taps([site], heads))
            found = {head: weights.weights(snapshot, site, head) for head in heads}
            rows += [(at, *head, *_habits(each, site)) for head, each in found.items()]
            says.append(_spreads(at, {head: weights.spread(w, site) for head, w in found.items()}))
        equal = _equal(found[heads[0]], site)
        rows.append((None, None, "equal weights", *_habits(equal, site)))
        return Answer(
            [*says, *_differences(found)],
            [_attention(text, site, snapshot, found), _summary(text, site, rows)],
        )


def _habits(found: Tensor, site: Site) -> tuple[float, ...]:
    """The mean weight of a query at some positions, as HABITS names them; weights (T, S)."""
    means = [found.diagonal(offset).mean() for offset in (0, -1, 1)]
    return (
        *(float(mean) for mean in (*means, found[:, 0].mean(), found[:, -1].mean())),
        weights.spread(found, site),
    )


def _equal(found: Tensor, site: Site) -> Tensor:
    """Weights of the same shape that are equal wherever a query may look."""
    allowed = torch.ones_like(found)
    if site.name == "decoder_self":
        allowed = allowed.tril()
    return allowed / allowed.sum(-1, keepdim=True)


def _attention(text: str, site: Site, snapshot: Snapshot, found: dict[Head, Tensor]) -> Table:
    sentence = snapshot.sentences[0]
    sides = weights.queries(site, sentence), site.tokens(sentence, "key")
    return Table(
        "attention",
        f"{site.title} at epoch {snapshot.epoch}: “{text}”",
        ("layer", "head", *weights.COLUMNS),
        [(*head, *row) for head, each in found.items() for row in weights.rows(each, *sides)],
        weights.picture("layer", "head"),
    )


def _summary(text: str, site: Site, rows: list[tuple[Cell, ...]]) -> Table:
    return Table(
        "heads",
        f"{site.title}: the mean weight on some positions, and the spread of the weights from 0 "
        f"(each word looks at one position) to 1 (at all equally): “{text}”",
        ("epoch", "layer", "head", *HABITS),
        rows,
    )


def _spreads(epoch: int, spreads: dict[Head, float]) -> str:
    (low, least), *_, (high, most) = sorted([*spreads.items()] * 2, key=lambda item: item[1])
    if len(spreads) == 1:
        return f"At epoch {epoch} the spread of {_named(low)} is {least:.2f}; of equal weights, 1."
    return (
        f"At epoch {epoch} the spread is {least:.2f} in {_named(low)}, the most concentrated, and "
        f"{most:.2f} in {_named(high)}; of equal weights, 1."
    )


def _differences(found: dict[Head, Tensor]) -> list[str]:
    """How differently the two heads of one layer place their weight that differ most."""
    apart = {
        (one, other): float((found[one] - found[other]).abs().sum(-1).mean()) / 2
        for one, other in combinations(found, 2)
        if one[0] == other[0]
    }
    if not apart:
        return []
    (one, other), share = max(apart.items(), key=lambda item: item[1])
    return [
        f"Of two heads of one layer, {_named(one)} and head {other[1]} differ most: a word places "
        f"{percent(share)} of its weight elsewhere, on average."
    ]


def _named(head: Head) -> str:
    return f"layer {head[0]}, head {head[1]}"
