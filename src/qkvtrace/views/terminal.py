"""Tables in the terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qkvtrace.translation.translator import Translation


def print_steps(translation: Translation) -> None:
    """Print what each step of a translation chose from, likeliest first, with probabilities."""
    if not translation.steps:
        return
    table = Table(title=Text(f"{' '.join(translation.source)} → {translation}"))
    table.add_column("step", justify="right")
    for rank in range(len(translation.steps[0])):
        table.add_column("chosen" if rank == 0 else f"{rank + 1}.", no_wrap=True)
    for number, step in enumerate(translation.steps, start=1):
        table.add_row(str(number), *(Text(f"{token} {p:.3f}") for token, p in step))
    console = Console()
    console.print(table, width=None if console.is_terminal else 200, crop=False)
