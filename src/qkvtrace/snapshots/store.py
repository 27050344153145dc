"""Snapshots on disk.

snapshots/index.json              format, the epochs stored, each tap's axes
snapshots/epoch-0015.safetensors  the values by tap name; sentences as JSON in the metadata
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import safetensors
import safetensors.torch

from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.snapshots.probes import Sentence, Snapshot

FORMAT = 1


class Store:
    """The snapshots of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = folder / "index.json"

    def epochs(self) -> list[int]:
        """Which epochs are stored, ascending; none if nothing was recorded."""
        if not self.index.exists():
            return []
        epochs: list[int] = files.read_json(self.index)["epochs"]
        return epochs

    def save(self, snapshot: Snapshot, axes: Mapping[str, tuple[str, ...]]) -> None:
        """Store a snapshot, in place of an earlier one of its epoch.

        axes: what each dimension of each value counts, by tap name.
        """
        self.folder.mkdir(exist_ok=True)
        metadata = {
            "epoch": str(snapshot.epoch),
            "step": str(snapshot.step),
            "sentences": json.dumps([asdict(s) for s in snapshot.sentences], ensure_ascii=False),
        }
        values = {name: value.contiguous() for name, value in snapshot.values.items()}
        files.write_bytes(self.path(snapshot.epoch), safetensors.torch.save(values, metadata))
        epochs = sorted({*self.epochs(), snapshot.epoch})
        content = {"format": FORMAT, "epochs": epochs, "taps": dict(axes)}
        files.write_json(self.index, content)

    def load(self, epoch: int) -> Snapshot:
        """One epoch's snapshot; raises UserError if it is not there, or damaged."""
        path = self.path(epoch)
        if not path.exists():
            stored = ", ".join(map(str, self.epochs())) or "none"
            raise UserError(f"expected a snapshot of epoch {epoch}, found {stored}: {self.folder}")
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                metadata = file.metadata()
                sentences = [Sentence(**entry) for entry in json.loads(metadata["sentences"])]
                values = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return Snapshot(epoch, int(metadata["step"]), sentences, values)
        except (safetensors.SafetensorError, KeyError, TypeError, ValueError):
            raise UserError(f"expected a snapshot, found a damaged file: {path}") from None

    def path(self, epoch: int) -> Path:
        """The file of an epoch's snapshot."""
        return self.folder / f"epoch-{epoch:04d}.safetensors"
