"""What the tab shows for one selection, as plain data that JSON can hold.

Most functions take the snapshots of all epochs one after another, so that they need not be in
memory together, and answer for all of them: moving through the epochs asks for nothing more.

Shapes: E epochs, N points, B sentences, T queries, S keys, D a vector's width.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import AXES, LAYER_VECTORS, SITES, Site
from qkvtrace.studies.geometry import cosines, fit_pca
from qkvtrace.studies.points import Point, points, values
from qkvtrace.studies.tools.measured import NORMS, measured

Data = dict[str, Any]
MOST_PLACES = 80_000  # points times epochs in one scene: 2 MB of text
MOST_NUMBERS = 2**25  # of their vectors, held while the space is fitted


@dataclass(frozen=True)
class Place:
    """Where to look: one head of one layer at a site."""

    site: Site
    layer: int
    head: int

    def vectors(self, snapshot: Snapshot, vector: str) -> Tensor:
        """One kind of vector, (B, positions, D)."""
        return self.site.vectors(snapshot.values, self.layer, self.head, vector)

    def values(self, snapshot: Snapshot, chosen: Sequence[Point]) -> Tensor:
        """The vectors of points of one width, (N, D)."""
        return values(snapshot, self.site, self.layer, self.head, chosen)

    def matrix(self, snapshot: Snapshot, value: str) -> Tensor:
        """Scores or weights, (B, T, S)."""
        return snapshot.values[self.site.tap(self.layer, value)][:, self.head]


def about(snapshots: Iterable[Snapshot], last: Snapshot) -> Data:
    """What there is to choose from.

    snapshots: all epochs; last: one with every value. For each site its layers and heads and on
    which side its tokens stand, the sentences, and each side's words.
    """
    sites = []
    for site in SITES:
        layers = site.layers(last.values)
        if layers:
            heads, width = last.values[site.tap(0, "q")].shape[1::2]
            sites.append(
                {
                    "name": site.name,
                    "title": site.title,
                    "layers": layers,
                    "heads": heads,
                    "widths": {v: heads * width if v in LAYER_VECTORS else width for v in AXES},
                    "axes": {v: _side(site, axis) for v, axis in AXES.items()},
                }
            )
    words: dict[str, dict[str, None]] = {"source": {}, "target": {}}
    for snapshot in snapshots:
        for sentence in snapshot.sentences:
            words["source"] |= dict.fromkeys(sentence.source)
            words["target"] |= dict.fromkeys(sentence.target)
    return {
        "sites": sites,
        "sentences": [asdict(sentence) for sentence in last.sentences],
        "words": {side: list(tokens) for side, tokens in words.items()},
    }


def _side(site: Site, axis: str) -> str:
    return site.queries if axis == "query" else site.keys


def cloud(
    snapshots: Iterable[Snapshot],
    place: Place,
    vectors: Sequence[str],
    sentences: Collection[int] | None = None,
    words: Sequence[str] | None = None,
    pair: tuple[int, int] | None = None,
) -> Data:
    """Points and their way through the epochs, in the space of their first principal components.

    The space is fitted once, to all of them at all epochs. Goes through the snapshots twice: first
    for the points, then for the vectors of those that are shown. `at` is (E, N, 3); None where the
    token does not stand there at that epoch, as in a translation of the model's own. sentences,
    words: None means all. Raises UserError if there is no such point.
    """
    order: dict[Point, None] = {}
    epochs: dict[int, int] = {}  # epoch -> row of `whole`
    width = 1

    def chosen(snapshot: Snapshot) -> list[Point]:
        return [
            point
            for point in points(snapshot.sentences, place.site, vectors, words)
            if sentences is None or point.sentence in sentences
        ]

    for snapshot in snapshots:
        found = chosen(snapshot)
        order |= dict.fromkeys(found)
        epochs[snapshot.epoch] = len(epochs)
        if found:
            width = place.vectors(snapshot, found[0].vector).shape[-1]
    if not order:
        raise UserError("no word is chosen that stands in these sentences: choose another")
    most = max(1, min(MOST_PLACES, MOST_NUMBERS // width) // len(epochs))
    # What is cut is the last words, of which no kind of vector is left, not the last kind.
    shown = sorted(order, key=lambda p: (p.sentence, p.position, vectors.index(p.vector)))[:most]
    shown.sort(key=lambda p: (vectors.index(p.vector), p.sentence, p.position))
    column = {point: number for number, point in enumerate(shown)}
    whole = torch.full((len(epochs), len(shown), width), torch.nan)
    for snapshot in snapshots:
        here = [point for point in chosen(snapshot) if point in column]
        if here and snapshot.epoch in epochs:  # training may have added one meanwhile
            row = whole[epochs[snapshot.epoch]]
            row[[column[p] for p in here]] = place.values(snapshot, here)
    there = whole.isfinite().all(-1)  # (E, N)
    if not there.any():
        raise UserError("these vectors are not finite at any epoch: the training has diverged")
    space = fit_pca(whole[there])
    at = _plain(space.project(whole))
    return {
        "epochs": list(epochs),
        "points": [asdict(point) for point in shown],
        "at": [[None if None in place else place for place in epoch] for epoch in at],
        "explained": _plain(torch.tensor(space.explained)),
        "width": width,
        "points_left_out": len(order) - len(shown),
        "same": [
            {"token": word, "cosines": same}
            for word in (words if words and pair else [])
            if (same := _same_word(shown, whole, word, *(pair or (0, 0))))
        ],
    }


def _same_word(shown: Sequence[Point], whole: Tensor, word: str, a: int, b: int) -> Data:
    """The cosine of a word's vector in sentence a with that in b, by kind of vector and epoch.

    Where a word stands twice in a sentence its first place counts.
    """
    found: dict[str, dict[int, int]] = {}  # kind -> sentence -> column of `whole`
    for number, point in enumerate(shown):
        if point.token == word:
            found.setdefault(point.vector, {}).setdefault(point.sentence, number)
    return {
        vector: [_plain(cosines(rows[at[a]][None], rows[at[b]][None])[0, 0]) for rows in whole]
        for vector, at in found.items()
        if a in at and b in at
    }


def attention(snapshots: Iterable[Snapshot], place: Place, sentence: int) -> Data:
    """A sentence's attention weights at each epoch; rows attend to columns."""
    found: Data = {"epochs": [], "tables": []}
    for snapshot in snapshots:
        queries, keys = (
            place.site.tokens(snapshot.sentences[sentence], axis) for axis in ("query", "key")
        )
        weights = place.matrix(snapshot, "weights")[sentence, : len(queries), : len(keys)]
        found["epochs"].append(snapshot.epoch)
        found["tables"].append(_table(queries, keys, weights))
    return found


def alike(snapshots: Iterable[Snapshot], place: Place, a: int, b: int, vector: str) -> Data:
    """At each epoch, the cosine of each of sentence a's vectors (rows) with each of b's."""
    found: Data = {"epochs": [], "tables": []}
    for snapshot in snapshots:
        rows, columns = (
            place.site.tokens(snapshot.sentences[index], AXES[vector]) for index in (a, b)
        )
        of_kind = place.vectors(snapshot, vector)
        found["epochs"].append(snapshot.epoch)
        found["tables"].append(
            _table(rows, columns, cosines(of_kind[a, : len(rows)], of_kind[b, : len(columns)]))
        )
    return found


def _table(rows: list[str], columns: list[str], values: Tensor) -> Data:
    return {"rows": rows, "columns": columns, "values": _plain(values, 4)}


def curves(snapshots: Iterable[Snapshot], place: Place) -> Data:
    """A head in a few numbers an epoch, over all sentences and without padding.

    entropy: of a word's attention, the mean, in nats; uniform: what it would be if every word
    attended equally to all it may see. norms: mean Euclidean norms of q, k and v. low, high: the
    range of the scores that are not masked.
    """
    found: Data = {name: [] for name in ("epochs", "entropy", "uniform", "low", "high")}
    found["norms"] = {vector: [] for vector in NORMS}
    for snapshot in snapshots:
        here = measured(snapshot, place.site, place.layer, place.head)
        found["epochs"].append(snapshot.epoch)
        for name in ("entropy", "uniform", "low", "high"):
            found[name].append(_number(getattr(here, name)))
        for vector, length in here.norms.items():
            found["norms"][vector].append(_number(length))
    return found


def neighbours(
    snapshot: Snapshot,
    place: Place,
    point: Point,
    vectors: Sequence[str],
    sentences: Collection[int] | None = None,
    count: int = 3,
) -> list[Data]:
    """The vectors nearest to a point's by cosine, in the full space, those of all words."""
    others = [
        other
        for other in points(snapshot.sentences, place.site, vectors)
        if other != point and (sentences is None or other.sentence in sentences)
    ]
    if not others:
        return []
    found = cosines(place.values(snapshot, [point]), place.values(snapshot, others))[0]
    nearest = found.sort(descending=True, stable=True).indices[:count].tolist()
    return [{**asdict(others[i]), "cosine": _plain(found[i])} for i in nearest]


def _plain(values: Tensor, decimals: int | None = None) -> Any:
    """Numbers for JSON, None for one that is not finite: rounded to five digits of the largest."""
    values = values.double()
    finite = values.isfinite()
    if decimals is None:
        largest = values[finite].abs().max().item() if finite.any() else 0.0
        decimals = 4 - math.floor(math.log10(largest)) if largest > 0 else 0
    scale = 10.0 ** max(min(decimals, 300), -300)
    plain = ((values * scale).round() / scale).tolist()
    return plain if finite.all() else _without_nan(plain)


def _number(value: float) -> Any:
    return _plain(torch.tensor(value, dtype=torch.float64))


def _without_nan(values: Any) -> Any:
    if isinstance(values, list):
        return [_without_nan(value) for value in values]
    return values if math.isfinite(values) else None
