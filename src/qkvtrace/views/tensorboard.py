"""A run in TensorBoard: scalars, texts, figures, hyper-parameters, and the Projector's points."""

import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import FileWriter, SummaryWriter
from torch.utils.tensorboard.summary import hparams

from qkvtrace.runs.metrics import Metrics
from qkvtrace.settings import Settings
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import SITES
from qkvtrace.training.loop import EpochEnd
from qkvtrace.views.figures import Pixels, attention_figure, png
from qkvtrace.views.projector import write_projector

SCALARS = {
    "train_loss": "loss/train",
    "valid_loss": "loss/valid",
    "valid_ppl": "quality/perplexity",
    "exact_match": "quality/exact_match",
    "learning_rate": "training/learning_rate",
    "tokens_per_second": "training/tokens_per_second",
}
FINAL = ("exact_match", "valid_loss", "train_loss")


class Board:
    """Writes a run's TensorBoard files; their step is the epoch."""

    def __init__(self, folder: Path, first_epoch: int) -> None:
        """first_epoch: what an earlier process wrote of it and later ones is not shown any more."""
        self.folder = folder
        threading.excepthook = _unless_told
        self.writer = SummaryWriter(str(folder), purge_step=first_epoch)
        self.events: FileWriter = self.writer._get_file_writer()

    def scalars(self, end: EpochEnd) -> None:
        """An epoch's curves."""
        values = asdict(end.metrics)
        for name, tag in SCALARS.items():
            self.writer.add_scalar(tag, values[name], end.metrics.epoch)
        self.writer.add_scalar("training/gradient_norm", end.gradient_norm, end.metrics.epoch)
        self.writer.flush()  # so that a run that is killed has shown what it reached

    def snapshot(self, snapshot: Snapshot) -> None:
        """A snapshot's translations, and its attention at each site, layer and head."""
        self.writer.add_text("translations", translation_table(snapshot), snapshot.epoch)
        for site in SITES:
            for layer in range(site.layers(snapshot.values)):
                heads = snapshot.values[site.tap(layer, "weights")].shape[1]
                for head in range(heads):
                    tag = f"attention_{site.name}/layer_{layer}_head_{head}"
                    picture = attention_figure(snapshot, site, layer, head)
                    self._image(tag, picture, snapshot.epoch)
        self.writer.flush()

    def projector(self, snapshots: Sequence[Snapshot]) -> None:
        """The vectors of all snapshots so far, in place of those written before."""
        write_projector(self.folder, snapshots)

    def close(self, settings: Settings, final: Metrics | None) -> None:
        """Write hyper-parameters beside the final metrics, if there are any, and end."""
        if final is not None:
            chosen: dict[str, bool | float | str] = {"data.name": settings.data.name}
            chosen |= {
                f"{group}.{name}": value
                for group in ("training", "model")
                for name, value in asdict(getattr(settings, group)).items()
                if isinstance(value, bool | int | float | str)
            }
            reached = {SCALARS[name]: getattr(final, name) for name in FINAL}
            for summary in hparams(chosen, reached):  # refers to the curves, whose ends are shown
                self.events.add_summary(summary)
        self.writer.close()

    def _image(self, tag: str, picture: Pixels, epoch: int) -> None:
        height, width, _ = picture.shape
        image = Summary.Image(
            height=height, width=width, colorspace=3, encoded_image_string=png(picture)
        )
        summary = Summary(value=[Summary.Value(tag=tag, image=image)])
        self.events.add_summary(summary, epoch)


def _unless_told(failed: threading.ExceptHookArgs) -> None:
    """The writer's thread need not print that the disk is full: our next call to it raises that."""
    if not isinstance(failed.exc_value, OSError):
        threading.__excepthook__(failed)


def translation_table(snapshot: Snapshot) -> str:
    """Source, reference and translation as a Markdown table."""
    lines = ["| | source | reference | translation | |", "|---|---|---|---|---|"]
    for number, sentence in enumerate(snapshot.sentences, start=1):
        reference = sentence.reference
        right = "" if reference is None else ("✓" if sentence.translation == reference else "✗")
        cells = (
            str(number),
            _escaped(sentence.source[1:-1]),
            "(none)" if reference is None else _escaped(reference),
            _escaped(sentence.translation),
            right,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _escaped(tokens: Sequence[str]) -> str:
    """Text that TensorBoard's Markdown shows as it is."""
    text = " ".join(tokens).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{c}" if c in "\\`*_{}[]()>#+-.!|" else c for c in text)
