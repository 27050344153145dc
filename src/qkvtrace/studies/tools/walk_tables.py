"""The matrices of a walk through one head as tables."""

from collections.abc import Sequence

from qkvtrace.studies.answer import Cell, Heatmap, Table
from qkvtrace.studies.tools import weights as attention
from qkvtrace.studies.tools.walked import Walked, difference

PARAMETERS = ("W_Q", "W_K", "W_V", "W_O")


def steps(where: str, walk: Walked, before: Walked) -> Table:
    """Each step in numbers; before: the same walk at an earlier epoch."""
    rows: list[tuple[Cell, ...]] = []
    for number, (name, step) in enumerate(walk.steps.items(), start=1):
        values, shape = step.finite, " × ".join(map(str, step.value.shape))
        spread = step.deviation, before.steps[name].deviation
        numbers = float(values.mean()), *spread, float(values.min()), float(values.max())
        rows.append((number, name, step.formula, shape, *numbers, difference(step, walk.taps)))
    return Table(
        "steps",
        f"Each step, its shape and its numbers. {where}",
        (
            "step",
            "name",
            "what it is",
            "shape",
            "mean",
            "standard deviation",
            f"standard deviation at epoch {before.epoch}",
            "smallest",
            "largest",
            "largest difference from the model",
        ),
        rows,
    )


def vectors(name: str, title: str, walk: Walked, matrices: Sequence[str], most: int) -> Table:
    """Those of some matrices that there are, a row a word; most: dimensions shown."""
    rows: list[tuple[Cell, ...]] = [
        (matrix, position, token, dimension, value)
        for matrix in matrices
        if matrix in walk.steps
        for position, (token, vector) in enumerate(
            zip(walk.side(matrix), walk.steps[matrix].value.tolist(), strict=True)
        )
        for dimension, value in enumerate(vector[:most])
    ]
    return Table(
        name,
        title,
        ("matrix", "position", "word", "dimension", "value"),
        rows,
        Heatmap(
            row="position",
            row_label="word",
            column="dimension",
            column_title="dimension",
            value="value",
            scale="number",
            panels=("matrix",),
        ),
    )


def projections(title: str, walk: Walked, most: int) -> Table:
    """The parameters; most: dimensions shown at each side."""
    rows: list[tuple[Cell, ...]] = [
        (name, i, j, value)
        for name in PARAMETERS
        for i, row in enumerate(walk.steps[name].value[:most, :most].tolist())
        for j, value in enumerate(row)
    ]
    return Table(
        "projections",
        title,
        ("matrix", "from dimension", "to dimension", "value"),
        rows,
        Heatmap(
            row="from dimension",
            column="to dimension",
            row_title="from dimension",
            column_title="to dimension",
            value="value",
            scale="number",
            panels=("matrix",),
        ),
    )


def scores(where: str, walk: Walked) -> Table:
    """Before and after the division."""
    rows: list[tuple[Cell, ...]] = [
        (name, *row)
        for name in ("Q Kᵀ", "scores")
        for row in attention.rows(walk.steps[name].value, walk.queries, walk.keys)
    ]
    columns = ("matrix", *attention.COLUMNS[:-1], "score")
    picture = attention.picture("matrix", value="score", scale="number")
    return Table("scores", f"Before the softmax. {where}", columns, rows, picture)


def weights(where: str, walk: Walked) -> Table:
    """After the softmax."""
    rows = list(attention.rows(walk.steps["weights"].value, walk.queries, walk.keys))
    title = f"Weights, after the softmax: each row sums to 1. {where}"
    return Table("weights", title, attention.COLUMNS, rows, attention.picture())
