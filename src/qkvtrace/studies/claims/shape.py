"""Claim j: the shape of the weights.

shape         How many shapes of weights differ from (sentences, heads, query positions, key
              positions), over models of head widths 2, 8 and 32, given sentences of three lengths
              that are drawn, at all sites and layers. Control: how many shapes of q differ from
              that of head width 2.

The models are untrained: no training changes a shape.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import torch

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.corpus.vocabulary import SOS
from qkvtrace.model.stored import build_model
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import ModelSettings, Recipe
from qkvtrace.snapshots.recording import recording
from qkvtrace.snapshots.sites import SITES
from qkvtrace.studies.claims.tools.variants import with_model
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.laboratory import Laboratory

HEAD_WIDTHS = (2, 8, 32)
LENGTHS = 3  # that are drawn
SENTENCES = 5
LONGEST = 20  # tokens


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Weights of models of several widths."""

    letter: ClassVar = "j"
    title: ClassVar = "The weights' shape"
    sentence: ClassVar = "The weights' shape depends on sentence lengths alone, not on the width."
    source: ClassVar = "shorter tutorials"
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="shape",
            says="A head has one weight for each query and key position, whatever its width.",
            measure="shapes other than (sentences, heads, queries, keys)",
            unit="shapes",
            least=0,
            because="a score sums over the width",
        ),
    )

    def measure(self, laboratory: Laboratory) -> Mapping[str, Measured]:
        """Build a model of each width from each seed."""
        corpus = laboratory.corpus(laboratory.base)
        counts = [counted(laboratory.base, corpus, seed) for seed in laboratory.seeds]
        weights, q = zip(*counts, strict=True)
        return {"shape": Measured(weights, {"q": q})}


def counted(recipe: Recipe, corpus: Corpus, seed: int) -> tuple[int, int]:
    """How many shapes of weights, and of q, are others than they would be whatever the width."""
    generator = torch.Generator().manual_seed(seed)
    longest = min(LONGEST, recipe.model.max_positions)
    lengths = torch.randint(2, longest + 1, (LENGTHS, 2), generator=generator).tolist()
    models = [
        build(with_model(recipe, width=recipe.model.heads * width), corpus, seed)
        for width in HEAD_WIDTHS
    ]
    found = [differing(model, recipe.model, *each) for model in models for each in lengths]
    weights, q = (sum(each) for each in zip(*found, strict=True))
    return weights, q


def build(recipe: Recipe, corpus: Corpus, seed: int) -> Transformer:
    """A new model of this seed; PyTorch's random state stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return build_model(recipe, corpus.source, corpus.target)


def differing(
    model: Transformer, settings: ModelSettings, source: int, target: int
) -> tuple[int, int]:
    """The same of one model, for sentences of `source` and `target` tokens."""
    positions = {"source": source, "target": target}
    with recording(model, "*.weights", "*.q") as record:
        model(*(torch.full((SENTENCES, length), SOS) for length in positions.values()))
    weights = q = 0
    for site, layer in product(SITES, range(settings.layers)):
        queries, keys = positions[site.queries], positions[site.keys]
        shapes = {"weights": (queries, keys), "q": (queries, HEAD_WIDTHS[0])}
        other = {
            value: record[site.tap(layer, value)][0].shape != (SENTENCES, settings.heads, *shape)
            for value, shape in shapes.items()
        }
        weights += other["weights"]
        q += other["q"]
    return weights, q
