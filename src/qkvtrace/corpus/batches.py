"""Batches of ids.

In a large corpus sentences of like length share a batch, so that little is padding. A small one is
mixed instead: its batches would else hold the same few kinds of sentences each time, from which
the default corpus is learned markedly worse.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qkvtrace.corpus.prepared import TokenPair
from qkvtrace.corpus.vocabulary import PAD, Vocabulary

POOL = 100  # batches' worth of sentences that are sorted by length together


@dataclass(frozen=True)
class Batch:
    """B sentence pairs as ids, each from <sos> to <eos>, padded at the end to the longest."""

    source: Tensor  # (B, S)
    target: Tensor  # (B, T)
    tokens: int  # target tokens to predict: all but padding and <sos>


class Batches:
    """A split as batches: in a new order for each epoch, or in the order of the file.

    The order depends on the seed and the epoch alone, not on what was drawn before: a training
    that is resumed sees what it would have seen.
    """

    def __init__(
        self,
        pairs: Sequence[TokenPair],
        source: Vocabulary,
        target: Vocabulary,
        *,
        size: int,
        device: torch.device,
    ) -> None:
        self.size = size
        self.device = device
        self.pairs = [(source.ids(s), target.ids(t)) for s, t in pairs]

    def __len__(self) -> int:
        """Batches an epoch."""
        return -(-len(self.pairs) // self.size)

    def shuffled(self, seed: int, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from number `start` on."""
        # Large odd multipliers keep (seed, epoch) and (seed + 1, epoch - 1) apart.
        mixed = (seed * 1_000_003 + epoch) * 2_654_435_761 % 2**64
        generator = torch.Generator().manual_seed(mixed)
        order = torch.randperm(len(self.pairs), generator=generator).tolist()
        pool = POOL * self.size
        groups = []
        for first in range(0, len(order), pool):
            pooled = order[first : first + pool]
            if len(order) > pool:
                pooled.sort(key=self._lengths)
            groups += [pooled[i : i + self.size] for i in range(0, len(pooled), self.size)]
        turns = torch.randperm(len(groups), generator=generator).tolist()
        return (self._batch(groups[turn]) for turn in turns[start:])

    def in_order(self) -> Iterator[Batch]:
        """The batches of the split as it stands in its file."""
        for first in range(0, len(self.pairs), self.size):
            yield self._batch(range(first, min(first + self.size, len(self.pairs))))

    def _lengths(self, index: int) -> tuple[int, int]:
        source, target = self.pairs[index]
        return len(source), len(target)

    def _batch(self, indices: Sequence[int]) -> Batch:
        sources, targets = zip(*(self.pairs[i] for i in indices), strict=True)
        return Batch(
            pad(sources).to(self.device),
            pad(targets).to(self.device),
            sum(map(len, targets)) - len(targets),
        )


def pad(sentences: Sequence[list[int]]) -> Tensor:
    """Stack ids of different lengths, (B, longest)."""
    longest = max(map(len, sentences))
    return torch.tensor([ids + [PAD] * (longest - len(ids)) for ids in sentences])
