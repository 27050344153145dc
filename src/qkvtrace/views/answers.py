"""A study's answer in the terminal: its sentences, its tables, matrices as matrices."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from qkvtrace.studies.answer import Answer, Cell, Heatmap, Table
from qkvtrace.studies.study import Study

MOST_ROWS = 24  # of a table without end; its file has them all
MOST_PANELS = 6


def print_answer(study: Study, answer: Answer, folder: str) -> None:
    """Print what was asked and what came out; `folder` is where all of it lies."""
    console = Console(width=None if sys.stdout.isatty() else 10_000)  # a pipe is wide enough
    console.print()
    console.print(Text(study.title, style="bold"))
    console.print(Text(study.question))
    for table in answer.tables:
        for grid in _grids(table):
            console.print(grid)
    for line in (*answer.says, *(f"note: {note}" for note in answer.notes)):
        console.print(Text(line))
    console.print(Text(f"all of it: {folder}", style="dim"))


def _grids(table: Table) -> Iterable[Grid]:
    if isinstance(table.picture, Heatmap):
        yield from _matrices(table, table.picture)
    else:
        rows = [[_text(cell) for cell in row] for row in table.rows[:MOST_ROWS]]
        left = len(table.rows) - len(rows)
        caption = f"and {left} rows more in {table.name}.csv" if left else None
        yield _grid(table.title, table.columns, rows, caption)


def _matrices(table: Table, picture: Heatmap) -> Iterable[Grid]:
    """A grid for each panel, at most MOST_PANELS of them."""
    at = table.columns.index
    panels: dict[tuple[Cell, ...], list[tuple[Cell, ...]]] = {}
    for row in table.rows:
        panels.setdefault(tuple(row[at(column)] for column in picture.panels), []).append(row)
    left = len(panels) - MOST_PANELS
    for number, (panel, rows) in enumerate(list(panels.items())[:MOST_PANELS], start=1):
        across = dict.fromkeys(row[at(picture.column)] for row in rows)
        down = dict.fromkeys(row[at(picture.row)] for row in rows)
        across_labels = {
            r[at(picture.column)]: r[at(picture.column_label or picture.column)] for r in rows
        }
        down_labels = {r[at(picture.row)]: r[at(picture.row_label or picture.row)] for r in rows}
        cells = {(r[at(picture.row)], r[at(picture.column)]): r[at(picture.value)] for r in rows}
        title = table.title
        if panel:
            named = zip(picture.panels, panel, strict=True)
            title += ": " + ", ".join(f"{name} {_text(value)}" for name, value in named)
        yield _grid(
            title,
            ["", *(_text(across_labels[column]) for column in across)],
            [
                [_text(down_labels[row]), *(_text(cells.get((row, column))) for column in across)]
                for row in down
            ],
            f"and {left} more in {table.name}.csv" if left > 0 and number == MOST_PANELS else None,
        )


def _grid(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str | None
) -> Grid:
    grid = Grid(title=Text(title), caption=caption and Text(caption), title_justify="left")
    for column in columns:
        grid.add_column(Text(column))
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
