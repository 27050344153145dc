"""Curves of heads over the epochs: which, and how they are drawn."""

from collections.abc import Sequence

from qkvtrace.snapshots.sites import SITES, Site
from qkvtrace.studies.answer import Lines
from qkvtrace.studies.tools import weights
from qkvtrace.studies.tools.weights import Head


def sites(name: str | None) -> tuple[Site, ...]:
    """The site that a study asks for; None: all three."""
    return SITES if name is None else (weights.site(name),)


def curves(y: str, y_title: str, heads: Sequence[Head], kind: str | None = None) -> Lines:
    """How to draw `y` of a table with the columns site, layer, head and epoch.

    kind: a column that tells curves of one head apart. Several heads share a picture.
    """
    layers = ("layer",) if len({layer for layer, _ in heads}) > 1 else ()
    many = len({head for _, head in heads}) > 1
    if kind is None and not many:
        colour, panels = "site", layers
    else:
        colour, panels = kind or "head", ("site", *layers)
    return Lines(
        x="epoch",
        y=y,
        colour=colour,
        dash="head" if kind and many else None,
        panels=panels,
        x_title="epoch",
        y_title=y_title,
    )
