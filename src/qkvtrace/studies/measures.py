"""A few numbers of each head, over training."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from qkvtrace.snapshots.sites import Site
from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.curves import curves, sites
from qkvtrace.studies.tools.measured import NORMS, measured
from qkvtrace.studies.tools.weights import Head
from qkvtrace.studies.tools.wording import then_and_now

Row = tuple[Cell, ...]
RANGE = ("min", "max", "standard deviation")


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Entropy of the weights, norms of q, k and v, and the range of the scores."""

    title: ClassVar = "Measures over training"
    question: ClassVar = "When does each head begin to look at something, and how?"
    look: ClassVar = (
        "Entropy falls where a head learns to choose: 0 nats is one word alone, and beside it "
        "stands what equal weights would have. For that, scores must differ, which takes longer q "
        "and k, or q and k that point the same way: see which of them grew."
    )

    sentences: tuple[str, ...] | None
    site: str | None
    layer: int | None
    head: int | None
    epochs: tuple[int, ...] | None

    def answer(self, subject: Subject) -> Answer:
        """Measure each head at each epoch, over the words of all sentences together."""
        chosen, heads = sites(self.site), weights.heads(subject, self.layer, self.head)
        texts = subject.sentences(self.sentences)
        layers = dict.fromkeys(layer for layer, _ in heads)
        patterns = [
            site.tap(layer, value)
            for site in chosen
            for layer in layers
            for value in (*NORMS, "scores", "weights")
        ]
        found: dict[str, list[Row]] = {"entropy": [], "norms": [], "scores": []}
        epochs = subject.chosen(self.epochs)
        for epoch in epochs:
            snapshot = subject.observe(texts, epoch, patterns)
            for site, head in product(chosen, heads):
                place = (site.name, *head, epoch)
                here = measured(snapshot, site, *head)
                scores = zip(RANGE, (here.low, here.high, here.deviation), strict=True)
                found["entropy"].append((*place, here.entropy, here.uniform))
                found["scores"] += [(*place, *each) for each in scores]
                found["norms"] += [(*place, *each) for each in here.norms.items()]
        over = f"{len(texts)} sentences"
        return Answer(
            list(_says(found, chosen, heads[0], epochs[0], epochs[-1])),
            [
                Table(
                    "entropy",
                    f"Mean entropy of a word's attention, in nats, {over}",
                    ("site", "layer", "head", "epoch", "entropy", "of equal weights"),
                    found["entropy"],
                    curves("entropy", "entropy (nats)", heads),
                ),
                Table(
                    "norms",
                    f"Mean Euclidean length of q, k and v, {over}",
                    ("site", "layer", "head", "epoch", "vector", "length"),
                    found["norms"],
                    curves("length", "length", heads, "vector"),
                ),
                Table(
                    "scores",
                    f"Scores before the softmax, where attending is allowed, {over}",
                    ("site", "layer", "head", "epoch", "measure", "score"),
                    found["scores"],
                    curves("score", "score", heads, "measure"),
                ),
            ],
        )


def _says(
    found: Mapping[str, Sequence[Row]], sites: Sequence[Site], head: Head, first: int, last: int
) -> Iterator[str]:
    """The course of the first of the heads at each site."""
    for site in sites:
        place = (site.name, *head)
        entropies = [row for row in found["entropy"] if row[:3] == place]
        spreads = [row for row in found["scores"] if row[:3] == place and row[4] == RANGE[-1]]
        (*_, before, equal), (*_, after, _) = entropies[0], entropies[-1]
        nats = then_and_now(f"{after:.2f} nats", f"{before:.2f}", first, last)
        then, now = (f"{rows[-1]:.2f}" for rows in (spreads[0], spreads[-1]))
        yield (
            f"{site.title}, layer {head[0]}, head {head[1]}: the mean entropy is {nats}, where "
            f"equal weights have {equal:.2f}; the standard deviation of the scores is "
            f"{then_and_now(now, then, first, last)}."
        )
