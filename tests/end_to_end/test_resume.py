"""A training that was stopped, however it was stopped, goes on as if it never had been."""

import csv
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Any

import pytest
import safetensors
import yaml
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from qkvtrace.command import CHANGEABLE
from qkvtrace.runs import checkpoints
from qkvtrace.snapshots.store import Store

Script = Callable[..., CompletedProcess[str]]
Start = Callable[..., Popen[str]]

EPOCHS = 5
LONG = (
    "model.dropout=0.2",
    f"training.epochs={EPOCHS}",
    f"snapshots.epochs=[0,2,{EPOCHS}]",
)
SMALL = (
    "training.epochs=2",
    "training.steps=3",
    "training.batch_size=5",
    "model.width=8",
    "model.feed_forward=8",
    "snapshots.tensorboard=false",
    "snapshots.every=0",
    "snapshots.epochs=[0,1]",
)


@pytest.fixture(scope="module", autouse=True)
def killed_everywhere(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, list[Popen[str]]]]:
    """forks.py at work in a folder while the other tests here run: it takes longest."""
    folder = tmp_path_factory.mktemp("killed")
    lines = (root / "data" / "grammatical.train.tsv").read_text(encoding="utf-8").splitlines()
    (folder / "train.tsv").write_text("\n".join(lines[:10]), encoding="utf-8")
    (folder / "valid.tsv").write_text("\n".join(lines[:2]), encoding="utf-8")
    corpus = [f"data.{split}={folder}/{split}.tsv" for split in ("train", "valid")]
    driver = [sys.executable, str(Path(__file__).parent / "forks.py"), str(folder)]
    with (folder / "err").open("w") as err:
        halves = [
            Popen(
                [*driver, first, "2", *corpus, "data.probes=null", *SMALL],
                cwd=root,
                stdout=subprocess.DEVNULL,
                stderr=err,
                text=True,
            )
            for first in ("1", "2")
        ]
    yield folder, halves
    for half in halves:
        half.kill()
        half.wait()


@pytest.fixture(scope="module")
def reference(
    script: Script, pairs: list[str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What an uninterrupted training comes to."""
    outputs = tmp_path_factory.mktemp("uninterrupted")
    done = script("train", *pairs, *LONG, f"outputs={outputs}", "snapshots.tensorboard=false")
    assert done.returncode == 0, done.stderr
    return contents(outputs / "latest")


def contents(run: Path) -> dict[str, Any]:
    """Everything in a run that no interruption may change."""
    latest = run / "checkpoints" / "latest"
    files = ("model.safetensors", "training.safetensors", "state.json")
    store = Store(run / "snapshots")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"], line["tokens_per_second"]
    return {
        "checkpoints": {
            link: (run / "checkpoints" / link).resolve().name for link in ("best", "latest")
        },
        "metrics": lines,
        "vocabularies": [
            (run / f"vocabulary.{side}.json").read_text() for side in ("source", "target")
        ],
        **{file: (latest / file).read_bytes() for file in files},
        "snapshots": {
            epoch: {name: v.numpy().tobytes() for name, v in store.load(epoch).values.items()}
            for epoch in store.epochs()
        },
    }


def assert_whole(run: Path) -> None:
    """Whatever stands under a final name can be read, and checkpoints are what was written."""
    for path in run.rglob("*"):
        if path.is_dir() or any(part.endswith(".tmp") for part in path.relative_to(run).parts):
            continue
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in path.read_text().splitlines()]
        elif path.suffix == ".yaml":
            assert isinstance(yaml.safe_load(path.read_text()), dict)
        elif path.suffix == ".safetensors":
            with safetensors.safe_open(path, framework="pt") as file:
                assert file.keys()
    for path in (run / "checkpoints").glob("epoch-*"):
        checkpoints.load(run / "checkpoints", path.name)
    for link in (run / "checkpoints" / "latest", run / "checkpoints" / "best"):
        if link.is_symlink():
            checkpoints.load(run / "checkpoints", link.name)


def events(run: Path, tag: str) -> list[int]:
    """The steps that TensorBoard shows; this class is the one that it reads with."""
    accumulator = EventAccumulator(str(run), tensor_size_guidance={"images": 0}).Reload()
    return [event.step for event in accumulator.Tensors(tag)]


def temporary(run: Path) -> list[Path]:
    return list(run.rglob("*.tmp"))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_within_an_epoch_and_the_rest_is_the_same_bit_for_bit(
    script: Script,
    start: Start,
    pairs: list[str],
    reference: dict[str, Any],
    tmp_path: Path,
    number: signal.Signals,
    status: int,
) -> None:
    quiet = "snapshots.tensorboard=false"
    process = start("train", *pairs, *LONG, f"outputs={tmp_path}", quiet)
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate()
    run = (tmp_path / "latest").resolve()
    assert process.returncode == status
    assert out == ""
    stopped = err.splitlines()[-1]
    assert stopped.startswith("stopped after step ")
    assert stopped.endswith(f"to go on: make train ARGS=resume={run}")
    assert "-batch-" in (run / "checkpoints" / "latest").readlink().name
    assert_whole(run)

    resumed = script("train", f"resume={run}")
    assert resumed.returncode == 0, resumed.stderr
    assert contents(run) == reference
    assert not temporary(run)


def test_a_run_killed_again_and_again_becomes_the_same_bit_for_bit(
    script: Script, start: Start, pairs: list[str], reference: dict[str, Any], tmp_path: Path
) -> None:
    chance = random.Random(7)
    run = tmp_path / "run"
    arguments = [*pairs, *LONG, f"outputs={tmp_path}", f"hydra.run.dir={run}"]
    for line, longest in ((True, 0.0), (False, 1.5), (True, 0.15), (False, 1.5), (True, 0.15)):
        process = start("train", *arguments)
        assert process.stderr is not None
        if line:
            process.stderr.readline()
        time.sleep(chance.uniform(0, longest))
        process.kill()
        process.communicate()
        assert_whole(run)
        if (run / "manifest.json").exists():
            arguments = [f"resume={run}"]
    resumed = script("train", *arguments)
    assert resumed.returncode == 0, resumed.stderr
    assert contents(run) == reference
    assert not temporary(run)
    assert events(run, "loss/valid") == list(range(1, EPOCHS + 1))
    assert events(run, "translations/text_summary") == [0, 2, EPOCHS]


def test_a_signal_within_the_very_last_step_loses_nothing(script: Script, tmp_path: Path) -> None:
    """The signal comes while epoch 0 is recorded, and is acted on after the only step."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "def watch(event, arguments):\n"
        "    if event == 'os.rename' and str(arguments[1]).endswith('/epoch-0000.safetensors'):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.addaudithook(watch)\n"
    )
    once = ("training.steps=1", "snapshots.tensorboard=false", f"outputs={tmp_path}")
    first, second = tmp_path / "train" / "first", tmp_path / "train" / "second"
    hook = {"PYTHONPATH": str(tmp_path)}
    stopped = script("train", *once, f"hydra.run.dir={first}", environment=hook)
    assert stopped.returncode == 143, stopped.stderr
    script("train", *once, f"hydra.run.dir={second}")
    assert (tmp_path / "latest").resolve() == second
    resumed = script("train", f"resume={first}")
    assert resumed.returncode == 0, resumed.stderr
    assert contents(first) == contents(second)
    assert (tmp_path / "latest").resolve() == first


@pytest.fixture(scope="module")
def constant(script: Script, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Train some epochs at a rate that does not depend on how many there will be."""

    def train(epochs: int) -> Path:
        outputs = tmp_path_factory.mktemp("constant")
        rate = ("training.schedule=constant", f"training.epochs={epochs}")
        done = script("train", *rate, f"outputs={outputs}")
        assert done.returncode == 0, done.stderr
        return (outputs / "latest").resolve()

    return train


@pytest.fixture(scope="module")
def raised(script: Script, constant: Callable[[int], Path]) -> Path:
    """A finished run of 2 epochs that went on to 4."""
    run = constant(2)
    resumed = script("train", f"resume={run}", "training.epochs=4")
    assert resumed.returncode == 0, resumed.stderr
    return run


def test_a_finished_run_goes_on_when_its_epochs_are_raised(
    raised: Path, constant: Callable[[int], Path]
) -> None:
    assert contents(raised) == contents(constant(4))


def test_the_projector_keeps_the_epochs_before_the_resumption(raised: Path) -> None:
    for name in ("head_vectors", "model_vectors"):
        with (raised / "projector" / f"{name}.tsv").open(encoding="utf-8") as lines:
            rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            assert {int(row["epoch"]) for row in rows} == {0, 1, 2, 4}


def test_tensorboard_keeps_the_epochs_before_the_resumption(raised: Path) -> None:
    assert events(raised, "loss/train") == [1, 2, 3, 4]
    assert events(raised, "translations/text_summary") == [0, 1, 2, 4]


def test_resuming_a_finished_run_changes_nothing_and_prints_its_last_line(
    script: Script, raised: Path
) -> None:
    before = contents(raised)
    done = script("train", f"resume={raised}")
    assert done.returncode == 0
    assert f"{raised.name}: epoch 4, " in done.stdout
    assert done.stderr == ""
    assert contents(raised) == before


def test_a_run_does_not_resume_to_fewer_steps_than_it_has_taken(
    script: Script, raised: Path
) -> None:
    before = contents(raised), (raised / ".hydra" / "config.yaml").read_text()
    done = script("train", f"resume={raised}", "training.epochs=3")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("training.epochs: expected no fewer steps than the 20 ")
    assert (contents(raised), (raised / ".hydra" / "config.yaml").read_text()) == before


@pytest.mark.parametrize("override", ["model.width=32", "training.seed=1", "experiment=article"])
def test_a_resumed_run_refuses_other_settings_and_names_those_that_may_change(
    script: Script, raised: Path, override: str
) -> None:
    before = (raised / ".hydra" / "config.yaml").read_text()
    done = script("train", f"resume={raised}", override)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(override.partition("=")[0])
    assert all(key in line for key in CHANGEABLE)
    assert (raised / ".hydra" / "config.yaml").read_text() == before


def test_a_run_killed_at_any_change_on_disk_is_whole_and_becomes_the_same_bit_for_bit(
    killed_everywhere: tuple[Path, list[Popen[str]]],
) -> None:
    folder, halves = killed_everywhere
    for half in halves:
        assert half.wait() == 0, (folder / "err").read_text()
    killed = list(folder.glob("*-killed"))
    unharmed = contents(folder / str(len(killed)) / "run")
    assert len(killed) > 50
    for left in killed:
        assert_whole(left / "run")
        resumed = folder / left.name.removesuffix("-killed") / "run"
        assert contents(resumed) == unharmed, left
        assert not temporary(resumed), left
