"""Claim g: without positions, no order."""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.errors import UserError
from qkvtrace.settings import Recipe
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.studies.claims.positions import OUTPUT, Positions, deviation
from qkvtrace.studies.claims.tools.sources import sources
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory
from qkvtrace.studies.evidence.verdict import Result, judged

Judge = Callable[..., Result]
WIDTH = 6


def test_deviation_by_hand() -> None:
    order = torch.tensor([2, 0, 1])  # word 0 is the one that was word 2
    once = torch.tensor([[[9.0], [1], [2], [3], [8], [0]]])  # <sos>, three words, <eos>, padding
    again = torch.tensor([[[9.0], [3], [1], [2], [8], [77]]])
    assert deviation(snapshot(once, again), [order]) == 0
    again[0, 1] = 7
    length = (81 + 1 + 4 + 9 + 64) ** 0.5
    assert deviation(snapshot(once, again), [order]) == pytest.approx(4 / length)
    again[0, 1], again[0, 4] = 3, 11  # <eos> counts too
    assert deviation(snapshot(once, again), [order]) == pytest.approx(3 / length)


def snapshot(*halves: Tensor) -> Snapshot:
    return Snapshot(1, 1, [], {OUTPUT: torch.cat(halves)})


def test_sources_are_the_first_different_ones_of_known_words(corpus: Corpus) -> None:
    known = [["we", "eat"], ["i", "read"], ["it"]]
    valid = [known[0], ["we", "dance"], known[1], known[0], known[2]]
    splits = corpus.splits | {"valid": [(words, ["ich"]) for words in valid]}
    other = Corpus(corpus.fingerprint, splits, corpus.source, corpus.target, [])
    assert sources(other) == known
    assert sources(other, 2) == known[:2]
    none = Corpus(
        corpus.fingerprint,
        splits | {"valid": [(["dance"], ["ich"])]},
        corpus.source,
        corpus.target,
        [],
    )
    with pytest.raises(UserError, match=r"data\.valid: expected a sentence .* found none"):
        sources(none)


def outputs(sentences: list[Sentence], place: float) -> Tensor:
    """A vector of each token, and of all its sentence's, and `place` times its position."""
    longest = max(len(each.source) for each in sentences)
    found = torch.full((len(sentences), longest, WIDTH), 55.0)
    for row, sentence in zip(found, sentences, strict=True):
        tokens = torch.stack([vector(token) for token in sentence.source])
        positions = torch.arange(len(tokens))[:, None]
        row[: len(tokens)] = tokens + tokens.mean(0) + place * positions
    return found


def vector(token: str) -> Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(token.encode()))
    return torch.randn(WIDTH, generator=generator)


def variant(
    place: Callable[[int, int], float],
) -> Callable[[Recipe], dict[str, Any]]:
    """How much models without positions know of places, by seed and epoch."""

    def plant(recipe: Recipe) -> dict[str, Any]:
        def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
            none = recipe.model.positions == "none"
            return {OUTPUT: outputs(sentences, place(seed, epoch) if none else 1.0)}

        return {"values": values}

    return plant


def test_planted_true_it_is_true_by_construction(judge: Judge) -> None:
    result = judge(Positions(), variant=variant(lambda seed, epoch: 0.0))
    assert result.verdict == "true by construction"
    (finding,) = result.findings
    assert min(finding.controls[0].values) > 0.1


@pytest.mark.parametrize(
    "place",
    [
        lambda seed, epoch: 1.0,
        lambda seed, epoch: 0.01 * (seed == 5),
        lambda seed, epoch: 0.01 * (epoch == LAST),
        lambda seed, epoch: 0.01 * (epoch == UNTRAINED),
    ],
)
def test_planted_false_it_does_not_hold(judge: Judge, place: Callable[[int, int], float]) -> None:
    assert judge(Positions(), variant=variant(place)).verdict == "does not hold"


def test_trained_models_with_two_layers_and_heads(trained: Laboratory) -> None:
    (finding,) = judged("positions", Positions(), dict(Positions().measure(trained))).findings
    assert finding.verdict == "true by construction"
    assert min(finding.values) > 0  # words do change places: something is added up anew
    assert min(finding.controls[0].values) > 0.01
