"""The learning rate of each step, worked out by hand."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvtrace.settings import TrainingSettings
from qkvtrace.training.schedule import last_step_and_epoch, learning_rate

Settings = Callable[..., TrainingSettings]

WARMUP = [0.2, 0.4, 0.6, 0.8]  # steps 1 to 4 of 5, at a peak of 1


# From step 5 to 15 are ten steps: linear and cosine reach 0 just after the last, 14.
@pytest.mark.parametrize(
    ("schedule", "step", "rate"),
    [
        ("constant", 5, 1.0),
        ("constant", 14, 1.0),
        ("linear", 5, 1.0),
        ("linear", 6, 0.9),
        ("linear", 10, 0.5),
        ("linear", 14, 0.1),
        ("cosine", 5, 1.0),
        ("cosine", 10, 0.5),
        ("cosine", 14, 0.024471742),  # (1 + cos(0.9 pi)) / 2
        ("inverse_sqrt", 5, 1.0),
        ("inverse_sqrt", 20, 0.5),
        ("inverse_sqrt", 45, 1 / 3),
    ],
)
def test_rates_after_the_warm_up(
    training_settings: Settings, schedule: str, step: int, rate: float
) -> None:
    settings = training_settings(schedule=schedule, learning_rate=1.0, warmup_steps=5)
    assert learning_rate(settings, step, last_step=14) == pytest.approx(rate, abs=1e-9)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine", "inverse_sqrt"])
def test_the_warm_up_rises_evenly_to_the_peak(training_settings: Settings, schedule: str) -> None:
    settings = training_settings(schedule=schedule, learning_rate=1.0, warmup_steps=5)
    rates = [learning_rate(settings, step, last_step=14) for step in range(1, 5)]
    assert rates == pytest.approx(WARMUP)


@pytest.mark.parametrize(
    ("schedule", "first", "last"),
    [("constant", 0.3, 0.3), ("linear", 0.27, 0.03), ("cosine", 0.29265848, 0.00734152)],
)
def test_without_a_warm_up_the_decay_starts_at_once(
    training_settings: Settings, schedule: str, first: float, last: float
) -> None:
    settings = training_settings(schedule=schedule, learning_rate=0.3, warmup_steps=0)
    rates = [learning_rate(settings, step, last_step=9) for step in (1, 9)]
    assert rates == pytest.approx([first, last], abs=1e-8)


@given(
    schedule=st.sampled_from(["constant", "linear", "cosine", "inverse_sqrt"]),
    warmup=st.integers(1, 30),
    last=st.integers(1, 30),
    step=st.integers(1, 90),
)
def test_rates_stay_between_0_and_the_peak_even_after_the_last_step(
    training_settings: Settings, schedule: str, warmup: int, last: int, step: int
) -> None:
    settings = training_settings(schedule=schedule, learning_rate=0.3, warmup_steps=warmup)
    rate = learning_rate(settings, step, last)
    assert 0 <= rate <= 0.3
    if step <= last:
        assert rate > 0
    if schedule in ("linear", "cosine") and step > max(last, warmup):
        assert rate == 0


@pytest.mark.parametrize(
    ("epochs", "steps", "batches", "expected"),
    [
        (30, None, 5, (150, 30)),
        (30, 150, 5, (150, 30)),
        (30, 151, 5, (150, 30)),
        (30, 149, 5, (149, 30)),
        (30, 145, 5, (145, 29)),
        (30, 146, 5, (146, 30)),
        (30, 1, 5, (1, 1)),
        (1, None, 1, (1, 1)),
    ],
)
def test_steps_may_cut_the_last_epoch_short(
    training_settings: Settings,
    epochs: int,
    steps: int | None,
    batches: int,
    expected: tuple[int, int],
) -> None:
    settings = training_settings(epochs=epochs, steps=steps)
    assert last_step_and_epoch(settings, batches) == expected
