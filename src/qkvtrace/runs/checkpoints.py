"""Checkpoints: what training needs to go on, and what translating needs. No pickle.

checkpoints/epoch-0015/            after 15 whole epochs
checkpoints/epoch-0016-batch-0003/ within epoch 16, after 3 of its batches
    model.safetensors              parameters by name
    training.safetensors           optimizer state, random state, the epoch's running sums
    state.json                     where training stood, and what the vocabularies were
    SHA256SUMS                     of the three, in sha256sum's format
checkpoints/latest, checkpoints/best   links to two of these; the others are deleted
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from qkvtrace.errors import UserError
from qkvtrace.runs import files

FILES = ("model.safetensors", "training.safetensors", "state.json")


@dataclass(frozen=True)
class Checkpoint:
    """One moment of a training, on the CPU."""

    model: dict[str, Tensor]
    training: dict[str, Tensor]
    state: dict[str, Any]


def save(folder: Path, name: str, checkpoint: Checkpoint, best: bool) -> None:
    """Write `folder/name`; `latest` points to it, and `best` if it is the best or the first.

    Raises OSError if the disk is full or not writable; the earlier checkpoints then stay.
    """
    with files.new_folder(folder / name) as temporary:
        files.write_bytes(temporary / "model.safetensors", safetensors.torch.save(checkpoint.model))
        files.write_bytes(
            temporary / "training.safetensors", safetensors.torch.save(checkpoint.training)
        )
        files.write_json(temporary / "state.json", checkpoint.state)
        sums = "".join(f"{_sha256(temporary / file)}  {file}\n" for file in FILES)
        files.write_text(temporary / "SHA256SUMS", sums)
    # "best" first: a process that dies in between goes on before it, and meets it again.
    if best or not (folder / "best").exists():
        files.point(folder / "best", name)
    files.point(folder / "latest", name)
    _remove_unused(folder)


def load(folder: Path, which: str) -> Checkpoint:
    """The checkpoint that the link `which` ("best" or "latest") in `folder` points to.

    Raises UserError if there is none, or if a file's SHA-256 is not the one that was written.
    """
    path = folder / which
    if not path.exists():
        raise UserError(f"expected a checkpoint (training writes the first), found none: {path}")
    try:
        lines = (path / "SHA256SUMS").read_bytes().decode().removesuffix("\n").split("\n")
        sums = {file: digest for digest, file in (line.split("  ", 1) for line in lines)}
    except (FileNotFoundError, ValueError):
        raise UserError(
            f"expected a checkpoint, found no valid SHA256SUMS: {path.resolve()}"
        ) from None
    for file in FILES:
        if not (path / file).exists() or sums.get(file) != _sha256(path / file):
            raise UserError(
                f"expected the SHA-256 in SHA256SUMS, found a damaged file: {path.resolve() / file}"
            )
    return Checkpoint(
        safetensors.torch.load_file(path / "model.safetensors"),
        safetensors.torch.load_file(path / "training.safetensors"),
        files.read_json(path / "state.json"),
    )


def _remove_unused(folder: Path) -> None:
    kept = {(folder / link).resolve() for link in ("latest", "best")}
    for path in folder.glob("epoch-*"):
        if path.resolve() not in kept:
            files.remove_folder(path)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
