"""The objective: cross-entropy a target token, computed by hand."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import pad

from qkvtrace.corpus.batches import Batch
from qkvtrace.corpus.vocabulary import PAD
from qkvtrace.model.transformer import Transformer
from qkvtrace.training.objective import loss_sum

SOURCES, TARGETS = [4, 7, 2], [5, 3, 6]


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_the_sum_over_real_tokens_worked_out_by_hand(
    transformer: Callable[..., Transformer], random_batch: Callable[..., Batch], smoothing: float
) -> None:
    model, batch = transformer(), random_batch(SOURCES, TARGETS)
    logits = model(batch.source, batch.target[:, :-1]).tolist()
    expected, tokens = 0.0, 0
    for sentence, length in enumerate(TARGETS):
        for position in range(length - 1):
            scores = logits[sentence][position]
            total = math.log(sum(math.exp(score) for score in scores))
            losses = [total - score for score in scores]
            wanted = losses[batch.target[sentence, position + 1]]
            expected += (1 - smoothing) * wanted + smoothing * sum(losses) / len(losses)
            tokens += 1
    assert tokens == batch.tokens == 11
    assert loss_sum(model, batch, smoothing).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_more_padding_changes_neither_loss_nor_gradients(
    transformer: Callable[..., Transformer], random_batch: Callable[..., Batch], smoothing: float
) -> None:
    model, batch = transformer(), random_batch(SOURCES, TARGETS)
    longer = replace(
        batch,
        source=pad(batch.source, (0, 3), value=PAD),
        target=pad(batch.target, (0, 5), value=PAD),
    )
    results = []
    for each in (batch, longer):
        model.zero_grad()
        loss = loss_sum(model, each, smoothing)
        loss.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        results.append((loss.detach(), torch.cat([g.flatten() for g in gradients])))
    torch.testing.assert_close(results[0], results[1], atol=1e-4, rtol=1e-5)
    assert results[0][1].abs().max() > 0.1
