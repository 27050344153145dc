"""Whole sentences as vectors."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qkvtrace.corpus.batches import pad
from qkvtrace.snapshots.recording import recording
from qkvtrace.studies.subject import Subject


def means(subject: Subject, sentences: Sequence[str], epoch: int | None = None) -> Tensor:
    """The mean of the encoder's output over a sentence's words, (sentences, d_model)."""
    model, source = subject.model(epoch), subject.trained.source
    ids = [source.ids(subject.tokens(text)) for text in sentences]
    with recording(model, "encoder.output") as record:
        model.encode(pad(ids).to(next(model.parameters()).device))
    output = record["encoder.output"][0]
    return torch.stack([output[i, 1 : len(each) - 1].mean(0) for i, each in enumerate(ids)])
