"""Phrases with vectors that somebody made up, to show what a dot product says."""

from collections.abc import Sequence
from dataclasses import dataclass

from qkvtrace.studies.answer import Cell, Cloud, Heatmap, Table
from qkvtrace.studies.tools.translations import yes_no


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A phrase, and where it is put in the plane."""

    phrase: str
    vector: tuple[float, ...]  # x, y
    article: bool  # whether the article has it there

    def dot(self, other: "Placed") -> float:
        """The dot product of the two vectors."""
        return sum(a * b for a, b in zip(self.vector, other.vector, strict=True))

    def calculation(self, other: "Placed") -> str:
        """The dot product spelt out: 0.8·0.7 + 0.1·0.2."""
        return " + ".join(f"{a:g}·{b:g}" for a, b in zip(self.vector, other.vector, strict=True))


def tables(placed: Sequence[Placed]) -> list[Table]:
    """Where the phrases are, and all products of two of them."""
    points: list[tuple[Cell, ...]] = [
        (each.phrase, first_word(each.phrase), *each.vector, yes_no(each.article))
        for each in placed
    ]
    products: list[tuple[Cell, ...]] = [
        (one.phrase, other.phrase, one.calculation(other), one.dot(other))
        for one in placed
        for other in placed
    ]
    return [
        Table(
            "example",
            "The worked example: made-up vectors",
            ("phrase", "first word", "x", "y", "from the article"),
            points,
            Cloud(axes=("x", "y"), label="phrase", colour="first word"),
        ),
        Table(
            "example_products",
            "The worked example: dot products",
            ("phrase", "other phrase", "calculation", "dot product"),
            products,
            Heatmap(row="phrase", column="other phrase", value="dot product", scale="number"),
        ),
    ]


def first_word(phrase: str) -> str:
    """The word that a picture colours a phrase by."""
    return phrase.split()[0]
