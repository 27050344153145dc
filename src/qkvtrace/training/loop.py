"""The loop over epochs and batches."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from qkvtrace.corpus.batches import Batches
from qkvtrace.model.mode import evaluating
from qkvtrace.model.transformer import Transformer
from qkvtrace.runs.metrics import Metrics
from qkvtrace.training.objective import loss_sum
from qkvtrace.training.trainer import Trainer


@dataclass(frozen=True)
class EpochEnd:
    """What those who act at an epoch's end are told."""

    metrics: Metrics
    gradient_norm: float  # mean over the epoch's steps, before clipping


def train(
    trainer: Trainer,
    batches: Batches,
    *,
    valid: Batches,
    exact_match: Callable[[], float],
    after_step: Iterable[Callable[[], None]] = (),
    at_epoch_end: Iterable[Callable[[EpochEnd], None]] = (),
) -> None:
    """Train from where `trainer` stands to its last step, which may cut the last epoch short.

    Args:
        trainer: takes the steps.
        batches: the training split.
        valid: the validation split.
        exact_match: translates the validation split, and gives the share that is as the reference.
        after_step: called after each step; what they raise ends the training.
        at_epoch_end: called after each epoch, once it is counted.
    """
    while trainer.batch or not trainer.finished:
        started, tokens_before = time.perf_counter(), trainer.sums.tokens
        for batch in batches.shuffled(trainer.settings.seed, trainer.epoch + 1, trainer.batch):
            if trainer.finished:
                break
            trainer.train_step(batch)
            for act in after_step:
                act()
        sums, steps = trainer.sums, trainer.batch
        train_loss = sums.loss.item() / sums.tokens  # reading it waits for the last step
        seconds = time.perf_counter() - started
        trainer.end_epoch()
        valid_loss = validation_loss(trainer.model, valid)
        metrics = Metrics(
            epoch=trainer.epoch,
            step=trainer.step,
            train_loss=train_loss,
            valid_loss=valid_loss,
            valid_ppl=math.exp(min(valid_loss, 700.0)),
            exact_match=exact_match(),
            learning_rate=trainer.learning_rate(),
            tokens_per_second=(sums.tokens - tokens_before) / seconds,
            seconds=seconds,
        )
        end = EpochEnd(metrics, sums.gradient_norm.item() / steps)
        for act_at_end in at_epoch_end:
            act_at_end(end)


def validation_loss(model: Transformer, batches: Batches) -> float:
    """Mean cross-entropy in nats a target token, in eval mode, without label smoothing."""
    loss, tokens = torch.zeros((), dtype=torch.float64), 0
    with evaluating(model):
        for batch in batches.in_order():
            loss += loss_sum(model, batch).cpu()
            tokens += batch.tokens
    return loss.item() / tokens
