"""The loop: epochs and batches in order, metrics with their denominators, an epoch cut short."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from qkvtrace.corpus.batches import Batches
from qkvtrace.corpus.vocabulary import PAD
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import TrainingSettings
from qkvtrace.training.loop import EpochEnd, train, validation_loss
from qkvtrace.training.trainer import Trainer


@pytest.fixture
def start(
    transformer: Callable[..., Transformer], training_settings: Callable[..., TrainingSettings]
) -> Callable[..., Trainer]:
    def build(last_step: int = 12, dropout: float = 0.3, **changed: Any) -> Trainer:
        return Trainer(transformer(dropout=dropout), training_settings(**changed), last_step)

    return build


def run(trainer: Trainer, batches: Callable[..., Batches], **more: Any) -> list[EpochEnd]:
    ends: list[EpochEnd] = []
    train(
        trainer,
        batches(),
        valid=batches("valid", 2),
        exact_match=lambda: 0.25,
        at_epoch_end=[ends.append],
        **more,
    )
    return ends


@pytest.mark.parametrize(
    ("last_step", "steps"), [(12, [4, 8, 12]), (10, [4, 8, 10]), (8, [4, 8]), (1, [1])]
)
def test_epochs_end_after_their_batches_and_the_last_at_the_last_step(
    start: Callable[..., Trainer],
    batches: Callable[..., Batches],
    last_step: int,
    steps: list[int],
) -> None:
    taken: list[int] = []
    trainer = start(last_step)
    ends = run(trainer, batches, after_step=[lambda: taken.append(trainer.step)])
    assert [end.metrics.step for end in ends] == steps
    assert [end.metrics.epoch for end in ends] == list(range(1, len(steps) + 1))
    assert taken == list(range(1, last_step + 1))
    assert trainer.finished


def test_a_finished_training_takes_no_step(
    start: Callable[..., Trainer], batches: Callable[..., Batches]
) -> None:
    trainer = start()
    run(trainer, batches)
    assert run(trainer, batches) == []


@pytest.mark.parametrize("stop", [1, 3, 4, 5, 11, 12])
def test_a_training_that_an_exception_stops_goes_on_where_it_was(
    start: Callable[..., Trainer], batches: Callable[..., Batches], stop: int
) -> None:
    whole, stopped = start(), start()
    torch.manual_seed(3)
    expected = run(whole, batches)

    def interrupt() -> None:
        if stopped.step == stop:
            raise InterruptedError

    torch.manual_seed(3)
    ends: list[EpochEnd] = []
    options: dict[str, Any] = {"valid": batches("valid", 2), "exact_match": lambda: 0.25}
    options["at_epoch_end"] = [ends.append]
    with pytest.raises(InterruptedError):
        train(stopped, batches(), after_step=[interrupt], **options)
    train(stopped, batches(), **options)
    assert torch.equal(stopped.optimizer.vector, whole.optimizer.vector)

    def timeless(end: EpochEnd) -> dict[str, float]:
        values = vars(end.metrics) | {"gradient_norm": end.gradient_norm}
        return {name: v for name, v in values.items() if "second" not in name}

    assert [timeless(end) for end in ends] == [timeless(end) for end in expected]


def test_metrics_are_means_a_target_token(
    start: Callable[..., Trainer], batches: Callable[..., Batches]
) -> None:
    trainer = start(last_step=4)
    (end,) = run(trainer, batches)
    loss, tokens = 0.0, 0
    model = trainer.model.eval()
    for batch in batches("valid", 5).in_order():
        logits, wanted = model(batch.source, batch.target[:, :-1]), batch.target[:, 1:]
        loss += cross_entropy(logits[wanted != PAD], wanted[wanted != PAD], reduction="sum").item()
        tokens += int((wanted != PAD).sum())
    metrics = end.metrics
    assert metrics.valid_loss == pytest.approx(loss / tokens, rel=1e-5)
    assert metrics.valid_ppl == pytest.approx(math.exp(metrics.valid_loss))
    assert metrics.exact_match == 0.25
    assert metrics.learning_rate == trainer.learning_rate()
    words = sum(batch.tokens for batch in batches().in_order())
    assert metrics.tokens_per_second * metrics.seconds == pytest.approx(words)


def test_train_loss_and_gradient_norm_are_those_of_the_steps(
    start: Callable[..., Trainer], batches: Callable[..., Batches]
) -> None:
    trainer = start(last_step=4)
    seen: list[tuple[float, float, int]] = []

    def look() -> None:
        sums = trainer.sums
        seen.append((sums.loss.item(), sums.gradient_norm.item(), sums.tokens))

    (end,) = run(trainer, batches, after_step=[look])
    loss, norm, tokens = seen[-1]
    assert end.metrics.train_loss == pytest.approx(loss / tokens)
    assert end.gradient_norm == pytest.approx(norm / 4)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_validation_loss_does_not_depend_on_the_batches(
    transformer: Callable[..., Transformer], batches: Callable[..., Batches], size: int
) -> None:
    model = transformer(dropout=0.5).train()
    expected = validation_loss(model, batches("valid", 3))
    assert validation_loss(model, batches("valid", size)) == pytest.approx(expected, rel=1e-6)
    assert torch.is_grad_enabled()


def test_a_small_model_learns_its_sentences(
    start: Callable[..., Trainer], batches: Callable[..., Batches]
) -> None:
    ends = run(start(last_step=160, dropout=0.0, label_smoothing=0.0), batches)
    losses = [end.metrics.train_loss for end in ends]
    assert losses[0] > 2
    assert losses[-1] < 0.1
