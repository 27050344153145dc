"""The learning rate of each step."""

import math

from qkvtrace.settings import TrainingSettings


def last_step_and_epoch(settings: TrainingSettings, batches: int) -> tuple[int, int]:
    """Where a training ends whose epochs have `batches` steps; its last epoch may be cut short."""
    last_step = settings.epochs * batches
    if settings.steps is not None:
        last_step = min(last_step, settings.steps)
    return last_step, -(-last_step // batches)


def learning_rate(settings: TrainingSettings, step: int, last_step: int) -> float:
    """The rate of step `step` of 1 ... `last_step`: warm-up, then the schedule's decay.

    Warm-up rises linearly to `learning_rate` over `warmup_steps`. Then `constant` stays, `linear`
    and `cosine` fall to 0 just after the last step, and `inverse_sqrt` falls as 1 / sqrt(step)
    ("Attention Is All You Need", section 5.3, with the peak rate given instead of the width).
    """
    peak, warmup = settings.learning_rate, settings.warmup_steps
    if step < warmup:
        return peak * step / warmup
    progress = min(1.0, (step - warmup) / max(1, last_step + 1 - warmup))
    if settings.schedule == "linear":
        return peak * (1 - progress)
    if settings.schedule == "cosine":
        return peak * (1 + math.cos(math.pi * progress)) / 2
    if settings.schedule == "inverse_sqrt":
        return peak * math.sqrt(warmup / step)
    return peak
