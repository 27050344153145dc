"""The three places where a Transformer attends, and which tokens stand at their axes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from qkvtrace.snapshots.probes import Sentence

VECTORS = {"q": "query", "k": "key", "v": "key", "x1": "query"}  # which axis their positions lie on


@dataclass(frozen=True)
class Site:
    """One kind of attention; `tap` gives the names of its values."""

    name: str
    title: str
    module: str
    queries: Literal["source", "target"]
    keys: Literal["source", "target"]

    def tap(self, layer: int, value: str) -> str:
        """The tap's name, such as encoder.layers.0.self_attention.q."""
        return self.module.format(layer=layer) + "." + value

    def layers(self, values: Mapping[str, Tensor]) -> int:
        """How many layers a snapshot's values have at this site."""
        layer = 0
        while self.tap(layer, "weights") in values:
            layer += 1
        return layer

    def tokens(self, sentence: Sentence, axis: str) -> list[str]:
        """The tokens of a sentence along an axis, "query" or "key"."""
        side = self.queries if axis == "query" else self.keys
        return sentence.source if side == "source" else sentence.target


SITES = (
    Site(
        "encoder_self",
        "Encoder self-attention",
        "encoder.layers.{layer}.self_attention",
        "source",
        "source",
    ),
    Site(
        "decoder_self",
        "Decoder self-attention",
        "decoder.layers.{layer}.self_attention",
        "target",
        "target",
    ),
    Site(
        "cross",
        "Cross-attention",
        "decoder.layers.{layer}.cross_attention",
        "target",
        "source",
    ),
)
