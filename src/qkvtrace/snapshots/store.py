"""Snapshots on disk.

snapshots/index.json              format, the epochs stored, each tap's axes
snapshots/epoch-0015.safetensors  the values by tap name; sentences as JSON in the metadata
snapshots/model-0015.safetensors  the model's parameters by name, where they are kept
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import safetensors
import safetensors.torch
from torch import Tensor

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
        """Which epochs are stored, ascending; none if nothing was recorded.

        Raises UserError if the index is damaged, or not ours.
        """
        if not self.index.exists():
            return []
        index = files.read_json(self.index)
        if not isinstance(index, dict) or index.get("format") != FORMAT or "epochs" not in index:
            raise UserError(
                f"expected snapshots of format {FORMAT}, found a damaged file: {self.index}"
            )
        epochs: list[int] = index["epochs"]
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

    def load(self, epoch: int, taps: Sequence[str] | None = None) -> Snapshot:
        """One epoch's snapshot, or of its values those of `taps` alone, which is quicker.

        Raises UserError if it is not there, or damaged, or has no such tap.
        """
        path = self.path(epoch)
        if not path.exists():
            stored = ", ".join(map(str, self.epochs())) or "none"
            raise UserError(f"expected a snapshot of epoch {epoch}, found {stored}: {self.folder}")
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                metadata = file.metadata()
                sentences = [Sentence(**entry) for entry in json.loads(metadata["sentences"])]
                there = file.keys()
                missing = [name for name in taps or () if name not in there]
                if missing:
                    raise UserError(f"expected a value of {missing[0]}, found none: {path}")
                values = {name: file.get_tensor(name) for name in taps or there}
            return Snapshot(epoch, int(metadata["step"]), sentences, values)
        except (safetensors.SafetensorError, KeyError, TypeError, ValueError):
            raise UserError(f"expected a snapshot, found a damaged file: {path}") from None

    def save_parameters(self, epoch: int, parameters: Mapping[str, Tensor]) -> None:
        """Keep the model of an epoch, in place of an earlier one."""
        self.folder.mkdir(exist_ok=True)
        files.write_bytes(self.model(epoch), safetensors.torch.save(dict(parameters)))

    def parameters(self, epoch: int) -> dict[str, Tensor]:
        """The parameters of an epoch's model; raises UserError if they are not kept, or damaged."""
        path = self.model(epoch)
        try:
            return safetensors.torch.load_file(path)
        except FileNotFoundError:
            raise UserError(
                f"expected the model of epoch {epoch} (snapshots.parameters=true keeps it while "
                f"training), found none: {path}"
            ) from None
        except safetensors.SafetensorError:
            raise UserError(f"expected a model, found a damaged file: {path}") from None

    def models(self) -> list[int]:
        """The epochs whose model is kept, ascending."""
        return [epoch for epoch in self.epochs() if self.model(epoch).exists()]

    def model(self, epoch: int) -> Path:
        """The file of an epoch's model."""
        return self.folder / f"model-{epoch:04d}.safetensors"

    def path(self, epoch: int) -> Path:
        """The file of an epoch's snapshot."""
        return self.folder / f"epoch-{epoch:04d}.safetensors"
