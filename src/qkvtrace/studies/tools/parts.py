"""What can be switched in a model's decoder, one at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import DECODER_INPUTS, ONLY, SKIPS, InterventionSettings

TOKENS_ALONE = ("tokens_unscaled", "tokens")


@dataclass(frozen=True)
class Switch:
    """One row: what is changed, and how to ask for it."""

    change: InterventionSettings
    setting: str  # of make translate; "" if it has none for that
    dropout: bool = False

    def __str__(self) -> str:
        return f"{self.change}{', with dropout' if self.dropout else ''}"


def switches(positions: bool) -> Iterator[Switch]:
    """All that can be switched; positions: whether the model has some."""
    for part in SKIPS:
        yield Switch(InterventionSettings(skip=part), f"skip={part}")
    for part in ONLY:
        yield Switch(InterventionSettings(only=part), f"only={part}")
    for kind in DECODER_INPUTS:
        if kind == "positions" and not positions:
            continue
        change = InterventionSettings(decoder_input=kind)
        yield Switch(change, f"decoder_input={kind}")
        if kind in TOKENS_ALONE:
            yield Switch(change, "", dropout=True)


@contextmanager
def dropping(model: Transformer, seed: int, wanted: bool) -> Iterator[None]:
    """Drop parts of the decoder's input as in training, if that is wanted; a seed, one result."""
    if not wanted:
        yield
        return

    def hook(module: nn.Dropout, inputs: tuple[Tensor, ...], _output: Tensor) -> Tensor:
        return dropout(inputs[0], module.p)

    handle = model.decoder.embed.dropout.register_forward_hook(hook)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        handle.remove()
