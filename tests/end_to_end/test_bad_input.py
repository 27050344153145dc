"""What a person can get wrong in make train: one line that says it, and nothing left behind."""

import gzip
import resource
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch

from qkvtrace.runs import checkpoints
from qkvtrace.runs.folder import Run

Script = Callable[..., CompletedProcess[str]]

LINE = b"we can eat\twir essen\n"
FILES = {
    "one_column.tsv": LINE + b"no tab here\n",
    "three_columns.tsv": LINE + LINE + b"a\tb\tc\n",
    "blank_target.tsv": b"a\t \n",
    "latin1.tsv": LINE + "we\tk\xf6nnen\n".encode("latin-1"),
    "latin1.tsv.gz": gzip.compress(LINE + LINE + "we\tk\xf6nnen\n".encode("latin-1")),
    "cut.tsv.gz": gzip.compress(LINE)[:-9],
    "no_gzip.tsv.gz": LINE,
    "empty.tsv": b"",
    "blank.tsv": b"\n \n",
    "empty.tsv.gz": gzip.compress(b""),
    "two.en": b"a\nb\n",
    "one.de": b"a\n",
    "good.tsv": LINE,
}

# Overrides, where {f} is the folder of FILES, and the words that the message has.
CORPORA = {
    "missing file": ("data.train={f}/none.tsv", "expected a text file, found none: {f}/none.tsv"),
    "folder for a file": ("data.train={f}", "found a folder: {f}"),
    "line without a tab": ("data.train={f}/one_column.tsv", "TAB 1 column: {f}/one_column.tsv:2"),
    "line with three columns": (
        "data.train={f}/three_columns.tsv",
        "TAB 3 columns: {f}/three_columns.tsv:3",
    ),
    "sentence without translation": (
        "data.train={f}/blank_target.tsv",
        "target blank {f}/blank_target.tsv:1",
    ),
    "parallel files of different lengths": (
        "data.train=[{f}/two.en,{f}/one.de]",
        "2 {f}/two.en 1 {f}/one.de",
    ),
    "three parallel files": ("data.train=[a,b,c]", "data.train two found 3"),
    "no UTF-8": ("data.train={f}/latin1.tsv", "UTF-8 {f}/latin1.tsv:2"),
    "no UTF-8 in gzip": ("data.train={f}/latin1.tsv.gz", "UTF-8 {f}/latin1.tsv.gz:3"),
    "cut gzip": ("data.train={f}/cut.tsv.gz", "gzip damaged {f}/cut.tsv.gz"),
    "no gzip": ("data.train={f}/no_gzip.tsv.gz", "gzip damaged {f}/no_gzip.tsv.gz"),
    "empty corpus": ("data.train={f}/empty.tsv", "empty corpus: {f}/empty.tsv"),
    "blank corpus": ("data.train={f}/blank.tsv", "empty corpus: {f}/blank.tsv"),
    "empty gzip": ("data.train={f}/empty.tsv.gz", "empty corpus: {f}/empty.tsv.gz"),
    "bad validation file": ("data.valid={f}/one_column.tsv", "{f}/one_column.tsv:2"),
    "all pairs too long": ("data.max_length=1", "data.max_length found 1 all 36 data.train"),
    "unknown language": ("data.source_language=xx9", "language code 'xx9'"),
}
SETTINGS = {
    "no folder for multi30k": ("data=multi30k", "data.folder expected"),
    "unknown key": ("model.wdith=64", "model.wdith no such setting"),
    "unknown new key": ("+colour=red", "colour no such setting"),
    "unknown group choice": ("data=nope", "data=nope eat_drink_read, grammatical, multi30k"),
    "unknown experiment": ("experiment=nope", "experiment=nope article"),
    "no value": ("model.width", "name=value 'model.width'"),
    "unclosed list": ("snapshots.epochs=[1", "name=value 'snapshots.epochs=[1'"),
    "wrong type": ("model.width=wide", "model.width whole number 'wide'"),
    "fraction of a layer": ("model.layers=1.5", "model.layers whole number 1.5"),
    "unknown choice": ("model.norm=pots", "model.norm one of post, pre found 'pots'"),
    "width not divisible by heads": ("model.heads=5", "model.width multiple 5 found 64"),
    "dropout above 1": ("model.dropout=1.5", "model.dropout < 1 found 1.5"),
    "negative epochs": ("training.epochs=-3", "training.epochs 1 or more found -3"),
    "negative learning rate": ("training.learning_rate=-1", "training.learning_rate found -1"),
    "snapshot beyond the last epoch": ("snapshots.epochs=[0,31]", "snapshots.epochs 30 found 31"),
    "sentence longer than the positions": ("model.max_positions=6", "model.max_positions found 6"),
    "resume of no folder": ("resume={f}/none", "run folder found none: {f}/none"),
    "resume of no run": ("resume={f}", "run folder found none: {f}"),
    "resume of a file": ("resume={f}/good.tsv", "run folder found none: {f}/good.tsv"),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


def assert_one_line(done: CompletedProcess[str], words: str) -> None:
    """The script failed with nothing but one line on stderr, which has these words."""
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.strip()
    assert "Traceback" not in line
    missing = [word for word in words.split() if word not in line]
    assert not missing, line


@pytest.mark.parametrize(("overrides", "words"), CORPORA.values(), ids=CORPORA.keys())
def test_a_wrong_corpus_is_told_in_one_line_and_leaves_nothing_behind(
    script: Script, files: Path, tmp_path: Path, overrides: str, words: str
) -> None:
    """Said by prepare, which reads it as train does, and starts sooner."""
    done = script("prepare", overrides.format(f=files), f"outputs={tmp_path}/o")
    assert_one_line(done, words.format(f=files))
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(("overrides", "words"), SETTINGS.values(), ids=SETTINGS.keys())
def test_a_wrong_setting_is_told_in_one_line_and_leaves_no_run_behind(
    script: Script, files: Path, tmp_path: Path, overrides: str, words: str
) -> None:
    done = script("train", overrides.format(f=files), f"outputs={tmp_path}/o")
    assert_one_line(done, words.format(f=files))
    assert list(tmp_path.glob("o/train/*")) == list(tmp_path.glob("o/latest")) == []
    assert {path.name for path in files.iterdir()} == set(FILES)


def test_training_with_a_wrong_corpus_leaves_no_run_behind(
    script: Script, files: Path, tmp_path: Path
) -> None:
    done = script("train", f"data.train={files}/one_column.tsv", f"outputs={tmp_path}/o")
    assert_one_line(done, f"TAB 1 column: {files}/one_column.tsv:2")
    assert list(tmp_path.glob("o/**/*")) == [tmp_path / "o" / "train"]


def test_a_multirun_ends_at_its_first_mistake_with_one_line(script: Script, tmp_path: Path) -> None:
    done = script("train", "-m", "model.heads=3,1", f"outputs={tmp_path}/o")
    assert_one_line(done, "model.width multiple 3 found 64")
    assert [path.name for path in tmp_path.glob("o/train/*/*")] == ["multirun.yaml"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none_is_told_in_one_line(script: Script, tmp_path: Path) -> None:
    done = script("train", "training.device=cuda", f"outputs={tmp_path}/o")
    assert_one_line(done, "CUDA found none auto cpu")
    assert not list(tmp_path.glob("o/train/*"))


def test_outputs_within_a_file_are_told_in_one_line(script: Script, files: Path) -> None:
    done = script("train", f"outputs={files}/good.tsv/o")
    assert_one_line(done, f"Not a directory: {files}/good.tsv/o")


def test_full_error_shows_the_traceback_too(script: Script, tmp_path: Path) -> None:
    done = script(
        "train", "model.heads=5", f"outputs={tmp_path}", environment={"HYDRA_FULL_ERROR": "1"}
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "model.width: expected a multiple of model.heads = 5, found 64" in done.stderr


def test_outputs_that_cannot_be_written_are_told_in_one_line(
    script: Script, disk: Callable[[str], Path]
) -> None:
    folder = disk("ro")
    assert_one_line(script("train", f"outputs={folder}/o"), f"Read-only {folder}/o")


def test_a_disk_that_is_full_while_preparing_is_told_in_one_line(
    script: Script, disk: Callable[[str], Path]
) -> None:
    folder = disk("size=8k")
    (folder / "filler").write_bytes(bytes(8192))
    done = script("train", f"outputs={folder}")
    assert_one_line(done, f"No space left on device: {folder}/prepared/")
    assert list(folder.glob("prepared/*")) == list(folder.glob("train/*")) == []


def test_a_disk_that_fills_up_while_training_leaves_the_last_checkpoint(
    script: Script, disk: Callable[[str], Path]
) -> None:
    folder = disk("size=12m")
    done = script("train", f"outputs={folder}", "training.epochs=40", "snapshots.tensorboard=false")
    assert done.returncode == 1
    assert done.stdout == ""
    *progress, line = done.stderr.splitlines()
    assert all(line.startswith("epoch ") for line in progress)
    run = Run.open(folder / "latest")
    assert line.startswith(f"No space left on device: {run.folder}/")
    assert checkpoints.load(run.checkpoints, "latest").state["epoch"] >= 1
    assert not list(folder.rglob("*.tmp"))

    disk("remount,size=100m")
    resumed = script("train", f"resume={run.folder}")
    assert resumed.returncode == 0, resumed.stderr


def test_an_events_file_that_may_not_grow_further_is_told_in_one_line(
    script: Script, tmp_path: Path
) -> None:
    """TensorBoard writes it in a thread, whose traceback nobody wants to see."""
    small = ("data.probes=[i can eat]", "model.width=8", "model.feed_forward=8")
    limit = 150_000
    done = script(
        "train",
        *small,
        f"outputs={tmp_path}",
        f"snapshots.epochs=[{','.join(map(str, range(31)))}]",
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1
    assert done.stdout == ""
    *progress, line = done.stderr.splitlines()
    assert all(line.startswith("epoch ") for line in progress)
    assert line.startswith("File too large")
    run = Run.open(tmp_path / "latest")
    (events,) = run.folder.glob("events.*")
    assert events.stat().st_size == limit
    assert checkpoints.load(run.checkpoints, "latest").state["epoch"] >= 1
