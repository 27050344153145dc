"""A recorded run: the two probes of the small corpus, one without a reference, at three epochs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.model.taps import taps
from qkvtrace.model.transformer import Transformer
from qkvtrace.runs import files
from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.probes import Snapshot, observe, probes
from qkvtrace.snapshots.store import Store
from qkvtrace.views.history import Cache, History

EPOCHS = (0, 1, 3)


@pytest.fixture(scope="session")
def observed(corpus: Corpus, transformer: Callable[..., Transformer]) -> Callable[..., Snapshot]:
    """What one model sees at an epoch; other seeds are other models, of 2 layers and 2 heads."""

    def build(epoch: int, seed: int, **changed: int) -> Snapshot:
        looked_at, _ = probes(corpus)
        model = transformer(seed, **changed)
        return observe(model, looked_at, corpus.source, corpus.target, epoch, step=10 * epoch)

    return build


@pytest.fixture(scope="session")
def axes(transformer: Callable[..., Transformer]) -> dict[str, tuple[str, ...]]:
    return {name: tap.axes for name, tap in taps(transformer()).items()}


@pytest.fixture(scope="session")
def snapshots(observed: Callable[..., Snapshot]) -> list[Snapshot]:
    return [observed(epoch, seed=epoch) for epoch in EPOCHS]


@pytest.fixture
def write_run(
    tmp_path: Path, snapshots: list[Snapshot], axes: dict[str, tuple[str, ...]]
) -> Callable[..., Run]:
    """Write a run folder as training would, as far as its snapshots go."""

    def write(name: str = "run", recorded: list[Snapshot] | None = None) -> Run:
        run = Run(tmp_path / "runs" / name)
        run.folder.mkdir(parents=True)
        files.write_json(run.manifest, {"corpus": "f" * 64})
        for snapshot in snapshots if recorded is None else recorded:
            Store(run.snapshots).save(snapshot, axes)
        return run

    return write


@pytest.fixture
def history(tmp_path: Path) -> Callable[[Run], History]:
    return lambda run: History(run.snapshots, tmp_path.resolve(), Cache())
