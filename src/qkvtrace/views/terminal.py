"""Tables in the terminal."""

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qkvtrace.translation.translator import Translation


def print_steps(translation: Translation) -> None:
    """Print what each step of a translation chose from, likeliest first, with probabilities."""
    if not translation.steps:
        return
    table = Table(title=Text(f"{' '.join(translation.source)} → {translation}"))
    table.add_column("step", justify="right", min_width=4)
    for rank in range(len(translation.steps[0])):
        table.add_column("chosen" if rank == 0 else f"{rank + 1}.", no_wrap=True)
    for number, step in enumerate(translation.steps, start=1):
        table.add_row(str(number), *(Text(f"{token} {p:.3f}") for token, p in step))
    Console(width=None if sys.stdout.isatty() else 10_000).print(table)  # a pipe is wide enough
