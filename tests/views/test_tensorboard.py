"""TensorBoard's files, read back with TensorBoard's own reader and renderer."""

import html
import re
import string
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from qkvtrace.corpus.prepared import Corpus
from qkvtrace.model.transformer import Transformer
from qkvtrace.runs.metrics import Metrics
from qkvtrace.settings import (
    DataSettings,
    ModelSettings,
    Settings,
    SnapshotSettings,
    TrainingSettings,
)
from qkvtrace.snapshots.probes import Sentence, Snapshot, observe, probes
from qkvtrace.training.loop import EpochEnd
from qkvtrace.views.tensorboard import Board, translation_table


def cells(table: str) -> list[list[str]]:
    """What a person sees in each row of a Markdown table in TensorBoard."""
    with warnings.catch_warnings():  # its copy of html5lib says that it is deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        from tensorboard.plugin_util import markdown_to_safe_html

    page = markdown_to_safe_html(table)
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    found = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    assert "<" not in "".join(cell for row in found for cell in row)
    return [[html.unescape(cell) for cell in row] for row in found]


def snapshot(*sentences: Sentence) -> Snapshot:
    return Snapshot(3, 12, list(sentences), {})


def sentence(source: str, translation: str, reference: str | None) -> Sentence:
    tokens = ["<sos>", *source.split(), "<eos>"]
    return Sentence(tokens, [], translation.split(), reference.split() if reference else None)


def test_a_table_has_a_row_a_sentence_and_says_which_are_right() -> None:
    table = translation_table(
        snapshot(
            sentence("we eat", "wir essen", "wir essen"),
            sentence("it", "es es", "es"),
            sentence("eat we", "", None),
        )
    )
    assert cells(table) == [
        ["", "source", "reference", "translation", ""],
        ["1", "we eat", "wir essen", "wir essen", "✓"],
        ["2", "it", "es", "es es", "✗"],
        ["3", "eat we", "(none)", "", ""],
    ]


@pytest.mark.parametrize(
    "text",
    [
        *string.punctuation,
        "<unk> <pad>",
        "<b>bold</b> <script>",
        "&lt; &amp;lt; &#60;",
        "*a* _b_ __c__ **d** ~~e~~ `f`",
        "[a](http://b.c) ![d](e) <http://f.g>",
        "a | b \\| c \\\\",
        "# 1. - + > 1)",
    ],
)
def test_a_table_shows_any_text_as_it_is(text: str) -> None:
    table = translation_table(snapshot(sentence(f"a {text} b", f"{text} c", f"d {text}")))
    shown = ["1", f"a {text} b", f"d {text}", f"{text} c", "✗"]
    assert cells(table)[1] == shown


def end(epoch: int) -> EpochEnd:
    metrics = Metrics(
        epoch=epoch,
        step=4 * epoch,
        train_loss=3.0 / epoch,
        valid_loss=2.0 / epoch,
        valid_ppl=7.5,
        exact_match=0.25,
        learning_rate=1e-3,
        tokens_per_second=900.0,
        seconds=0.5,
    )
    return EpochEnd(metrics, 1.5)


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"images": 0, "tensors": 0})
    return events.Reload()


def test_scalars_carry_their_epoch(tmp_path: Path) -> None:
    board = Board(tmp_path, 0)
    for epoch in (1, 2):
        board.scalars(end(epoch))
    events = read(tmp_path)
    tags = events.Tags()["scalars"]
    assert set(tags) == {
        "loss/train",
        "loss/valid",
        "quality/perplexity",
        "quality/exact_match",
        "training/learning_rate",
        "training/tokens_per_second",
        "training/gradient_norm",
    }
    losses = [(event.step, event.value) for event in events.Scalars("loss/train")]
    assert losses == [(1, 3.0), (2, 1.5)]
    board.writer.close()


def test_a_snapshot_becomes_a_figure_for_each_site_layer_and_head(
    tmp_path: Path, transformer: Callable[..., Transformer], corpus: Corpus
) -> None:
    seen = observe(transformer(), probes(corpus)[0], corpus.source, corpus.target, 3, 12)
    board = Board(tmp_path, 0)
    board.snapshot(seen)
    board.writer.close()
    events = read(tmp_path)
    assert set(events.Tags()["images"]) == {
        f"attention_{site}/layer_{layer}_head_{head}"
        for site in ("encoder_self", "decoder_self", "cross")
        for layer in range(2)
        for head in range(2)
    }
    (image,) = events.Images("attention_cross/layer_1_head_0")
    assert image.step == 3
    assert image.encoded_image_string.startswith(b"\x89PNG")
    (text,) = events.Tensors("translations/text_summary")
    assert text.tensor_proto.string_val[0].decode() == translation_table(seen)


def test_what_an_earlier_process_wrote_of_the_same_epochs_is_not_shown(tmp_path: Path) -> None:
    board = Board(tmp_path, 0)
    for epoch in (1, 2, 3):
        board.scalars(end(epoch))
    board.writer.close()
    board = Board(tmp_path, 3)
    board.scalars(end(3))
    board.writer.close()
    assert [event.step for event in read(tmp_path).Scalars("loss/train")] == [1, 2, 3]


def test_hyper_parameters_stand_beside_the_final_metrics(
    tmp_path: Path,
    data_settings: Callable[..., DataSettings],
    model_settings: Callable[..., ModelSettings],
    training_settings: Callable[..., TrainingSettings],
) -> None:
    settings = Settings(
        data=data_settings(),
        model=model_settings(),
        training=training_settings(),
        snapshots=SnapshotSettings(epochs=None, every=1, parameters=True, tensorboard=True),
        outputs="outputs",
        resume=None,
    )
    board = Board(tmp_path, 0)
    board.scalars(end(3))
    board.close(settings, end(3).metrics)
    events = read(tmp_path)
    assert {"_hparams_/experiment", "_hparams_/session_start_info"} <= set(events.summary_metadata)
    (loss,) = events.Scalars("loss/valid")
    assert (loss.step, loss.value) == (3, pytest.approx(2 / 3))
