"""The scripts beside train and translate, as make runs them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

ROOT = Path(__file__).parents[2]
NO_CUDA = "needs a CUDA device, which this PyTorch does not find"


def script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, f"scripts/{name}.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_prepare_says_what_the_corpus_holds(tmp_path: Path) -> None:
    done = script("prepare", f"outputs={tmp_path}")
    assert done.stdout.splitlines() == [
        "train: 36 pairs",
        "valid: 36 pairs",
        "test: 36 pairs",
        "source vocabulary: 18 tokens, specials included",
        "target vocabulary: 17 tokens, specials included",
    ]
    assert len(list((tmp_path / "prepared").iterdir())) == 1


def test_picture_draws_a_panel_for_each_site_and_epoch(tmp_path: Path) -> None:
    trained = script(
        "train",
        f"outputs={tmp_path}",
        "training.epochs=4",
        "snapshots.tensorboard=false",
    )
    assert trained.returncode == 0, trained.stderr
    for epochs, name in (("null", "four.png"), ("[0,1,2,3,4]", "five.png")):
        drawn = script(
            "picture", f"run={tmp_path}/latest", f"file={tmp_path / name}", f"epochs={epochs}"
        )
        assert drawn.returncode == 0, drawn.stderr
    for wrong in ("sentence=99", "layer=1", "head=-1", "epochs=[9]"):
        refused = script("picture", f"run={tmp_path}/latest", f"file={tmp_path}/none.png", wrong)
        assert refused.returncode == 1
        assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "none.png").exists()
    with Image.open(tmp_path / "four.png") as four, Image.open(tmp_path / "five.png") as five:
        assert four.height == five.height
        assert four.width < five.width


def test_benchmark_prints_what_it_measured() -> None:
    done = script("benchmark", "repeats=1", "steps=3")
    assert done.returncode == 0, done.stderr
    step, training = (
        r"a training step.* [\d.]+ ms; .*ratio",
        r"a whole training.* [\d.]+ s; .*ratio",
    )
    assert re.search(step, done.stdout)
    assert re.search(training, done.stdout)


def test_one_device_agrees_with_itself(tmp_path: Path) -> None:
    report = tmp_path / "folder" / "report.md"
    done = script(
        "gpu", "devices=[cpu,cpu]", f"report={report}", "training.epochs=2", "tolerance=0"
    )
    assert done.returncode == 0, done.stderr
    assert "largest difference of a loss: 0 nats" in report.read_text(encoding="utf-8")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_gpu_comparison_needs_a_gpu(tmp_path: Path) -> None:
    done = script("gpu", f"report={tmp_path / 'report.md'}")
    assert done.returncode == 1
    assert "expected a CUDA device" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_CUDA)
def test_losses_on_a_gpu_agree_with_those_on_a_cpu(tmp_path: Path) -> None:
    done = script("gpu", f"report={tmp_path / 'report.md'}")
    assert done.returncode == 0, done.stderr


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_CUDA)
def test_a_training_on_a_gpu_is_resumed(tmp_path: Path) -> None:
    run = f"hydra.run.dir={tmp_path}/run"
    common = [f"outputs={tmp_path}", "training.device=cuda", "snapshots.tensorboard=false"]
    assert script("train", run, "training.epochs=2", *common).returncode == 0
    resumed = script("train", f"resume={tmp_path}/run", "training.epochs=4")
    assert resumed.returncode == 0, resumed.stderr
    assert "epoch 4" in resumed.stdout
