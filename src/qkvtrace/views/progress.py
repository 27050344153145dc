"""Progress on stderr: a bar on a terminal, a line an epoch elsewhere."""

import sys
from types import TracebackType

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
