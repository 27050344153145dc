"""Attention weights as tables: which heads, the tokens at their sides, how spread out they are.

Shapes: T query and S key positions.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from qkvtrace.corpus.vocabulary import EOS, SPECIALS
from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.sites import Site, site_named
from qkvtrace.studies.answer import Cell, Heatmap
from qkvtrace.studies.geometry import entropy
from qkvtrace.studies.subject import Subject

Head = tuple[int, int]  # layer and head, from 0

COLUMNS = ("query position", "query", "key position", "key", "weight")  # as `rows` has them


def picture(
    *panels: str, value: str = "weight", scale: Literal["weight", "number"] = "weight"
) -> Heatmap:
    """How `rows` are drawn: queries at the left, keys at the top."""
    return Heatmap(
        row="query position",
        row_label="query",
        row_title="attends",
        column="key position",
        column_label="key",
        column_title="attended to",
        value=value,
        scale=scale,
        panels=panels,
    )


def site(name: str) -> Site:
    """The site that a study asks for; raises UserError if there is none of this name."""
    try:
        return site_named(name)
    except UserError as error:
        raise UserError(f"study.{error}") from None


def heads(subject: Subject, layer: int | None, head: int | None) -> list[Head]:
    """The layer and head that a study asks for; None: all of them.

    Raises UserError if the model has no such layer or head.
    """
    model = subject.trained.settings.model
    counts = {"layer": (layer, model.layers), "head": (head, model.heads)}
    for name, (wanted, count) in counts.items():
        if wanted is not None and not 0 <= wanted < count:
            raise UserError(f"study.{name}: expected 0 to {count - 1}, found {wanted}")
    layers = range(model.layers) if layer is None else [layer]
    return [(each, h) for each in layers for h in (range(model.heads) if head is None else [head])]


def at_epoch(subject: Subject, epoch: int | None) -> int:
    """The epoch that a study asks for; None: the last. Raises UserError if it is not kept."""
    if epoch is None:
        return subject.last
    if epoch not in subject.epochs:
        kept = ", ".join(map(str, subject.epochs))
        raise UserError(f"study.epoch: expected one of {kept}, found {epoch}")
    return epoch


def taps(chosen: Iterable[Site], heads: Iterable[Head]) -> list[str]:
    """The taps that have the weights of some heads."""
    layers = dict.fromkeys(layer for layer, _ in heads)
    return [site.tap(layer, "weights") for site in chosen for layer in layers]


def weights(snapshot: Snapshot, site: Site, head: Head, sentence: int = 0) -> Tensor:
    """The weights of one head for one sentence of a snapshot, without padding, (T, S)."""
    layer, number = head
    tokens = snapshot.sentences[sentence]
    queries, keys = len(site.tokens(tokens, "query")), len(site.tokens(tokens, "key"))
    return snapshot.values[site.tap(layer, "weights")][sentence, number, :queries, :keys]


def queries(site: Site, sentence: Sentence) -> list[str]:
    """What stands beside the queries: source tokens, or the decoder's steps.

    A step is what the decoder was given, and what comes next in the translation that it was given.
    """
    tokens = site.tokens(sentence, "query")
    return tokens if site.queries == "source" else steps(tokens, [*tokens[1:], SPECIALS[EOS]])


def steps(given: Sequence[str], then: Sequence[str]) -> list[str]:
    """The decoder's steps, such as "1) <sos> → wir"."""
    pairs = enumerate(zip(given, then, strict=True), start=1)
    return [f"{number}) {token} → {after}" for number, (token, after) in pairs]


def rows(
    weights: Tensor, queries: Sequence[str], keys: Sequence[str]
) -> Iterator[tuple[Cell, ...]]:
    """A row a cell of weights (T, S), as COLUMNS names them; positions count from 0."""
    for t, row in enumerate(weights.tolist()):
        for s, weight in enumerate(row):
            yield t, queries[t], s, keys[s], weight


def spread(weights: Tensor, site: Site) -> float:
    """The mean entropy of weights (T, S), as a share of the highest possible.

    0: each query looks at one position alone; 1: at all that it may, equally. A query that has no
    choice does not count; NaN if none has.
    """
    count, keys = weights.shape
    allowed = [t + 1 if site.name == "decoder_self" else keys for t in range(count)]
    shares = [
        float(nats) / math.log(n)
        for nats, n in zip(entropy(weights), allowed, strict=True)
        if n > 1
    ]
    return sum(shares) / len(shares) if shares else math.nan


def best(weights: Tensor, keys: Sequence[str]) -> list[tuple[str, float]]:
    """The key that each query looks at most, and with which weight; weights (T, S)."""
    largest = torch.max(weights, -1)
    return [
        (keys[s], weight)
        for s, weight in zip(largest.indices.tolist(), largest.values.tolist(), strict=True)
    ]
