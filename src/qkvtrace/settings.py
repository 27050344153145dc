"""The whole configuration, as frozen dataclasses that are validated once.

Hydra composes `configs/`, whose comments say what each key means; `conversion` turns the result
into these classes. The defaults live in `configs/` alone. Nothing below the scripts sees Hydra.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

from qkvtrace.errors import UserError


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Where the sentence pairs come from and how they become tokens."""

    name: str
    folder: str | None
    train: str | tuple[str, ...]
    valid: str | tuple[str, ...] | None
    test: str | tuple[str, ...] | None
    source_language: str
    target_language: str
    lowercase: bool
    min_frequency: int
    max_length: int | None
    limit: int | None
    probes: tuple[str, ...] | None

    def __post_init__(self) -> None:
        at_least("data.min_frequency", self.min_frequency, 1)
        for name in ("max_length", "limit"):
            if getattr(self, name) is not None:
                at_least(f"data.{name}", getattr(self, name), 1)
        for split in ("train", "valid", "test"):
            value = getattr(self, split)
            if isinstance(value, tuple) and len(value) != 2:
                raise UserError(
                    f"data.{split}: expected one TSV file or a list of two parallel files, "
                    f"found a list of {len(value)}"
                )


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The network's shape."""

    layers: int
    heads: int
    width: int
    feed_forward: int
    dropout: float
    norm: Literal["post", "pre"]
    positions: Literal["learned", "sinusoidal", "none"]
    max_positions: int
    tied_embeddings: bool
    scaled_scores: bool
    projections: Literal["separate", "shared"]
    attention: Literal["auto", "explicit", "fused"]

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "width", "feed_forward"):
            at_least(f"model.{name}", getattr(self, name), 1)
        at_least("model.max_positions", self.max_positions, 2)
        if not 0 <= self.dropout < 1:
            raise UserError(f"model.dropout: expected 0 <= dropout < 1, found {self.dropout}")
        if self.width % self.heads:
            raise UserError(
                f"model.width: expected a multiple of model.heads = {self.heads}, "
                f"found {self.width}"
            )
        if self.positions == "sinusoidal" and self.width % 2:
            raise UserError(
                f"model.width: expected an even width for sinusoidal positions, found {self.width}"
            )


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How the network is trained."""

    epochs: int
    steps: int | None
    seed: int
    device: Literal["auto", "cpu", "cuda"]
    batch_size: int
    optimizer: Literal["adam", "adamw"]
    learning_rate: float
    betas: tuple[float, ...]
    weight_decay: float
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"]
    warmup_steps: int
    label_smoothing: float
    clip_norm: float | None
    checkpoint_every: int

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "checkpoint_every"):
            at_least(f"training.{name}", getattr(self, name), 1)
        for name in ("warmup_steps", "seed"):
            at_least(f"training.{name}", getattr(self, name), 0)
        if self.seed >= 2**32:  # PyTorch's generator takes no more bits
            raise UserError(f"training.seed: expected a number below 2**32, found {self.seed}")
        if self.steps is not None:
            at_least("training.steps", self.steps, 1)
        for name in ("learning_rate", "weight_decay"):
            at_least(f"training.{name}", getattr(self, name), 0)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise UserError(
                f"training.clip_norm: expected a number above 0 or null, found {self.clip_norm}"
            )
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise UserError(
                f"training.betas: expected two numbers from 0 to below 1, found {list(self.betas)}"
            )
        if not 0 <= self.label_smoothing < 1:
            raise UserError(
                "training.label_smoothing: expected 0 <= label_smoothing < 1, "
                f"found {self.label_smoothing}"
            )
        if self.schedule == "inverse_sqrt" and self.warmup_steps == 0:
            raise UserError(
                "training.warmup_steps: expected at least 1 for schedule inverse_sqrt, found 0"
            )


@dataclass(frozen=True, kw_only=True)
class SnapshotSettings:
    """Which epochs are looked at."""

    epochs: tuple[int, ...] | None
    every: int
    parameters: bool
    tensorboard: bool

    def __post_init__(self) -> None:
        at_least("snapshots.every", self.every, 0)
        for epoch in self.epochs or ():
            at_least("snapshots.epochs", epoch, 0)

    def shown(self, last_epoch: int) -> list[int]:
        """The epochs that TensorBoard shows, ascending; 0 is the untrained model.

        Where the settings name none: 0, 1, half-way and the last.

        Raises UserError if an epoch lies beyond the last one that is trained.
        """
        if self.epochs is None:
            return sorted({0, 1, (last_epoch + 1) // 2, last_epoch})
        beyond = [epoch for epoch in self.epochs if epoch > last_epoch]
        if beyond:
            raise UserError(
                f"snapshots.epochs: expected epochs from 0 to the last, {last_epoch}, "
                f"found {', '.join(map(str, beyond))}"
            )
        return sorted(set(self.epochs))

    def stored(self, last_epoch: int) -> list[int]:
        """The epochs that are recorded: those shown, and every nth."""
        every = range(0, last_epoch + 1, self.every) if self.every else ()
        return sorted({*self.shown(last_epoch), *every})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a trained model is made from."""

    data: DataSettings
    model: ModelSettings
    training: TrainingSettings
    outputs: str


@dataclass(frozen=True, kw_only=True)
class Settings(Recipe):
    """Everything a training run is made from; its copy lies in the run's `.hydra/`."""

    snapshots: SnapshotSettings
    resume: str | None


@dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """Which corpus is prepared, and where it is kept."""

    data: DataSettings
    outputs: str


SITE_NAMES = ("encoder_self", "decoder_self", "cross")
DECODER_INPUTS = {
    "tokens_unscaled": "token vectors, unscaled",
    "tokens": "token vectors",
    "positions": "position vectors",
    "encoder_output": "the encoder's output",
}
SKIPS = {
    "decoder": "decoder skipped",
    "decoder_self_attention": "decoder self-attention skipped",
    "cross_attention": "cross-attention skipped",
    "cross_attention_keep_norm": "cross-attention skipped, norm kept",
    "feed_forward": "feed-forward skipped",
}
ONLY = {"cross_attention": "only cross-attention"}


@dataclass(frozen=True, kw_only=True)
class InterventionSettings:
    """What is changed inside a trained model; by default nothing. `str` says it in one line.

    first<n> may be written first(n). snapshots.interventions.changed says what each change does.
    """

    attention: str = "learned"
    site: str | None = None
    layer: int | None = None
    head: int | None = None
    decoder_input: str | None = None
    skip: str | None = None
    only: str | None = None

    def __post_init__(self) -> None:
        if self.attention not in ("learned", "uniform", "last", "hard") and not self.first:
            raise UserError(
                "attention: expected one of learned, uniform, last, hard, first<n> with n from 1, "
                f"found {self.attention!r}"
            )
        for name, choices in (
            ("site", SITE_NAMES),
            ("decoder_input", DECODER_INPUTS),
            ("skip", SKIPS),
            ("only", ONLY),
        ):
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise UserError(
                    f"{name}: expected one of {', '.join(choices)} or null, found {value!r}"
                )
        for name in ("site", "layer", "head"):
            if self.attention == "learned" and getattr(self, name) is not None:
                raise UserError(
                    f"{name}: expected only where attention is replaced, "
                    f"found {name}={getattr(self, name)} and attention=learned"
                )
        for name in ("layer", "head"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 0)
        if self.skip and self.only:
            raise UserError(
                f"expected skip or only, found both: skip={self.skip}, only={self.only}"
            )

    @property
    def first(self) -> int | None:
        """The n of first<n>, in either spelling; None where attention is another."""
        spelt = re.fullmatch(r"first(?:(\d+)|\((\d+)\))", self.attention)
        return int(spelt[1] or spelt[2]) if spelt else None

    @property
    def cross_attends(self) -> bool:
        """Whether cross-attention takes part in a translation."""
        return self.skip not in ("decoder", "cross_attention", "cross_attention_keep_norm")

    def __str__(self) -> str:
        changes = []
        if self.attention != "learned":
            kind = f"first-{self.first}" if self.first else self.attention
            layer, head = (
                None if value is None else f"{name} {value}"
                for name, value in (("layer", self.layer), ("head", self.head))
            )
            where = ", ".join(filter(None, (self.site, layer, head)))
            changes.append(f"{kind} attention" + (f" at {where}" if where else ""))
        if self.decoder_input:
            changes.append(f"decoder input: {DECODER_INPUTS[self.decoder_input]}")
        if self.skip:
            changes.append(SKIPS[self.skip])
        if self.only:
            changes.append(ONLY[self.only])
        return "; ".join(changes) or "as learned"


@dataclass(frozen=True, kw_only=True)
class TranslateSettings(InterventionSettings):
    """Which run translates, what is changed inside it, and how much it tells."""

    run: str
    checkpoint: Literal["best", "latest"]
    file: str | None
    batch_size: int
    max_length: int | None
    details: bool
    candidates: int
    device: Literal["auto", "cpu", "cuda"]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch_size", "candidates"):
            at_least(name, getattr(self, name), 1)
        if self.max_length is not None:
            at_least("max_length", self.max_length, 1)


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """Which run is studied; each study has settings of its own."""

    run: str
    device: Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, kw_only=True)
class HeldOutSettings:
    """What generalisation is measured with: validation pairs that are none of the training's."""

    data: DataSettings
    training: TrainingSettings


@dataclass(frozen=True, kw_only=True)
class ClaimsSettings(Recipe):
    """Which claims are tested, on how many seeds of what; claims have settings of their own."""

    seeds: int
    members: int
    claims: tuple[str, ...] | None
    held_out: HeldOutSettings

    def __post_init__(self) -> None:
        at_least("seeds", self.seeds, 1)
        at_least("members", self.members, 8)


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """Which run the page is about."""

    run: str


@dataclass(frozen=True, kw_only=True)
class PictureSettings:
    """Which attention is drawn."""

    run: str
    sentence: int
    layer: int
    head: int
    epochs: tuple[int, ...] | None
    file: str


@dataclass(frozen=True, kw_only=True)
class GpuSettings:
    """Which devices are compared, and when they agree."""

    devices: tuple[Literal["cpu", "cuda"], ...]
    tolerance: float
    report: str

    def __post_init__(self) -> None:
        at_least("tolerance", self.tolerance, 0)
        if len(self.devices) != 2:
            raise UserError(f"devices: expected two, found {list(self.devices)}")


@dataclass(frozen=True, kw_only=True)
class BenchmarkSettings:
    """How often things are measured."""

    repeats: int
    steps: int

    def __post_init__(self) -> None:
        for name in ("repeats", "steps"):
            at_least(name, getattr(self, name), 1)


@dataclass(frozen=True, kw_only=True)
class BenchmarkTabSettings:
    """Over which run the tab is measured."""

    run: str | None


def at_least(name: str, value: float, least: int) -> None:
    """Raise UserError unless value >= least; NaN and infinity are refused too."""
    if not least <= value < math.inf:
        raise UserError(f"{name}: expected {least} or more, found {value}")
