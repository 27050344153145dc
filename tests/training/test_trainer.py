"""The trainer: what a step does, and going on from a stored state as if nothing had been."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batch, Batches
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import TrainingSettings
from qkvtrace.training.objective import loss_sum
from qkvtrace.training.trainer import Trainer

Build = Callable[..., Transformer]
BuildBatches = Callable[..., Batches]

EPOCHS = 3


@pytest.fixture
def start(
    transformer: Build, training_settings: Callable[..., TrainingSettings]
) -> Callable[..., Trainer]:
    def build(seed: int = 0, dropout: float = 0.3, **changed: Any) -> Trainer:
        model = transformer(seed, dropout=dropout)
        return Trainer(model, training_settings(**changed), last_step=12)

    return build


def advance(trainer: Trainer, batches: Batches, until: int) -> None:
    """Take steps up to number `until`, ending epochs where they end."""
    while trainer.step < until:
        for batch in remaining(trainer, batches):
            trainer.train_step(batch)
            if trainer.step == until:
                break
        if trainer.batch == len(batches):
            trainer.end_epoch()


def remaining(trainer: Trainer, batches: Batches) -> Iterator[Batch]:
    return batches.shuffled(seed=5, epoch=trainer.epoch + 1, start=trainer.batch)


def everything(trainer: Trainer) -> dict[str, Tensor]:
    return trainer.model_tensors() | trainer.training_tensors()


def different(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    assert one.keys() == other.keys()
    return [name for name in one if not torch.equal(one[name], other[name])]


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
@pytest.mark.parametrize("stop", [0, 1, 4, 6, 7, 11])
def test_going_on_from_a_stored_state_is_bit_identical(
    start: Callable[..., Trainer], batches: BuildBatches, stop: int, optimizer: str
) -> None:
    torch.manual_seed(9)
    whole = start(optimizer=optimizer, weight_decay=0.01)
    torch.manual_seed(3)
    advance(whole, batches(), stop)
    stored = whole.model_tensors(), whole.training_tensors(), whole.position()
    advance(whole, batches(), 12)
    for _ in range(2):  # twice: going on does not change what was stored
        resumed = start(seed=77, optimizer=optimizer, weight_decay=0.01)
        torch.manual_seed(1234)
        resumed.load(*stored)
        assert resumed.position() == stored[2]
        advance(resumed, batches(), 12)
        assert different(everything(resumed), everything(whole)) == []
        assert resumed.position() == whole.position()
    assert whole.finished


def test_a_stored_state_is_a_copy(start: Callable[..., Trainer], batches: BuildBatches) -> None:
    trainer = start()
    advance(trainer, batches(), 2)
    stored = everything(trainer)
    before = {name: value.clone() for name, value in stored.items()}
    advance(trainer, batches(), 3)
    assert different(stored, before) == []
    assert len(different(everything(trainer), before)) == len(before)


def test_the_state_of_another_model_is_an_error(
    start: Callable[..., Trainer], transformer: Build
) -> None:
    trainer = start()
    position, tensors = trainer.position(), trainer.training_tensors()
    for changed in ({"layers": 1}, {"layers": 3}, {"feed_forward": 1}):
        other = dict(transformer(**changed).named_parameters())
        with pytest.raises(ValueError, match="expected the parameters of this model"):
            trainer.load(other, tensors, position)


@pytest.mark.parametrize("clip_norm", [None, 1e9, 0.01])
def test_a_step_goes_along_the_mean_gradient_a_token_clipped_to_its_norm(
    start: Callable[..., Trainer],
    transformer: Build,
    random_batch: Callable[..., Batch],
    clip_norm: float | None,
) -> None:
    batch = random_batch([4, 7, 2], [5, 3, 6])
    trainer = start(dropout=0.0, clip_norm=clip_norm)
    same = transformer().train()
    trainer.train_step(batch)
    (loss_sum(same, batch, 0.1) / 11).backward()
    gradient = torch.cat([p.grad.flatten() for p in same.parameters() if p.grad is not None])
    norm = gradient.norm()
    if clip_norm == 0.01:
        gradient *= clip_norm / norm
    assert_close(trainer.optimizer.gradient, gradient, atol=1e-7, rtol=1e-5)
    assert_close(trainer.sums.gradient_norm, norm.double(), rtol=1e-5, atol=0)
    assert norm > 0.01


def test_gradients_of_earlier_steps_are_forgotten(
    start: Callable[..., Trainer], random_batch: Callable[..., Batch]
) -> None:
    first, second = (random_batch([4, 7, 2], [5, 3, 6], seed) for seed in (1, 2))
    one, other = start(dropout=0.0, learning_rate=0.0), start(dropout=0.0, learning_rate=0.0)
    one.train_step(first)
    for trainer in (one, other):
        trainer.train_step(second)
    assert torch.equal(one.optimizer.gradient, other.optimizer.gradient)


def test_an_epoch_s_sums_add_up_and_start_anew(
    start: Callable[..., Trainer], batches: BuildBatches
) -> None:
    trainer = start(dropout=0.0, learning_rate=0.0, label_smoothing=0.0)
    expected, tokens = 0.0, 0
    for batch in batches().in_order():
        trainer.train_step(batch)
        expected += loss_sum(trainer.model, batch).item()
        tokens += batch.tokens
    assert trainer.sums.loss.item() == pytest.approx(expected, rel=1e-6)
    assert trainer.sums.tokens == tokens
    assert (trainer.epoch, trainer.batch, trainer.step) == (0, 4, 4)
    trainer.end_epoch()
    assert trainer.sums.loss == trainer.sums.gradient_norm == trainer.sums.tokens == 0
    assert (trainer.epoch, trainer.batch, trainer.step) == (1, 0, 4)


def test_a_step_uses_its_own_learning_rate(
    start: Callable[..., Trainer], random_batch: Callable[..., Batch]
) -> None:
    trainer, batch = start(dropout=0.0), random_batch([4], [5])
    for step, rate in ((1, 0.005), (2, 0.01), (3, 0.01 * 10 / 11)):
        before = trainer.optimizer.vector.clone()
        trainer.train_step(batch)
        assert trainer.learning_rate() == pytest.approx(rate)
        if step == 1:  # Adam's first step moves each number by the rate, where it moves at all.
            moved = (trainer.optimizer.vector - before).abs().max().item()
            assert moved == pytest.approx(rate, rel=1e-3)


def test_training_puts_the_model_in_training_mode(
    start: Callable[..., Trainer], random_batch: Callable[..., Batch]
) -> None:
    trainer = start()
    trainer.model.eval()
    trainer.train_step(random_batch([4], [5]))
    assert trainer.model.training
