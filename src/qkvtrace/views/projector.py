"""The Embedding Projector's files: every recorded vector as a point, over all epochs shown.

Written by hand instead of by `SummaryWriter.add_embedding`, which forgets earlier epochs when a run
is resumed, and writes text where raw float32 is fifty times faster and a fifth of the size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from qkvtrace.runs import files
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import SITES, VECTORS

COLUMNS = (
    "label",
    "token",
    "vector",
    "epoch",
    "sentence",
    "site",
    "layer",
    "head",
    "position",
)
MOST_POINTS = 100_000  # the Projector draws no more


@dataclass(frozen=True)
class Points:
    """The vectors of one sentence at consecutive positions from 0, and what they all are."""

    vectors: Tensor  # (positions, width)
    tokens: Sequence[str]
    vector: str
    epoch: int
    sentence: str
    site: str
    layer: int
    head: str


def write_projector(folder: Path, snapshots: Sequence[Snapshot]) -> None:
    """Write two embeddings: head_vectors (q, k, v, x1) and model_vectors (x4, layer outputs).

    Sentences, but for the first, are left out from the end if there would be more points than the
    Projector draws.
    """
    assets = folder / "projector"
    assets.mkdir(exist_ok=True)
    config = []
    for name, points in (("head_vectors", head_vectors), ("model_vectors", model_vectors)):
        groups = [group for snapshot in snapshots for group in points(snapshot)]
        groups = _at_most(groups, MOST_POINTS)
        vectors = torch.cat([group.vectors for group in groups]).numpy().astype(np.float32)
        files.write_bytes(assets / f"{name}.bytes", vectors.tobytes())
        files.write_text(assets / f"{name}.tsv", "\n".join(["\t".join(COLUMNS), *_rows(groups)]))
        rows, width = vectors.shape
        config.append(
            "embeddings {\n"
            f'  tensor_name: "{name}"\n'
            f'  tensor_path: "projector/{name}.bytes"\n'
            f"  tensor_shape: {rows}\n  tensor_shape: {width}\n"
            f'  metadata_path: "projector/{name}.tsv"\n'
            "}\n"
        )
    files.write_text(folder / "projector_config.pbtxt", "".join(config))


def head_vectors(snapshot: Snapshot) -> Iterator[Points]:
    """q, k, v and x1 of each sentence, site, layer and head, (positions, K)."""
    for site in SITES:
        for layer in range(site.layers(snapshot.values)):
            for vector, axis in VECTORS.items():
                values = snapshot.values[site.tap(layer, vector)]  # (sentences, H, positions, K)
                for index, sentence in enumerate(snapshot.sentences):
                    tokens = site.tokens(sentence, axis)
                    for head in range(values.shape[1]):
                        yield Points(
                            values[index, head, : len(tokens)],
                            tokens,
                            vector,
                            snapshot.epoch,
                            _name(snapshot, index),
                            site.name,
                            layer,
                            str(head),
                        )


def model_vectors(snapshot: Snapshot) -> Iterator[Points]:
    """x4 of each sentence, site and layer, and the output of each layer, (positions, D)."""
    for site in SITES:
        for layer in range(site.layers(snapshot.values)):
            stack = site.module.split(".", maxsplit=1)[0]
            taps = [("x4", site.name, site.tap(layer, "x4"))]
            if site.name != "decoder_self":  # else the decoder's outputs would come twice
                taps.append(("output", stack, f"{stack}.layers.{layer}.output"))
            for vector, place, tap in taps:
                for index, sentence in enumerate(snapshot.sentences):
                    tokens = site.tokens(sentence, "query")
                    yield Points(
                        snapshot.values[tap][index, : len(tokens)],
                        tokens,
                        vector,
                        snapshot.epoch,
                        _name(snapshot, index),
                        place,
                        layer,
                        "all",
                    )


def _name(snapshot: Snapshot, index: int) -> str:
    return " ".join(snapshot.sentences[index].source[1:-1])


def _at_most(groups: list[Points], most: int) -> list[Points]:
    """Those of the first sentence, and of as many as have `most` points or fewer together."""
    sizes: dict[str, int] = {}
    for group in groups:
        sizes[group.sentence] = sizes.get(group.sentence, 0) + len(group.tokens)
    total = 0
    kept: set[str] = set()
    for name, size in sizes.items():
        total += size
        if total <= most or not kept:
            kept.add(name)
    return [group for group in groups if group.sentence in kept]


def _rows(groups: Sequence[Points]) -> Iterator[str]:
    for group in groups:
        vector = group.vector.upper() if group.vector in ("q", "k", "v") else group.vector
        for position, token in enumerate(group.tokens):
            yield "\t".join(
                (
                    f"{token}@{vector}@{group.epoch}",
                    token,
                    group.vector,
                    str(group.epoch),
                    group.sentence,
                    group.site,
                    str(group.layer),
                    group.head,
                    str(position),
                )
            )
