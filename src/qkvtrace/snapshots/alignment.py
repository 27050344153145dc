"""Alignment: what each step of a translation looked at in its source."""

import torch
from torch import Tensor

from qkvtrace.corpus.vocabulary import SOS
from qkvtrace.model.stored import Trained
from qkvtrace.snapshots.recording import recording
from qkvtrace.translation.translator import Translation


def alignment(trained: Trained, translation: Translation) -> Tensor:
    """Cross-attention's weights as the translation was made, of a sentence that is not empty.

    (layer, head, step, position in the source): positions are those of <sos>, the source tokens
    and <eos>. An intervention that was in place must be in place again.
    """
    device = next(trained.model.parameters()).device
    source = torch.tensor([trained.source.ids(translation.source)], device=device)
    given = torch.tensor([[SOS, *translation.ids[:-1]]], device=device)
    with recording(trained.model, "decoder.layers.*.cross_attention.weights") as record:
        trained.model(source, given)
    return torch.cat([weights for (weights,) in record.values()])
