"""make study on a run that diverged: sentences, and the studies that can be made."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Script = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def diverged(script: Script, tmp_path_factory: pytest.TempPathFactory) -> Path:
    outputs = tmp_path_factory.mktemp("diverged")
    rate = ("training.epochs=2", "training.learning_rate=1e9", "training.device=cpu")
    assert script("train", f"outputs={outputs}", *rate).returncode == 0
    return outputs / "latest"


def test_one_study_that_fails_leaves_the_others(script: Script, diverged: Path) -> None:
    done = script("study", f"run={diverged}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    *told, last = done.stderr.splitlines()
    failed = last.removeprefix("not answered: ").split(", ")
    assert [line.split(":")[0] for line in told] == failed
    assert "one_number: these vectors are not finite: the training has diverged" in told
    made = {path.name for path in (diverged / "studies").iterdir()}
    assert {"switched_off", "attention_over_training", "measures"} <= made
    assert not made & set(failed)


def test_a_single_study_fails_with_its_own_sentence(script: Script, diverged: Path) -> None:
    done = script("study", f"run={diverged}", "study=walk")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no number is finite at epoch 2: the training has diverged\n"
