"""Answers in the terminal: tables as tables, matrices as matrices, text as text."""

import pytest

from qkvtrace.studies.answer import Answer, Cell, Heatmap, Lines, Picture, Table
from qkvtrace.studies.word_order import WordOrder
from qkvtrace.views.answers import MOST_DRAWN, MOST_ROWS, print_answer

STUDY = WordOrder(sentences=("a",))


def printed(
    capsys: pytest.CaptureFixture[str],
    rows: list[tuple[Cell, ...]],
    columns: tuple[str, ...],
    picture: Picture | None = None,
) -> list[str]:
    table = Table("numbers", "Numbers", columns, rows, picture)
    print_answer(STUDY, Answer(["It is so."], [table], ["not quite"]), "outputs/run/studies/x")
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


def cells(lines: list[str]) -> list[list[str]]:
    """What stands between the lines of the grids."""
    rows = [line.strip("│┃").replace("┃", "│") for line in lines if line[:1] in ("│", "┃")]
    return [[cell.strip() for cell in row.split("│")] for row in rows]


def test_an_answer_says_what_was_asked_what_came_out_and_where_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capsys, [("a", 1)], ("word", "count"))
    for line in (
        STUDY.title,
        STUDY.question,
        "Numbers",
        "It is so.",
        "note: not quite",
        "all of it: outputs/run/studies/x",
    ):
        assert line in lines
    assert cells(lines) == [["word", "count"], ["a", "1"]]


def test_numbers_have_three_decimals_and_what_is_missing_is_blank(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cells(printed(capsys, [(0.12345, None)], ("x", "y")))[1] == ["0.123", ""]


def test_a_long_table_says_how_much_of_it_is_in_its_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for picture, most in ((None, MOST_ROWS), (Lines(x="x", y="y", colour="x"), MOST_DRAWN)):
        lines = printed(capsys, [(i, 0.5) for i in range(100)], ("x", "y"), picture)
        assert len(cells(lines)) == 1 + most
        assert f"and {100 - most} rows more in numbers.csv" in lines


def test_cells_become_a_matrix_for_each_panel_with_tokens_at_its_sides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    picture = Heatmap(
        row="t",
        row_label="query",
        column="s",
        column_label="key",
        value="weight",
        scale="weight",
        panels=("epoch",),
    )
    rows: list[tuple[Cell, ...]] = [
        (epoch, t, "wir", s, key, epoch + t / 10 + s / 100)
        for epoch in (0, 1)
        for t in (0, 1)
        for s, key in enumerate(("we", "eat", "we"))
    ]
    lines = printed(capsys, rows, ("epoch", "t", "query", "s", "key", "weight"), picture)
    assert "Numbers: epoch 0" in lines
    assert cells(lines) == [
        ["", "we", "eat", "we"],
        ["wir", "0.000", "0.010", "0.020"],
        ["wir", "0.100", "0.110", "0.120"],
        ["", "we", "eat", "we"],
        ["wir", "1.000", "1.010", "1.020"],
        ["wir", "1.100", "1.110", "1.120"],
    ]


def test_markup_in_a_token_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert cells(printed(capsys, [("[red]x[/]", "[bold")], ("[b]", "y"))) == [
        ["[b]", "y"],
        ["[red]x[/]", "[bold"],
    ]
