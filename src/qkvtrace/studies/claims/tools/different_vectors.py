"""Which vectors of self-attention differ by what they are made of, so that each counts once.

In the first layer the same word at the same position has the same q, k and v in every sentence,
and a decoder that was given the same words so far has the same x1.
"""

from collections.abc import Hashable, Sequence

from qkvtrace.snapshots.probes import Sentence
from qkvtrace.snapshots.sites import VECTORS, Site

Place = tuple[int, int]  # sentence and position


def different(
    site: Site, layer: int, vector: str, sentences: Sequence[Sentence]
) -> dict[Place, str]:
    """Where each different vector stands first, and its token; no sentence comes twice."""
    found: dict[Hashable, Place] = {}
    for index, sentence in enumerate(sentences):
        tokens = site.tokens(sentence, VECTORS[vector])
        for position, token in enumerate(tokens):
            made_of: Hashable = index, position
            if layer == 0 and vector != "x1":
                made_of = token, position
            elif layer == 0 and site.queries == "target":
                made_of = tuple(tokens[: position + 1])
            found.setdefault(made_of, (index, position))
    return {
        (index, position): site.tokens(sentences[index], VECTORS[vector])[position]
        for index, position in found.values()
    }
