"""Dropout from outside: the masks that a model draws in training, drawn beforehand.

A model that is many at once cannot draw for each from that one's own random numbers. So all are
drawn here, in the order and the shapes in which the ordinary forward pass would, and handed in.
"""

from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor, nn

from qkvtrace.corpus.batches import Batch
from qkvtrace.model.mode import evaluating
from qkvtrace.model.transformer import Transformer


class Dropouts:
    """All dropouts of a model, in the order in which a forward pass meets them.

    The model must stay in eval mode: what is dropped is what `put` hands in, and nothing else.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.modules = [m for m in model.modules() if isinstance(m, nn.Dropout) and m.p > 0]
        self.p = model.settings.dropout
        assert all(module.p == self.p for module in self.modules)
        self._next: Iterator[Tensor] = iter(())
        self._met: list[torch.Size] = []
        for module in self.modules:
            module.register_forward_hook(self._drop)
        self._shapes = cache(self._measure)

    def draw(
        self, batches: Sequence[Batch], generators: Sequence[torch.Generator]
    ) -> tuple[Tensor, ...]:
        """The masks of one step for N members, each for its own batch.

        A member's numbers are those that PyTorch's dropout would draw from its generator on a CPU.
        Returns one tensor a dropout, (N, shape in the largest batch): 0 where a value is dropped,
        1 / (1 - p) where it stays, and 1 beyond a member's own batch.
        """
        if not self.modules:
            return ()
        sizes = [(*batch.source.shape, batch.target.shape[1] - 1) for batch in batches]
        device = batches[0].source.device
        largest = tuple(max(size) for size in zip(*sizes, strict=True))
        masks = [
            torch.ones(len(batches), *shape, device=device) for shape in self._shapes(*largest)
        ]
        for member, (size, generator) in enumerate(zip(sizes, generators, strict=True)):
            shapes = self._shapes(*size)
            counts = [shape.numel() for shape in shapes]
            # One call for all: its numbers follow one another as those of many calls would.
            drawn = torch.empty(sum(counts), device=device)
            drawn.bernoulli_(1 - self.p, generator=generator).div_(1 - self.p)
            for mask, own, shape in zip(masks, drawn.split(counts), shapes, strict=True):
                mask[member][tuple(map(slice, shape))] = own.view(shape)
        return tuple(masks)

    def put(self, masks: Sequence[Tensor]) -> None:
        """Let the next forward pass drop by these masks."""
        self._next = iter(masks)

    def _drop(self, _dropout: nn.Dropout, _inputs: tuple[Tensor, ...], value: Tensor) -> Tensor:
        mask = next(self._next, None)
        if mask is None:
            self._met.append(value.shape)
            return value
        return value * mask

    def _measure(self, sentences: int, source: int, target: int) -> list[torch.Size]:
        """Each dropout's shape for a batch (B, S, T), as a forward pass of one meets them."""
        device = next(self.model.parameters()).device
        ids = [torch.ones(sentences, n, dtype=torch.long, device=device) for n in (source, target)]
        self.put(())
        self._met = []
        with evaluating(self.model):
            self.model(*ids)
        return self._met
