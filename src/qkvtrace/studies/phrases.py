"""Whole sentences as vectors."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qkvtrace.studies.subject import Subject


def means(subject: Subject, sentences: Sequence[str], epoch: int | None = None) -> Tensor:
    """The mean of the encoder's output over a sentence's words, (sentences, d_model)."""
    snapshot = subject.observe(sentences, epoch, ["encoder.output"])
    output = snapshot.values["encoder.output"]
    return torch.stack(
        [output[i, 1 : len(s.source) - 1].mean(0) for i, s in enumerate(snapshot.sentences)]
    )
