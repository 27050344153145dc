"""Tables in the terminal. Tokens are a user's data: no markup in them is interpreted."""

import sys
from itertools import pairwise

from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor

from qkvtrace.translation.translator import Translation

MOST_HEADS = 8
LIGHT_INK_FROM = 0.6  # the weight from which white reads better than dark ink


def print_steps(translation: Translation) -> None:
    """Print what each step of a translation chose from, likeliest first, with probabilities."""
    if not translation.steps:
        return
    table = Table(title=Text(f"{' '.join(translation.source)} → {translation}"), padding=0)
    table.add_column("step", justify="right", no_wrap=True)
    for rank in range(len(translation.steps[0])):
        table.add_column("chosen" if rank == 0 else f"{rank + 1}.")
    for number, step in enumerate(translation.steps, start=1):
        table.add_row(str(number), *(Text(f"{token} {p:.3f}") for token, p in step))
    console().print(table)


def print_alignment(translation: Translation, alignment: Tensor) -> None:
    """Print what each step of a translation looked at, a table for each head.

    Args:
        translation: of a sentence that is not empty.
        alignment: (layer, head, step, source position), the weights of its cross-attention. Of
            more than MOST_HEADS heads, only the last are shown.
    """
    source = ["<sos>", *translation.source, "<eos>"]
    chosen = [step[0][0] for step in translation.steps]
    steps = [
        f"{number}) {given} -> {token}"
        for number, (given, token) in enumerate(pairwise(["<sos>", *chosen]), start=1)
    ]
    heads = [(layer, head) for layer in range(len(alignment)) for head in range(len(alignment[0]))]
    terminal = console()
    widest = max(6, *map(cell_len, source))
    fit = max(1, (terminal.width - max(map(cell_len, steps)) - 2) // (widest + 1))  # columns
    for layer, head in heads[-MOST_HEADS:]:
        for columns in (range(len(source))[at : at + fit] for at in range(0, len(source), fit)):
            table = Table(title=f"Cross-attention, layer {layer}, head {head}", padding=0)
            table.add_column("step", no_wrap=True)
            for column in columns:
                table.add_column(Text(source[column]), justify="center", min_width=6, no_wrap=True)
            for label, weights in zip(steps, alignment[layer, head].tolist(), strict=True):
                shaded = (Text(f"{weights[c]:.2f}", _shade(weights[c])) for c in columns)
                table.add_row(Text(label), *shaded)
            terminal.print(table)
    if len(heads) > MOST_HEADS:
        terminal.print(f"{len(heads) - MOST_HEADS} heads before these are left out")


def _shade(weight: float) -> Style:
    """White at 0 to dark blue at 1, as in the figures, with ink that can be read on it."""
    from qkvtrace.views.figures import DARK_BLUE, INK, PAPER  # which loads Pillow

    share = min(max(weight, 0.0), 1.0)
    blend = [round(p * (1 - share) + b * share) for p, b in zip(PAPER, DARK_BLUE, strict=True)]
    ink = PAPER if share >= LIGHT_INK_FROM else INK
    return Style(color=Color.from_rgb(*ink), bgcolor=Color.from_rgb(*blend))


def console() -> Console:
    """Where tables are printed."""
    return Console(width=None if sys.stdout.isatty() else 10_000)  # a pipe is wide enough
