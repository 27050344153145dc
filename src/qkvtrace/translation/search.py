"""Greedy search: at each step the likeliest next token.

Shapes: B sentences, S source positions, T steps, C candidates a step.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from qkvtrace.corpus.vocabulary import EOS, SOS
from qkvtrace.model.mode import evaluating
from qkvtrace.model.transformer import Transformer


@dataclass(frozen=True)
class Found:
    """What a search chose, and what it chose from."""

    ids: Tensor  # (B, T), the tokens after <sos>; <eos> once a sentence has ended
    lengths: Tensor  # (B,), the steps until it ended, its <eos> counted
    candidates: Tensor  # (B, T, C), ids, likeliest first
    probabilities: Tensor  # (B, T, C)


def greedy(
    model: Transformer,
    source: Tensor,
    *,
    max_length: int | None = None,
    candidates: int = 1,
    cached: bool = True,
) -> Found:
    """Translate a batch, in eval mode; the model's mode is put back.

    Args:
        model: any Transformer.
        source: (B, S), from <sos> to <eos>, padded.
        max_length: steps after which a sentence ends that has not ended itself; default twice its
            source tokens + 10. The table of positions limits it in any case.
        candidates: C, how many of the likeliest tokens to report a step.
        cached: keep keys and values of earlier positions; else compute them anew at each step,
            which intervening functions that look at all positions need.
    """
    with evaluating(model):
        limits = 2 * (source != model.pad).sum(1) + 10 if max_length is None else max_length
        limits = torch.as_tensor(limits, device=source.device).clamp(
            max=model.max_positions or 2**31
        )
        encoded = model.encode(source)
        target = torch.full((len(source), 1), SOS, device=source.device)
        lengths = torch.zeros_like(target[:, 0])
        ended = torch.zeros_like(lengths, dtype=torch.bool)
        steps: list[tuple[Tensor, Tensor]] = []
        while not ended.all():
            if cached:
                logits = model.decode(target[:, -1:], encoded)
            else:
                encoded.past = []
                logits = model.decode(target, encoded)
            best = logits[:, -1].softmax(-1).topk(min(candidates, logits.shape[-1]))  # (B, C)
            steps.append((best.indices, best.values))
            chosen = best.indices[:, 0].where(~ended, EOS)
            target = torch.cat([target, chosen[:, None]], dim=1)
            lengths += ~ended
            ended |= (chosen == EOS) | (lengths >= limits)
    return Found(
        target[:, 1:],
        lengths,
        torch.stack([indices for indices, _ in steps], 1),
        torch.stack([probabilities for _, probabilities in steps], 1),
    )
