"""A study's answer in the terminal: its sentences, its tables, matrices as matrices."""

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table as Grid
from rich.text import Text

from qkvtrace.studies.answer import Answer, Cell, Heatmap, Table
from qkvtrace.studies.study import Study
from qkvtrace.views.terminal import console

MOST_ROWS = 40  # of a table; its file has them all
MOST_DRAWN = 8  # of one whose rows are for drawing
MOST_PANELS = 12


def print_answer(study: Study, answer: Answer, folder: str) -> None:
    """Print what was asked and what came out; `folder` is where all of it lies."""
    terminal = console()
    terminal.print()
    terminal.print(Text(study.title, style="bold"))
    terminal.print(Text(study.question))
    for line in (*(f"note: {note}" for note in answer.notes), *answer.says):
        terminal.print(Text(line))
    for table in answer.tables:
        for part in _parts(table):
            terminal.print(part)
    terminal.print(Text(f"all of it: {folder}", style="dim"))


def _parts(table: Table) -> Iterator[Grid | Text]:
    """What is printed of a table: grids under their titles, and what was left out."""
    if isinstance(table.picture, Heatmap):
        yield from _matrices(table, table.picture)
        return
    most = MOST_ROWS if table.picture is None else MOST_DRAWN
    yield from _titled(table.title, table.columns, table.rows[:most])
    left = len(table.rows) - most
    if left > 0:
        yield Text(f"and {left} rows more in {table.name}.csv")


def _matrices(table: Table, picture: Heatmap) -> Iterator[Grid | Text]:
    """A grid for each panel, at most MOST_PANELS of them."""
    records = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    panels: dict[tuple[Cell, ...], list[dict[str, Cell]]] = {}
    for record in records:
        panels.setdefault(tuple(record[name] for name in picture.panels), []).append(record)
    for panel, cells in list(panels.items())[:MOST_PANELS]:
        down = {cell[picture.row]: cell[picture.row_label or picture.row] for cell in cells}
        across = {
            cell[picture.column]: cell[picture.column_label or picture.column] for cell in cells
        }
        values = {(cell[picture.row], cell[picture.column]): cell[picture.value] for cell in cells}
        named = [f"{name} {_text(cell)}" for name, cell in zip(picture.panels, panel, strict=True)]
        yield from _titled(
            ": ".join([table.title, *([", ".join(named)] if named else [])]),
            ["", *map(_text, across.values())],
            [(label, *(values.get((row, c)) for c in across)) for row, label in down.items()],
        )
    if len(panels) > MOST_PANELS:
        yield Text(f"and {len(panels) - MOST_PANELS} more in {table.name}.csv")


def _titled(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> Iterator[Grid | Text]:
    yield Text(f"\n{title}")
    grid = Grid()
    for column in columns:
        grid.add_column(Text(column))
    for row in rows:
        grid.add_row(*(Text(_text(cell)) for cell in row))
    yield grid


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
