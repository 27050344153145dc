"""One training step, and everything that the next one depends on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from qkvtrace.corpus.batches import Batch
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import TrainingSettings
from qkvtrace.training.objective import loss_sum
from qkvtrace.training.optimizer import Adam, as_vector
from qkvtrace.training.schedule import learning_rate


@dataclass
class Sums:
    """What an epoch's steps add up to, kept on the training's device: reading it would wait."""

    loss: Tensor
    gradient_norm: Tensor
    tokens: int = 0

    @classmethod
    def zero(cls, device: torch.device) -> "Sums":
        """An epoch's beginning."""
        loss, gradient_norm = torch.zeros(2, dtype=torch.float64, device=device)
        return cls(loss, gradient_norm)


class Trainer:
    """A model in training: it takes steps, and knows where it stands."""

    def __init__(self, model: Transformer, settings: TrainingSettings, last_step: int) -> None:
        """Args:
        model: on the device it is trained on.
        settings: the recipe.
        last_step: steps of the whole training, which some schedules end at.
        """
        self.model = model
        self.settings = settings
        self.last_step = last_step
        self.device = next(model.parameters()).device
        self.optimizer = Adam(as_vector(model), settings)
        self.epoch = 0  # whole epochs done
        self.batch = 0  # batches done of the epoch that has begun
        self.step = 0  # batches done in all
        self.sums = Sums.zero(self.device)

    @property
    def finished(self) -> bool:
        """Whether every step was taken."""
        return self.step >= self.last_step

    def learning_rate(self) -> float:
        """The rate of the step that was taken last."""
        return learning_rate(self.settings, self.step, self.last_step)

    def train_step(self, batch: Batch) -> None:
        """Forward, backward, clip, update."""
        self.model.train()
        self.optimizer.gradient.zero_()
        loss = loss_sum(self.model, batch, self.settings.label_smoothing)
        (loss / batch.tokens).backward()
        limit = self.settings.clip_norm
        norm = clip_grad_norm_(self.optimizer.vector, torch.inf if limit is None else limit)
        self.step += 1
        self.batch += 1
        self.optimizer.step(self.learning_rate())
        self.sums.loss += loss.detach()
        self.sums.gradient_norm += norm
        self.sums.tokens += batch.tokens

    def end_epoch(self) -> None:
        """Count the epoch, and begin the next with empty sums."""
        self.epoch += 1
        self.batch = 0
        self.sums = Sums.zero(self.device)

    def model_tensors(self) -> dict[str, Tensor]:
        """Copies of the parameters by name, on the CPU; a tied one once."""
        return {name: p.detach().cpu().clone() for name, p in self.model.named_parameters()}

    def training_tensors(self) -> dict[str, Tensor]:
        """Copies of all else that is a tensor: optimiser, random states, running sums."""
        tensors = {f"adam.{name}": value for name, value in self.optimizer.state().items()}
        tensors["sums.loss"] = self.sums.loss
        tensors["sums.gradient_norm"] = self.sums.gradient_norm
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return {name: value.cpu().clone() for name, value in tensors.items()}

    def position(self) -> dict[str, int]:
        """Where training stands: whole epochs, batches and tokens of the next one, steps in all."""
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "tokens": self.sums.tokens,
            "step": self.step,
        }

    def load(
        self, model: Mapping[str, Tensor], training: Mapping[str, Tensor], position: dict[str, Any]
    ) -> None:
        """Go on from where `model_tensors`, `training_tensors` and `position` were taken.

        Raises ValueError if the tensors are another model's.
        """
        self.model.load_parameters(model)
        self.optimizer.load_state(
            {name: training[f"adam.{name}"] for name in self.optimizer.state()}
        )
        torch.set_rng_state(training["random.cpu"])
        if self.device.type == "cuda" and "random.cuda" in training:
            torch.cuda.set_rng_state(training["random.cuda"], self.device)
        self.epoch, self.batch, self.step = position["epoch"], position["batch"], position["step"]
        self.sums = Sums(
            training["sums.loss"].to(self.device, copy=True),
            training["sums.gradient_norm"].to(self.device, copy=True),
            position["tokens"],
        )
