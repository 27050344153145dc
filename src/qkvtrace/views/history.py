"""A run's snapshots, asked for again and again: what was read is kept, up to a bound."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import LAYER_VECTORS, VECTORS, Site
from qkvtrace.snapshots.store import Store

MOST_BYTES = 256 * 2**20
SIDES = ("query", "key")
MATRICES = ("scores", "weights")
VALUES = (*VECTORS, *LAYER_VECTORS, *MATRICES)  # what is shown of a layer


class Cache:
    """Snapshots by file and part, those used last; their tensors fill at most `most` bytes."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self.size = 0
        self.kept: OrderedDict[tuple[object, ...], Snapshot] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> Snapshot | None:
        """What is kept under a key."""
        with self.lock:
            if key in self.kept:
                self.kept.move_to_end(key)
            return self.kept.get(key)

    def put(self, key: tuple[object, ...], snapshot: Snapshot) -> None:
        """Keep a snapshot, and let go of those that were not used for longest."""
        with self.lock:
            if key in self.kept:
                return
            self.kept[key] = snapshot
            self.size += _bytes(snapshot)
            while self.size > self.most:
                _, dropped = self.kept.popitem(last=False)
                self.size -= _bytes(dropped)


def _bytes(snapshot: Snapshot) -> int:
    return sum(value.nbytes for value in snapshot.values.values())


class History:
    """The snapshots of one run, epoch by epoch, without those that cannot be read."""

    def __init__(self, folder: Path, root: Path, cache: Cache) -> None:
        """root: files that lie outside of it, be it by a link, are not read."""
        self.store = Store(folder)
        self.root = root
        self.cache = cache
        self.left_out: dict[int, str] = {}  # why, by epoch, after a pass over the epochs

    def epochs(self) -> list[int]:
        """Which epochs the index lists; raises UserError if it is damaged or lists none."""
        self._check_inside(self.store.index)
        try:
            epochs = self.store.epochs()
            sound = all(type(epoch) is int and epoch >= 0 for epoch in epochs)
        except (KeyError, TypeError):
            sound = False
        except OSError as error:
            raise UserError(f"cannot read {self.store.index}: {error.strerror}") from None
        if not sound:
            raise UserError(f"expected a list of epochs, found a damaged file: {self.store.index}")
        if not epochs:
            raise UserError("no snapshots in this run yet: they appear here as training makes them")
        return epochs

    def version(self) -> str:
        """Another text whenever a snapshot was added or replaced."""
        stamps = [self._stamp(self.store.path(epoch)) for epoch in self.epochs()]
        return f"{hash(tuple(stamps)) & 0xFFFFFFFFFFFF:x}"

    def layer(self, site: Site, layer: int) -> "Layer":
        """Each epoch's values of one layer at a site, ascending; each pass fills `left_out`.

        A pass raises UserError if not one epoch can be read.
        """
        return Layer(self, site, layer)

    def last(self) -> Snapshot:
        """The last epoch that can be read, with every value."""
        reason = ""
        for epoch in reversed(self.epochs()):
            try:
                self._check_inside(self.store.path(epoch))
                return self.store.load(epoch)
            except (UserError, OSError) as error:
                reason = reason or str(error)
        raise UserError(f"no snapshot of this run can be read: {reason}")

    def load(self, epoch: int, taps: list[str]) -> Snapshot:
        """One epoch's snapshot with some of its values; raises UserError or OSError."""
        path = self.store.path(epoch)
        key = (path, self._stamp(path), taps[0])
        snapshot = self.cache.get(key)
        if snapshot is None:
            self._check_inside(path)
            snapshot = self.store.load(epoch, taps)
            self.cache.put(key, snapshot)
        return snapshot

    def _stamp(self, path: Path) -> tuple[int, int]:
        try:
            status = path.stat()
        except OSError:
            return 0, 0
        return status.st_mtime_ns, status.st_size

    def _check_inside(self, path: Path) -> None:
        if not path.resolve().is_relative_to(self.root):
            raise UserError(f"expected a file in {self.root}, found a link to elsewhere: {path}")


class Layer:
    """The snapshots of one layer, which can be gone through more than once."""

    def __init__(self, history: History, site: Site, layer: int) -> None:
        self.history = history
        self.site = site
        self.layer = layer

    def __iter__(self) -> Iterator[Snapshot]:
        history = self.history
        taps = {value: self.site.tap(self.layer, value) for value in VALUES}
        left_out = history.left_out = {}
        first: Snapshot | None = None
        for epoch in history.epochs():
            try:
                snapshot = history.load(epoch, list(taps.values()))
                _check(snapshot, self.site, taps)
                first = first or snapshot
                _compare(snapshot, first, taps)
            except (UserError, OSError) as error:
                left_out[epoch] = str(error)
                continue
            yield snapshot
        if first is None:
            reason = next(iter(left_out.values()))
            raise UserError(f"no snapshot of this run can be read: {reason}")


def _check(snapshot: Snapshot, site: Site, taps: dict[str, str]) -> None:
    """Raise UserError unless a snapshot has the size of its sentences and one number of heads."""
    sentences = snapshot.sentences
    shapes = {value: snapshot.values[tap].shape for value, tap in taps.items()}
    sound = bool(sentences) and all(
        len(shape) == (3 if value in LAYER_VECTORS else 4) and shape[0] == len(sentences)
        for value, shape in shapes.items()
    )
    if sound:
        queries, keys = (max(len(site.tokens(s, axis)) for s in sentences) for axis in SIDES)
        heads, width = shapes["q"][1::2]
        for value, (_, *between, rows, columns) in shapes.items():
            sound &= between == ([] if value in LAYER_VECTORS else [heads])
            sound &= rows >= (keys if value in ("k", "v") else queries)
            if value in MATRICES:
                sound &= columns >= keys
            else:
                sound &= columns == (heads * width if value in LAYER_VECTORS else width)
    if not sound:
        raise UserError(
            f"expected the size of its sentences, found another: "
            f"the snapshot of epoch {snapshot.epoch}"
        )


def _compare(snapshot: Snapshot, first: Snapshot, taps: dict[str, str]) -> None:
    """Raise UserError unless a sound snapshot is of the kind of the first sound one."""
    (sources, size), expected = (
        ([sentence.source for sentence in each.sentences], each.values[taps["q"]].shape[1::2])
        for each in (snapshot, first)
    )
    if (sources, size) != expected:
        raise UserError(
            f"expected the sentences and sizes of epoch {first.epoch}, "
            f"found others: the snapshot of epoch {snapshot.epoch}"
        )
