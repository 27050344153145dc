"""What is told on the terminal."""

import re
import sys
from collections.abc import Callable

import pytest
import torch

from qkvtrace.model.transformer import Transformer
from qkvtrace.runs.metrics import Metrics
from qkvtrace.settings import TrainingSettings
from qkvtrace.training.loop import EpochEnd
from qkvtrace.training.trainer import Trainer
from qkvtrace.translation.translator import Translation
from qkvtrace.views.progress import Progress
from qkvtrace.views.terminal import print_alignment, print_steps


def cells(printed: str, mark: str = "│") -> list[list[str]]:
    """The cells of each row of the tables printed, without their headings."""
    rows = [line.split(mark)[1:-1] for line in printed.splitlines() if line[:1] == mark]
    return [[cell.strip() for cell in row] for row in rows]


def test_a_table_has_a_row_for_each_step_likeliest_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = [[("[b]wir[/b]", 0.75), ("<unk>", 0.125)], [("<eos>", 0.5), ("essen", 0.25)]]
    print_steps(Translation(["we", "eat"], ["[b]wir[/b]"], [], steps, [4, 3]))
    out = capsys.readouterr().out
    assert out.splitlines()[0].strip() == "we eat → [b]wir[/b]"
    assert cells(out) == [
        ["1", "[b]wir[/b] 0.750", "<unk> 0.125"],
        ["2", "<eos> 0.500", "essen 0.250"],
    ]


def test_an_empty_translation_has_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_steps(Translation([], [], [], [], []))
    assert capsys.readouterr().out == ""


MARKED = Translation(
    ["we", "[red]x[/red]"],
    ["[b]wir[/b]"],
    [],
    [[("[b]wir[/b]", 0.75)], [("<eos>", 0.5)]],
    [4, 3],
)


def test_alignment_is_a_table_for_each_head_whose_rows_say_what_was_given_and_chosen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    weights = torch.tensor([[0.0, 0.25, 0.125, 0.625], [1.0, 0.0, 0.0, 0.0]])
    print_alignment(MARKED, torch.stack([weights, weights.flip(1)])[None])
    out = capsys.readouterr().out
    titles = [line.strip() for line in out.splitlines() if "Cross" in line]
    assert titles == [f"Cross-attention, layer 0, head {head}" for head in (0, 1)]
    assert cells(out, "┃") == 2 * [["step", "<sos>", "we", "[red]x[/red]", "<eos>"]]
    assert cells(out) == [
        ["1) <sos> -> [b]wir[/b]", "0.00", "0.25", "0.12", "0.62"],
        ["2) [b]wir[/b] -> <eos>", "1.00", "0.00", "0.00", "0.00"],
        ["1) <sos> -> [b]wir[/b]", "0.62", "0.12", "0.25", "0.00"],
        ["2) [b]wir[/b] -> <eos>", "0.00", "0.00", "0.00", "1.00"],
    ]
    assert "\x1b" not in out


def test_of_many_heads_the_last_are_shown_and_the_others_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_alignment(MARKED, torch.full((3, 5, 2, 4), 0.25))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line[-15:] for line in lines if "Cross" in line] == [
        *(f"layer 1, head {head}" for head in (2, 3, 4)),
        *(f"layer 2, head {head}" for head in range(5)),
    ]
    assert lines[-1] == "7 heads before these are left out"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make stdout, which capsys replaces when a test begins, a terminal of 60 columns."""

    def make() -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in {"COLUMNS": "60", "TERM": "xterm", "COLORTERM": "truecolor"}.items():
            monkeypatch.setenv(name, value)

    return make


def test_on_a_terminal_weights_are_shaded_from_white_to_dark_blue_under_ink_that_can_be_read(
    capsys: pytest.CaptureFixture[str], terminal: Callable[[], None]
) -> None:
    terminal()
    print_alignment(MARKED, torch.tensor([[[[0.0, 0.5, 0.75, 1.0]] * 2]]))
    out = capsys.readouterr().out
    dark, light = "38;2;28;32;38", "38;2;255;255;255"
    for ink, paper, weight in (
        (dark, "48;2;255;255;255", "0.00"),
        (dark, "48;2;132;152;181", "0.50"),
        (light, "48;2;70;100;144", "0.75"),
        (light, "48;2;8;48;107", "1.00"),
    ):
        assert re.search(rf"\x1b\[{ink};{paper}m +{weight} +\x1b\[0m", out)


def test_a_table_too_wide_for_the_terminal_is_continued_in_another(
    capsys: pytest.CaptureFixture[str], terminal: Callable[[], None]
) -> None:
    terminal()
    source = [f"word{index}" for index in range(11)]
    translation = Translation(source, [], [], [[("wir", 0.5)], [("<eos>", 0.5)]], [4, 3])
    print_alignment(translation, torch.arange(26).reshape(1, 1, 2, 13) / 26)
    out = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)  # without colours
    assert max(map(len, out.splitlines())) <= 60
    headings, rows = cells(out, "┃"), cells(out)
    assert [token for row in headings for token in row[1:]] == ["<sos>", *source, "<eos>"]
    assert all(row[0] == "step" for row in headings)
    assert len(headings) == 3
    for index, label in enumerate(["1) <sos> -> wir", "2) wir -> <eos>"]):
        mine = rows[index::2]
        assert all(row[0] == label for row in mine)
        expected = [f"{(13 * index + column) / 26:.2f}" for column in range(13)]
        assert [cell for row in mine for cell in row[1:]] == expected


def test_progress_is_a_line_an_epoch_on_stderr_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
    transformer: Callable[..., Transformer],
    training_settings: Callable[..., TrainingSettings],
) -> None:
    metrics = Metrics(
        epoch=3,
        step=12,
        train_loss=1.25,
        valid_loss=0.5,
        valid_ppl=1.65,
        exact_match=0.25,
        learning_rate=1e-3,
        tokens_per_second=900.0,
        seconds=0.5,
    )
    with Progress(Trainer(transformer(), training_settings(), last_step=12)) as progress:
        progress.after_step()
        progress.at_epoch_end(EpochEnd(metrics, 1.0))
    out, err = capsys.readouterr()
    assert out == ""
    assert " ".join(err.split()) == (
        "epoch 3 step 12 train_loss 1.250 valid_loss 0.500 exact_match 0.250"
    )
