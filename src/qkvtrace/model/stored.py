"""A trained model, as its run folder has it."""

from dataclasses import dataclass

import torch

from qkvtrace.corpus.vocabulary import PAD, Vocabulary
from qkvtrace.errors import UserError
from qkvtrace.model.device import choose_threads
from qkvtrace.model.transformer import Transformer
from qkvtrace.runs import checkpoints
from qkvtrace.runs.folder import Run
from qkvtrace.settings import Recipe, Settings


@dataclass(frozen=True)
class Trained:
    """A run's model in eval mode, and what it takes to talk to it."""

    settings: Settings
    model: Transformer
    source: Vocabulary
    target: Vocabulary


def build_model(settings: Recipe, source: Vocabulary, target: Vocabulary) -> Transformer:
    """A new model for these vocabularies, initialised from PyTorch's random state."""
    return Transformer(
        settings.model,
        source_vocabulary=len(source),
        target_vocabulary=len(target),
        pad=PAD,
    )


def load_trained(run: Run, which: str, device: torch.device) -> Trained:
    """The model of a run's checkpoint `which`, "best" or "latest".

    Raises:
        UserError: if there is no such checkpoint, a file is damaged, or the run's vocabularies
            are not those that the model was trained with.
    """
    settings = run.settings()
    source = Vocabulary.load(run.vocabulary("source"))
    target = Vocabulary.load(run.vocabulary("target"))
    checkpoint = checkpoints.load(run.checkpoints, which)
    check_vocabularies(run, checkpoint, source, target)
    model = build_model(settings, source, target)
    try:
        model.load_parameters(checkpoint.model)
    except ValueError:
        raise UserError(
            f"expected a checkpoint of the model that .hydra/config.yaml describes, found another: "
            f"{run.checkpoints / which}"
        ) from None
    choose_threads(model)
    return Trained(settings, model.to(device).eval(), source, target)


def check_vocabularies(
    run: Run, checkpoint: checkpoints.Checkpoint, source: Vocabulary, target: Vocabulary
) -> None:
    """Raise UserError unless the checkpoint was trained with these vocabularies."""
    trained = checkpoint.state["vocabularies"]
    for side, vocabulary in (("source", source), ("target", target)):
        if trained[side] != vocabulary.sha256:
            raise UserError(
                f"expected the vocabulary that the checkpoint was trained with, found another: "
                f"{run.vocabulary(side)}"
            )
