"""Item 12: one number for each vector."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from qkvtrace.snapshots.sites import site_named
from qkvtrace.studies.answer import Answer, Lines, Table
from qkvtrace.studies.geometry import fit_pca
from qkvtrace.studies.points import standing
from qkvtrace.studies.subject import Subject
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.following import follow
from qkvtrace.studies.tools.wording import percent

VECTORS = ("q", "k", "v", "x1")


@dataclass(frozen=True, kw_only=True)
class OneNumber:
    """q, k, v and x1 of a word as one number each, and what their products are worth."""

    title: ClassVar = "One number per vector"
    question: ClassVar = "How much of q, k, v and x1 is left when each is a single number?"
    look: ClassVar = (
        "A vector's number is its place on the line along which all these vectors vary most, from "
        "their mean. It shows that they move, and hides where. The product of two numbers is no "
        "dot product: compare it with that of the whole vectors, which attention uses."
    )

    sentences: tuple[str, ...]
    word: str
    site: Literal["encoder_self", "decoder_self"]
    layer: int
    head: int
    epochs: tuple[int, ...] | None

    def answer(self, subject: Subject) -> Answer:
        """Project the vectors of all epochs on one line."""
        (head,) = weights.heads(subject, self.layer, self.head)
        site, epochs = site_named(self.site), subject.chosen(self.epochs)
        texts = subject.sentences(self.sentences)
        sentences = subject.observe(texts, patterns=["*.embedding"]).sentences
        (word,) = subject.words([self.word], [site.tokens(s, "query") for s in sentences])
        chosen = standing(sentences, site, VECTORS, {"query": word, "key": word})
        vectors = follow(subject, texts, site, head, chosen, epochs)
        space = fit_pca(vectors.flatten(0, 1), 1)
        vectors = vectors.unflatten(1, (len(VECTORS), -1))  # (E, vectors, sentences, K)
        numbers = space.project(vectors)[..., 0]
        holding = [texts[p.sentence] for p in chosen[: vectors.shape[2]]]
        where = f"“{word}”, {site.title}, layer {self.layer}, head {self.head}"
        early = next((epoch for epoch in epochs if epoch > 0), epochs[0])
        products = [
            _product(epoch, text, vectors[at, :, s], numbers[at, :, s])
            for epoch in sorted({early, epochs[-1]})
            for at in [epochs.index(epoch)]
            for s, text in enumerate(holding)
        ]
        same_sign = sum(row[6] * row[8] > 0 for row in products)
        last = products[-1]
        return Answer(
            [
                f"The one number holds {percent(space.explained[0])} of the variance of "
                f"{numbers.numel()} vectors: q, k, v and x1 of “{word}” at all epochs shown.",
                f"The product of the two numbers of q and k has the sign of the dot product of the "
                f"whole vectors in {same_sign} of {len(products)} cases; at epoch {last[0]} in "
                f"“{last[1]}” it is {last[6]:.2f}, and the dot product {last[8]:.2f}.",
            ],
            [
                Table(
                    "numbers",
                    f"{where}: each vector's place on the first principal component",
                    ("sentence", "vector", "epoch", "number"),
                    [
                        (text, vector, epoch, float(numbers[e, v, s]))
                        for e, epoch in enumerate(epochs)
                        for s, text in enumerate(holding)
                        for v, vector in enumerate(VECTORS)
                    ],
                    Lines(
                        x="epoch",
                        y="number",
                        colour="vector",
                        dash="sentence" if len(holding) > 1 else None,
                        x_title="epoch",
                        y_title="first principal component",
                    ),
                ),
                Table(
                    "products",
                    f"{where}: products of these numbers, and the dot product of the "
                    f"{vectors.shape[-1]} numbers of q with those of k",
                    ("epoch", "sentence", *VECTORS, "q × k", "q × k × v", "q · k, whole vectors"),
                    products,
                ),
            ],
        )


Product = tuple[int, str, float, float, float, float, float, float, float]


def _product(epoch: int, text: str, vectors: Tensor, numbers: Tensor) -> Product:
    """vectors (4, K) and numbers (4,), as VECTORS names them."""
    q, k, v, x1 = numbers.tolist()
    return epoch, text, q, k, v, x1, q * k, q * k * v, float(vectors[0] @ vectors[1])
