"""What a study answers: sentences and labelled tables, and how each table is best drawn.

A picture says which columns of its table go where; terminal, tab and page draw it, each in its way.
Weights, cosines and coordinates are plain numbers, so that anybody may draw them anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Cell = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """Points in one fixed space; those that share `trail` are one thing on its way."""

    kind: Literal["cloud"] = "cloud"
    axes: tuple[str, ...]  # the columns of its two or three coordinates
    explained: tuple[float, ...] = ()  # each axis' share of the variance, 0 to 1
    label: str  # the column that names a point
    colour: str  # the column that colours it: "vector", "token", "sentence", "epoch", "part", ...
    symbol: str | None = None  # the column that shapes it
    trail: tuple[str, ...] = ()
    along: str | None = None  # the column that orders a trail, such as "epoch"
    marked: tuple[int, ...] = ()  # values of `along` at which points stand on it; (): all
    panels: tuple[str, ...] = ()  # a picture for each combination of these columns


@dataclass(frozen=True, kw_only=True)
class Heatmap:
    """A matrix, from a table with a row a cell; positions order it, tokens label it."""

    kind: Literal["heatmap"] = "heatmap"
    row: str  # the column whose values stand at the left, in the order in which they first appear
    column: str  # and at the top
    row_label: str | None = None  # columns with what is written there instead, as tokens come twice
    column_label: str | None = None
    row_title: str = ""
    column_title: str = ""
    value: str
    scale: Literal["weight", "cosine", "number"]  # 0 to 1, -1 to 1, or as the numbers are
    panels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Curves of `y` over `x`, one for each value of `colour` (and `dash`)."""

    kind: Literal["lines"] = "lines"
    x: str
    y: str
    colour: str
    dash: str | None = None
    panels: tuple[str, ...] = ()
    x_title: str = ""
    y_title: str = ""


Picture = Cloud | Heatmap | Lines


@dataclass(frozen=True)
class Table:
    """Labelled rows. Its name is a file's: lower-case words joined by underscores."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    picture: Picture | None = None  # None: the rows themselves are what to look at


@dataclass(frozen=True)
class Answer:
    """What a study found in one run."""

    says: list[str]  # sentences, with the numbers that matter
    tables: list[Table]
    notes: list[str] = field(default_factory=list)  # where it had to differ from what was asked
