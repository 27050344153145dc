"""Keeping a training: checkpoints and metrics at epochs' ends, and picking up from them."""

from qkvtrace.corpus.vocabulary import Vocabulary
from qkvtrace.errors import UserError
from qkvtrace.model.stored import check_vocabularies
from qkvtrace.runs import checkpoints, files
from qkvtrace.runs.folder import Run
from qkvtrace.runs.metrics import Metrics, read_metrics, write_metrics
from qkvtrace.training.loop import EpochEnd
from qkvtrace.training.trainer import Trainer


class Saver:
    """Writes what a run needs to go on after it was stopped, however it was stopped.

    A checkpoint is the last thing that is written at an epoch's end. What came before it (metrics,
    snapshots) is written again, and the same, if the process dies between.
    """

    def __init__(self, run: Run, trainer: Trainer, source: Vocabulary, target: Vocabulary) -> None:
        self.run = run
        self.trainer = trainer
        self.source = source
        self.target = target
        self.metrics: list[Metrics] = []
        self.best: float | None = None  # lowest validation loss of the checkpointed epochs

    def restore(self) -> bool:
        """Go on from the latest checkpoint; False if there is none yet, then from the beginning.

        Raises UserError if it is damaged, the run's vocabularies are not its own, or it lies beyond
        the last step.
        """
        files.remove_leftovers(self.run.folder)
        if not (self.run.checkpoints / "latest").exists():
            return False
        checkpoint = checkpoints.load(self.run.checkpoints, "latest")
        check_vocabularies(self.run, checkpoint, self.source, self.target)
        try:
            self.trainer.load(checkpoint.model, checkpoint.training, checkpoint.state)
        except ValueError:
            raise UserError(
                "expected a checkpoint of the model that .hydra/config.yaml describes, found "
                f"another: {self.run.checkpoints / 'latest'}"
            ) from None
        if self.trainer.step > self.trainer.last_step:
            raise UserError(
                f"training.epochs: expected no fewer steps than the {self.trainer.step} that the "
                f"run has taken, found {self.trainer.last_step}: {self.run}"
            )
        self.best = checkpoint.state["best_valid_loss"]
        done = self.trainer.epoch
        self.metrics = [m for m in read_metrics(self.run.metrics) if m.epoch <= done]
        return True

    def at_epoch_end(self, end: EpochEnd) -> None:
        """Write metrics.jsonl with this epoch's line, and a checkpoint where one is due."""
        self.metrics.append(end.metrics)
        write_metrics(self.run.metrics, self.metrics)
        every = self.trainer.settings.checkpoint_every
        if end.metrics.epoch % every and not self.trainer.finished:
            return
        best = self.best is None or end.metrics.valid_loss < self.best
        if best:
            self.best = end.metrics.valid_loss
        self.save(best=best)

    def stop(self) -> str:
        """Write a checkpoint since training is asked to stop; returns what to tell the person."""
        self.save()
        go_on = f"make train ARGS=resume={self.run}"
        return f"stopped after step {self.trainer.step}; to go on: {go_on}"

    def save(self, *, best: bool = False) -> None:
        """Write a checkpoint of this moment."""
        trainer = self.trainer
        name = f"epoch-{trainer.epoch:04d}"
        if trainer.batch:
            name = f"epoch-{trainer.epoch + 1:04d}-batch-{trainer.batch:04d}"
        vocabularies = {"source": self.source.sha256, "target": self.target.sha256}
        state = trainer.position() | {"best_valid_loss": self.best, "vocabularies": vocabularies}
        checkpoint = checkpoints.Checkpoint(
            trainer.model_tensors(), trainer.training_tensors(), state
        )
        checkpoints.save(self.run.checkpoints, name, checkpoint, best)
