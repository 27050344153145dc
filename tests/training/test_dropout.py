"""Dropout from outside is the dropout that PyTorch would have drawn."""

from collections.abc import Callable

import torch
from torch.nn.functional import dropout

from qkvtrace.corpus.batches import Batch
from qkvtrace.model.transformer import Transformer
from qkvtrace.training.dropout import Dropouts

Build = Callable[..., Transformer]


def test_a_forward_pass_with_drawn_masks_is_the_ordinary_one_in_training(
    transformer: Build, random_batch: Callable[..., Batch]
) -> None:
    batch = random_batch([4, 6, 3], [5, 3, 4])
    model, other = transformer(dropout=0.3), transformer(dropout=0.3).train()
    torch.manual_seed(11)
    ordinary = other(batch.source, batch.target[:, :-1])
    dropouts = Dropouts(model)
    masks = dropouts.draw([batch], [torch.Generator().manual_seed(11)])
    dropouts.put([mask[0] for mask in masks])
    assert torch.equal(model(batch.source, batch.target[:, :-1]), ordinary)


def test_each_member_draws_for_its_own_batch_from_its_own_numbers(
    transformer: Build, random_batch: Callable[..., Batch]
) -> None:
    small, large = random_batch([3, 3], [4, 4]), random_batch([5, 6, 5], [4, 7, 7])
    dropouts = Dropouts(transformer(dropout=0.25))
    masks = dropouts.draw([small, large], [torch.Generator().manual_seed(seed) for seed in (1, 2)])
    first = masks[0]  # of the source's embedding
    assert first.shape == (2, 3, 6, 22)
    torch.manual_seed(1)
    assert torch.equal(first[0, :2, :3], dropout(torch.ones(2, 3, 22), 0.25))
    assert torch.equal(first[0, 2:], torch.ones(1, 6, 22))
    assert torch.equal(first[0, :, 3:], torch.ones(3, 3, 22))
    torch.manual_seed(2)
    assert torch.equal(first[1], dropout(torch.ones(3, 6, 22), 0.25))


def test_without_dropout_there_is_nothing_to_draw(
    transformer: Build, random_batch: Callable[..., Batch]
) -> None:
    dropouts = Dropouts(transformer(dropout=0.0))
    assert dropouts.draw([random_batch([3], [3])], [torch.Generator()]) == ()
