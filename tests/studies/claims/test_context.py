"""Claim a: clusters of q, k and v; contexts in x1."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.studies.claims.context import (
    Context,
    clusters,
    minimal_pairs,
    shared,
    silhouettes,
)
from qkvtrace.studies.evidence.laboratory import LAST, UNTRAINED, Laboratory
from qkvtrace.studies.evidence.verdict import Finding, Result

Judge = Callable[..., Result]

# The first two differ in one word; "we" and "eat" stand elsewhere in the third.
TEXTS = ("we eat apple", "we eat bread", "eat we")
WIDTH = 64


def test_silhouettes_by_hand() -> None:
    right, up, left = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]
    apart = torch.tensor([[right, right], [up, up], [left, left]])[:, :, None]  # one word, 2 places
    assert silhouettes(apart, torch.tensor([0, 0])).flatten().tolist() == pytest.approx([1] * 6)
    # q of the first place: its own other is at 1, k at 0, v at 2: (0 - 1) / 1. Of the second place:
    # its own other at 1, k at 1, v at 1: 0. k: others at 0, q at 0.5, v at 2: (0.5 - 0) / 0.5.
    # v: others at 0, the nearer label q at 1.5: 1.
    mixed = torch.tensor([[right, up], [right, right], [left, left]])[:, :, None]
    found = silhouettes(mixed, torch.tensor([0, 0]))[..., 0]
    expected = torch.tensor([[-1, 0], [1, 1], [1, 1]])
    assert torch.allclose(found, expected.double(), atol=1e-9)


def test_silhouettes_are_rousseeuws_within_each_word_and_head() -> None:
    generator = torch.Generator().manual_seed(2)
    vectors = torch.randn(3, 7, 2, 5, generator=generator) + torch.arange(3)[:, None, None, None]
    word = torch.tensor([1, 0, 1, 0, 0, 1, 1])

    def distance(head: int, one: tuple[int, int], other: tuple[int, int]) -> float:
        return 1 - float(cosine_similarity(vectors[*one, head], vectors[*other, head], dim=0))

    found = silhouettes(vectors, word)
    for label in range(3):
        for place in range(7):
            for head in range(2):
                mine = [p for p in range(7) if word[p] == word[place]]
                to = [
                    [
                        distance(head, (label, place), (each, p))
                        for p in mine
                        if (each, p) != (label, place)
                    ]
                    for each in range(3)
                ]
                a, b = mean(to.pop(label)), min(map(mean, to))
                expected = (b - a) / max(a, b)
                assert float(found[label, place, head]) == pytest.approx(expected, abs=1e-6)


def test_q_and_k_that_are_the_same_are_no_clusters_of_their_own() -> None:
    one, v = torch.randn(2, 1, 4, 1, 8, generator=torch.Generator().manual_seed(0))
    found = silhouettes(torch.cat([one, one, v]), torch.zeros(4, dtype=torch.long))
    assert found[:2].flatten().tolist() == pytest.approx([-0.25] * 8)  # b = 3/4 a


def planted(
    distance: float = 0.5, clustered: bool = True, moved: float = 0, noise: float = 0
) -> Callable[[int, int, list[Sentence]], Mapping[str, Tensor]]:
    """Values of the encoder's self-attention.

    q, k and v are each at a place of their own, with something of word and position, or else at
    one place. x1 of a word's two places in the minimal pair is as far apart as `distance`, give or
    take `noise`. `moved`: by how much q of one sentence deviates from the same in another.
    """

    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        words = torch.randn(len(TEXTS), 9, 9, WIDTH, generator=generator)  # by first letter
        labels = 20 * torch.randn(3, WIDTH, generator=generator) * clustered
        found = torch.full((4, len(sentences), 1, 9, WIDTH), math.nan)  # nobody is to see padding
        apart = 0.1 if epoch == UNTRAINED else distance + (-1) ** seed * noise
        for index, sentence in enumerate(sentences):
            for place, token in enumerate(sentence.source):
                for label in range(3):
                    vector = labels[label] + words[label, "<webar".index(token[0]) % 9, place]
                    found[label, index, 0, place] = vector
                found[3, index, 0, place] = torch.eye(WIDTH)[0] * (index != 1)
        cosine = 1 - apart
        found[3, 1, 0, :5, 0] = cosine
        found[3, 1, 0, :5, 1] = math.sqrt(1 - cosine**2)
        if epoch == UNTRAINED:
            found[0, 1, 0, :5] *= 1 + moved
        return {
            f"encoder.layers.0.self_attention.{vector}": value
            for vector, value in zip(("q", "k", "v", "x1"), found, strict=True)
        }

    return values


def finding(result: Result, name: str) -> Finding:
    return next(each for each in result.findings if each.part.name == name)


def test_what_is_planted_is_found(judge: Judge) -> None:
    result = judge(Context(sentences=TEXTS), values=planted())
    assert result.verdict == "holds"
    assert [each.verdict for each in result.findings] == ["holds", "holds", "true by construction"]
    clusters, contexts, same = result.findings
    assert clusters.interval.low > 0.8
    untrained, shuffled = clusters.controls
    assert untrained.values == pytest.approx(clusters.values)
    assert (untrained.exceeded, shuffled.exceeded) == (False, True)
    assert abs(shuffled.interval.mean) < 0.3
    assert contexts.values == pytest.approx([0.5] * 12)
    (untrained,) = contexts.controls
    assert untrained.values == pytest.approx([0.1] * 12)
    assert untrained.exceeded
    assert same.values == [0] * 12
    # x1 is (1, 0) in the one sentence and (1/2, sqrt(3)/2) in the other: as far apart as long.
    assert same.controls[0].values == pytest.approx([1] * 12)


@pytest.mark.parametrize(
    ("name", "changed", "verdict"),
    [
        ("clusters", {"clustered": False}, "does not hold"),
        ("contexts", {"distance": 0.0}, "does not hold"),
        ("contexts", {"distance": 0.1, "noise": 0.05}, "undecided"),
        ("contexts", {"distance": 0.2, "noise": 0.05}, "holds"),
        ("same", {"moved": 2e-5}, "does not hold"),
        ("same", {"moved": 2e-6}, "true by construction"),
    ],
)
def test_each_part_can_fail(judge: Judge, name: str, changed: dict[str, Any], verdict: str) -> None:
    result = judge(Context(sentences=TEXTS), values=planted(**changed))
    assert finding(result, name).verdict == verdict
    others = [each.verdict for each in result.findings if each.part.name != name]
    assert {"does not hold", "undecided"}.isdisjoint(others)
    if name != "same" or verdict == "does not hold":
        assert result.verdict == verdict


def test_the_farthest_of_q_k_and_v_is_taken_from_x1(judge: Judge) -> None:
    def values(seed: int, epoch: int, sentences: list[Sentence]) -> Mapping[str, Tensor]:
        found = dict(planted()(seed, epoch, sentences))
        turned = found["encoder.layers.0.self_attention.k"]
        turned[1] = -turned[1]
        return found

    result = judge(Context(sentences=TEXTS), values=values)
    assert finding(result, "contexts").values == pytest.approx([0.5 - 2] * 12)


def test_only_different_vectors_of_words_count() -> None:
    texts = ["we eat", "we eat bread", "eat we"]
    sentences = [Sentence(["<sos>", *t.split(), "<eos>"], ["<sos>"], [], None) for t in texts]
    generator = torch.Generator().manual_seed(1)
    vectors = torch.randn(3, 3, 1, 5, 6, generator=generator)
    names = [f"encoder.layers.{layer}.self_attention" for layer in range(2)]
    values = {
        f"{name}.{v}": each
        for name in names
        for v, each in zip(("q", "k", "v"), vectors, strict=True)
    }
    # In the first layer "we" has two vectors, at 1 and 2, which the second sentence repeats, and so
    # has "eat"; "bread" has one; <eos> has three, but is no word.
    places = torch.tensor([(0, 1), (2, 2), (0, 2), (2, 1)]).T
    word = torch.tensor([0, 0, 1, 1])
    expected = silhouettes(vectors[:, places[0], :, places[1]].transpose(0, 1), word).mean()
    snapshot = Snapshot(LAST, 0, sentences, values)
    assert clusters(snapshot, 0) == pytest.approx(float(expected))
    # In the second all of them know their sentence, so that each word has three.
    places = torch.tensor([(0, 1), (1, 1), (2, 2), (0, 2), (1, 2), (2, 1)]).T
    word = torch.tensor([0, 0, 0, 1, 1, 1])
    expected = silhouettes(vectors[:, places[0], :, places[1]].transpose(0, 1), word).mean()
    assert clusters(snapshot, 1) == pytest.approx(float(expected))


def test_each_word_counts_alike_however_often_it_stands() -> None:
    texts = ["we we eat eat eat", "eat"]
    sentences = [Sentence(["<sos>", *t.split(), "<eos>"], ["<sos>"], [], None) for t in texts]
    vectors = torch.zeros(3, 2, 1, 7, 3)
    vectors[:, 0, 0, 1:3] = torch.eye(3)[:, None]  # "we": three points, silhouette 1
    vectors[:, 0, 0, 3:6] = torch.eye(3)  # "eat": one for each place, whatever the label
    vectors[:, 1, 0, 1, 0] = 1
    values = {
        f"encoder.layers.0.self_attention.{v}": each
        for v, each in zip(("q", "k", "v"), vectors, strict=True)
    }
    vectors = vectors[:, [0, 0, 0, 1], :, [3, 4, 5, 1]].transpose(0, 1)
    eat = float(silhouettes(vectors, torch.zeros(4, dtype=torch.long)).mean())
    assert clusters(Snapshot(LAST, 0, sentences, values), 0) == pytest.approx((1 + eat) / 2)


def test_shared_words_stand_at_the_same_position() -> None:
    sentences = [text.split() for text in ("we eat apple", "we eat bread", "we eat", "i can read")]
    pairs = shared(sentences, minimal=True)
    assert [t.tolist() for t in (*pairs.one, *pairs.other)] == [[0, 0], [1, 2], [1, 1], [1, 2]]
    everywhere = shared(sentences, minimal=False)
    assert list(zip(*(t.tolist() for t in (*everywhere.one, *everywhere.other)), strict=True)) == [
        (i, p, j, p) for i, j in ((0, 1), (0, 2), (1, 2)) for p in (1, 2)
    ]


def test_minimal_pairs_of_a_corpus(corpus: Corpus) -> None:
    def pairs(*texts: str) -> list[tuple[list[str], list[str]]]:
        return [(text.split(), []) for text in texts]

    valid = pairs("we eat apple", "we eat", "we eat bread", "we eat zebra", "i want to read book")
    train = pairs("we eat apple", "i want to read it", "can we", "can we read")
    found = minimal_pairs(replace(corpus, splits={"valid": valid, "train": train}))
    wanted = ("we eat apple", "we eat bread", "i want to read book", "i want to read it")
    assert found == [tuple(text.split()) for text in wanted]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("we eat", "we can eat"), "the same length and differ in one word"),
        (("we", "i"), "the same length and differ in one word"),
        (("we eat", "we read"), "two positions"),
    ],
)
def test_sentences_that_do_not_fit_are_told(
    judge: Judge, texts: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UserError, match=f"context.sentences: expected .*{message}"):
        judge(Context(sentences=texts), values=planted())


def test_a_corpus_without_minimal_pairs_is_told(judge: Judge, corpus: Corpus) -> None:
    none = replace(corpus, splits={split: [(["we"], ["wir"])] for split in ("valid", "train")})
    with pytest.raises(UserError, match="found none among 0"):
        judge(Context(sentences=None), corpus=none, values=planted())


def test_a_trained_model_is_measured_in_all_layers_and_heads(trained: Laboratory) -> None:
    measured = Context(sentences=None).measure(trained)
    members = trained.members(trained.base)
    assert max(measured["same"].effect) < 1e-5
    assert min(measured["same"].controls["x1"]) > 0.1
    assert all(-1 <= s <= 1 for s in measured["clusters"].effect)
    sentences = minimal_pairs(members[1].corpus)
    assert sorted(sentences) == sorted(
        tuple(words) for words, _ in members[1].corpus.splits["valid"]
    )
    for epoch, found in (
        (LAST, measured["contexts"].effect),
        (UNTRAINED, measured["contexts"].controls["untrained"]),
    ):
        snapshot = members[1].observe(sentences, [], epoch)
        gaps = []
        for layer in range(2):
            for head in range(2):
                distances = {}
                for vector in ("q", "k", "v", "x1"):
                    values = snapshot.values[f"encoder.layers.{layer}.self_attention.{vector}"]
                    distances[vector] = mean(
                        1 - float(cosine_similarity(values[i, head, p], values[j, head, p], dim=0))
                        for i, one in enumerate(sentences)
                        for j, other in enumerate(sentences[:i])
                        for p in differ_once(one, other)
                    )
                gaps.append(distances.pop("x1") - max(distances.values()))
        assert found[1] == pytest.approx(mean(gaps), abs=1e-6)


def differ_once(one: Sequence[str], other: Sequence[str]) -> list[int]:
    """The positions of shared words, if all but one are."""
    same = [p for p, (a, b) in enumerate(zip(one, other, strict=False), 1) if a == b]
    return same if len(one) == len(other) == len(same) + 1 else []
