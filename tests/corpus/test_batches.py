"""Batches: every pair once an epoch, in an order that seed and epoch decide, padded at the end."""

from collections import Counter
from collections.abc import Iterable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkvtrace.corpus.batches import POOL, Batch, Batches, pad
from qkvtrace.corpus.prepared import TokenPair
from qkvtrace.corpus.vocabulary import EOS, PAD, SOS, SPECIALS, Vocabulary

WORDS = Vocabulary((*SPECIALS, *(f"w{index}" for index in range(97))))


def build(lengths: Iterable[tuple[int, int]], size: int) -> Batches:
    """Pairs of given lengths in words; their first words tell them apart."""
    pairs: list[TokenPair] = [
        (
            [f"w{index % 97}", *["w0"] * (source - 1)],
            [f"w{index % 89}", *["w1"] * (target - 1)],
        )
        for index, (source, target) in enumerate(lengths)
    ]
    return Batches(pairs, WORDS, WORDS, size=size, device=torch.device("cpu"))


def sentences(batches: Iterable[Batch]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs, from <sos> to <eos>, in order."""
    return [
        tuple(tuple(row[: row.index(EOS) + 1]) for row in pair)  # type: ignore[misc]
        for batch in batches
        for pair in zip(batch.source.tolist(), batch.target.tolist(), strict=True)
    ]


lengths = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=40)


@given(lengths, st.integers(1, 11), st.integers(0, 2**32 - 1), st.integers(1, 10_000))
def test_every_pair_comes_exactly_once_an_epoch(
    lengths: list[tuple[int, int]], size: int, seed: int, epoch: int
) -> None:
    batches = build(lengths, size)
    shuffled = list(batches.shuffled(seed, epoch))
    everything = [(tuple(source), tuple(target)) for source, target in batches.pairs]
    assert Counter(sentences(shuffled)) == Counter(everything)
    assert sentences(batches.in_order()) == everything
    assert len(shuffled) == len(list(batches.in_order())) == len(batches)
    assert sorted(len(batch.source) for batch in shuffled)[1:] == [size] * (len(batches) - 1)


@given(lengths, st.integers(1, 11))
def test_padding_stands_only_at_the_end_and_only_as_long_as_needed(
    lengths: list[tuple[int, int]], size: int
) -> None:
    for batch in build(lengths, size).shuffled(0, 1):
        for side in (batch.source, batch.target):
            words = side != PAD
            assert (side[:, 0] == SOS).all()
            assert (words[:, :-1] >= words[:, 1:]).all()
            assert words[:, -1].any()
            assert (side.gather(1, words.sum(1)[:, None] - 1) == EOS).all()


@given(lengths, st.integers(1, 11))
def test_a_batch_counts_its_target_tokens_without_sos_and_padding(
    lengths: list[tuple[int, int]], size: int
) -> None:
    batches = list(build(lengths, size).shuffled(0, 1))
    for batch in batches:
        assert batch.tokens == (batch.target[:, 1:] != PAD).sum()
    assert sum(batch.tokens for batch in batches) == sum(target + 1 for _, target in lengths)


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    one, other = (build([(2, 2)] * 89, 5) for _ in range(2))
    torch.manual_seed(1)
    first = sentences(one.shuffled(3, 4))
    list(other.shuffled(0, 1))
    torch.manual_seed(2)
    torch.rand(7)
    random = torch.get_rng_state()
    assert sentences(other.shuffled(3, 4)) == first
    assert torch.equal(torch.get_rng_state(), random)


def test_each_seed_and_epoch_has_an_order_of_its_own() -> None:
    batches = build([(2, 2)] * 89, 5)
    near = [(seed, epoch) for seed in (0, 1, 2, 1_000_003, 2**32 - 1) for epoch in range(1, 40)]
    assert len({tuple(sentences(batches.shuffled(*each))) for each in near}) == len(near)


@pytest.mark.parametrize("pairs", [89, POOL * 2 * 2 + 3])
@pytest.mark.parametrize("start", [0, 1, 17, 44, 45])
def test_starting_later_skips_batches_and_changes_none(pairs: int, start: int) -> None:
    batches = build([(n % 7 + 1, n % 5 + 1) for n in range(pairs)], 2)
    whole, rest = list(batches.shuffled(3, 4)), list(batches.shuffled(3, 4, start))
    assert len(rest) == len(batches) - start
    assert sentences(rest) == sentences(whole[start:])


def test_a_large_corpus_has_little_padding_and_a_small_one_is_mixed() -> None:
    lengths = [(n * 31 % 23 + 1, n * 17 % 19 + 1) for n in range(POOL * 10)]

    def padded(pairs: list[tuple[int, int]], size: int) -> float:
        sides = [side for b in build(pairs, size).shuffled(0, 1) for side in (b.source, b.target)]
        return sum(int((s == PAD).sum()) for s in sides) / sum(s.numel() for s in sides)

    assert padded(lengths, 5) < 0.2
    assert padded(lengths[: POOL * 5], 5) > 0.3


def test_padding_by_hand() -> None:
    assert pad([[2, 5, 3], [2, 3], [2, 4, 4, 3]]).tolist() == [
        [2, 5, 3, 1],
        [2, 3, 1, 1],
        [2, 4, 4, 3],
    ]
