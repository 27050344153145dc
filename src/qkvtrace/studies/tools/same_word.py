"""How alike the vectors of one word are in two sentences."""

from collections.abc import Sequence
from itertools import combinations

from torch import Tensor

from qkvtrace.studies.answer import Lines, Table
from qkvtrace.studies.geometry import cosines
from qkvtrace.studies.points import Point
from qkvtrace.studies.tools.following import Followed
from qkvtrace.studies.tools.wording import listed

Alike = tuple[str, str, str, str, int, float]  # word, token, vector, sentences, epoch, cosine


def between(
    texts: Sequence[str],
    places: Sequence[tuple[str, Point]],
    epochs: Sequence[int],
    found: Tensor,
) -> list[Alike]:
    """Between each two sentences that have the word."""
    return [
        (
            name,
            one.token,
            one.vector,
            f"{texts[one.sentence]} / {texts[other.sentence]}",
            epoch,
            float(cosines(at[i : i + 1], at[j : j + 1])),
        )
        for epoch, at in zip(epochs, found, strict=True)
        for (i, (name, one)), (j, (words, other)) in combinations(enumerate(places), 2)
        if (name, one.vector) == (words, other.vector)
    ]


def table(where: str, rows: Sequence[Alike], followed: Sequence[Followed]) -> list[Table]:
    """The cosines over the epochs; no table where there is a single sentence."""
    if not rows:
        return []
    pairs = {row[3] for row in rows}
    return [
        Table(
            "cosines",
            f"{where}: cosine of a word's vectors in two sentences"
            + (f", {pairs.copy().pop()}" if len(pairs) == 1 else ""),
            ("word", "token", "vector", "sentences", "epoch", "cosine"),
            rows,
            Lines(
                x="epoch",
                y="cosine",
                colour="vector",
                dash="sentences" if len(pairs) > 1 else None,
                panels=("word",) if len(followed) > 1 else (),
                x_title="epoch",
                y_title="cosine between the sentences",
            ),
        )
    ]


def said(words: Followed, rows: Sequence[Alike], epochs: Sequence[int]) -> str:
    """How alike a word's vectors are between sentences, at the last epoch and at the first."""
    found = {row[3] for row in rows}
    mean, between = ("mean cosine", "each two") if len(found) > 1 else ("cosine", "the two")

    def at(epoch: int) -> str:
        cosines: dict[str, list[float]] = {}
        for name, token, vector, _, when, cosine in rows:
            if (name, when) == (words.name, epoch):
                of = "" if words.query == words.key else f" of {token}"
                cosines.setdefault(vector + of, []).append(cosine)
        return listed([f"{v} {sum(c) / len(c):.2f}" for v, c in cosines.items()])

    first = f"; at epoch {epochs[0]}: {at(epochs[0])}" if len(epochs) > 1 else ""
    return (
        f"“{words.name}”: {mean} between {between} sentences at epoch {epochs[-1]}: "
        f"{at(epochs[-1])}{first}."
    )


def identical(vector: str, rows: Sequence[Alike]) -> bool:
    """Whether a kind of vector is the same in all sentences at every epoch."""
    found = [row[5] for row in rows if row[2] == vector]
    return bool(found) and min(found) > 1 - 1e-6
