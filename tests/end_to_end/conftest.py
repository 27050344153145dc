"""What the end-to-end tests share: the real scripts as processes, and a small corpus."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from subprocess import CompletedProcess, Popen

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("TEXT", "HYDRA_FULL_ERROR")}


def command(name: str, *arguments: str, python: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, *python, f"scripts/{name}.py", *arguments]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository, in which the scripts run."""
    return ROOT


@pytest.fixture(scope="session")
def script() -> Callable[..., CompletedProcess[str]]:
    """Run a script to its end; surrogates in `stdin` stand for bytes that are no UTF-8."""

    def run(
        name: str,
        *arguments: str,
        stdin: str = "",
        python: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> CompletedProcess[str]:
        return subprocess.run(
            command(name, *arguments, python=python),
            cwd=ROOT,
            env=ENVIRONMENT | (environment or {}),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            preexec_fn=before,
            check=False,
            timeout=300,
        )

    return run


@pytest.fixture
def start() -> Iterator[Callable[..., Popen[str]]]:
    """Start a script and go on; what still runs at the test's end is killed."""
    started: list[Popen[str]] = []

    def run(name: str, *arguments: str, environment: dict[str, str] | None = None) -> Popen[str]:
        process = Popen(
            command(name, *arguments),
            cwd=ROOT,
            env=ENVIRONMENT | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides that name a corpus of 480 pairs to train on and 16 to validate with."""
    folder = tmp_path_factory.mktemp("pairs")
    for split, count in (("train", 480), ("valid", 16)):
        with (ROOT / "data" / f"grammatical.{split}.tsv").open(encoding="utf-8") as lines:
            (folder / f"{split}.tsv").write_text("".join(islice(lines, count)), encoding="utf-8")
    return [
        f"data.train={folder}/train.tsv",
        f"data.valid={folder}/valid.tsv",
        "data.probes=null",
    ]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a file system of its own in memory, with the given options."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options: str) -> Path:
        try:
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", options, "none", folder],
                check=True,
                capture_output=True,
            )
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("mounting a small disk needs root")
        return folder

    yield mount
    subprocess.run(["umount", folder], check=False, capture_output=True)
