"""What is told on the terminal."""

from collections.abc import Callable

import pytest

from qkvtrace.model.transformer import Transformer
from qkvtrace.runs.metrics import Metrics
from qkvtrace.settings import TrainingSettings
from qkvtrace.training.loop import EpochEnd
from qkvtrace.training.trainer import Trainer
from qkvtrace.translation.translator import Translation
from qkvtrace.views.progress import Progress
from qkvtrace.views.terminal import print_steps


def test_a_table_has_a_row_for_each_step_likeliest_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = [[("[b]wir[/b]", 0.75), ("<unk>", 0.125)], [("<eos>", 0.5), ("essen", 0.25)]]
    print_steps(Translation(["we", "eat"], ["[b]wir[/b]"], [], steps))
    out = capsys.readouterr().out
    title, *rest = out.splitlines()
    assert title.strip() == "we eat → [b]wir[/b]"
    rows = [line.replace("│", "|").split("|") for line in rest if "0." in line]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["1", "[b]wir[/b] 0.750", "<unk> 0.125"],
        ["2", "<eos> 0.500", "essen 0.250"],
    ]


def test_an_empty_translation_has_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_steps(Translation([], [], [], []))
    assert capsys.readouterr().out == ""


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
