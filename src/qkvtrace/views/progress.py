"""Progress on stderr: a bar on a terminal; elsewhere a line an epoch, or an ensemble."""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType

from qkvtrace.settings import Recipe
from qkvtrace.training.loop import EpochEnd
from qkvtrace.training.trainer import Trainer


class Progress:
    """Follows a trainer from its place to its last step."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar

            self.bar = Bar(console=Console(stderr=True))
            self.task = self.bar.add_task(
                "training", total=trainer.last_step, completed=trainer.step
            )

    def __enter__(self) -> "Progress":
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def after_step(self) -> None:
        """Move the bar."""
        if self.bar is not None:
            self.bar.update(self.task, completed=self.trainer.step)

    def at_epoch_end(self, end: EpochEnd) -> None:
        """Say what the epoch came to."""
        m = end.metrics
        reached = f"valid_loss {m.valid_loss:6.3f}  exact_match {m.exact_match:5.3f}"
        if self.bar is not None:
            self.bar.update(self.task, description=f"epoch {m.epoch}  {reached}")
        else:
            taken = f"epoch {m.epoch:4d}  step {m.step:6d}  train_loss {m.train_loss:6.3f}"
            print(f"{taken}  {reached}", file=sys.stderr)


class EnsembleProgress:
    """Follows one ensemble after the other."""

    def __init__(self, usual: Sequence[Recipe]) -> None:
        """usual: the recipes that others are variants of."""
        self.usual = usual
        self.started = time.perf_counter()
        self.bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar

            self.bar = Bar(console=Console(stderr=True))

    def __enter__(self) -> "EnsembleProgress":
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def after_step(self, recipe: Recipe, step: int, last_step: int) -> None:
        """Move the bar of this recipe, or say at its end how long it took."""
        if step == 1:
            self.started = time.perf_counter()
            if self.bar is not None:
                self.task = self.bar.add_task(self._named(recipe), total=last_step)
        if self.bar is not None:
            self.bar.update(self.task, completed=step)
        elif step == last_step:
            took = time.perf_counter() - self.started
            print(f"trained {self._named(recipe)}: {step} steps, {took:.1f} s", file=sys.stderr)

    def _named(self, recipe: Recipe) -> str:
        """The corpus, and what is not as usual with it."""
        changes = [
            self._changes(recipe, usual) for usual in self.usual if usual.data == recipe.data
        ]
        return ", ".join([recipe.data.name, *min(changes, key=len)])

    def _changes(self, recipe: Recipe, usual: Recipe) -> list[str]:
        return [
            f"{group}.{name}={value}"
            for group in ("model", "training")
            for name, value in asdict(getattr(recipe, group)).items()
            if getattr(getattr(usual, group), name) != value
        ]
