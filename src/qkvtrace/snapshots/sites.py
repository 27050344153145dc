"""The three places where a Transformer attends, and which tokens stand at their axes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Sentence

# The axis of attention that a vector's positions lie on: vectors of a head, then of a whole layer.
VECTORS = {"q": "query", "k": "key", "v": "key", "x1": "query"}
LAYER_VECTORS = {"x4": "query", "output": "query"}
AXES = VECTORS | LAYER_VECTORS


@dataclass(frozen=True)
class Site:
    """One kind of attention; `tap` gives the names of its values."""

    name: str
    title: str
    module: str
    queries: Literal["source", "target"]
    keys: Literal["source", "target"]

    def tap(self, layer: int, value: str) -> str:
        """The tap's name, such as encoder.layers.0.self_attention.q; "output" is the layer's."""
        module = self.module.format(layer=layer)
        return f"{module.rpartition('.')[0] if value == 'output' else module}.{value}"

    def layers(self, values: Mapping[str, Tensor]) -> int:
        """How many layers a snapshot's values have at this site."""
        layer = 0
        while self.tap(layer, "weights") in values:
            layer += 1
        return layer

    def vectors(self, values: Mapping[str, Tensor], layer: int, head: int, vector: str) -> Tensor:
        """One kind of vector from a snapshot's values, (sentences, positions, width)."""
        value = values[self.tap(layer, vector)]
        return value[:, head] if vector in VECTORS else value

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


def site_named(name: str) -> Site:
    """The site of this name; raises UserError listing the names if there is none."""
    for site in SITES:
        if site.name == name:
            return site
    names = ", ".join(site.name for site in SITES)
    raise UserError(f"site: expected one of {names}, found {name!r}")
