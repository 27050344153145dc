"""Kill a training at every change that it makes on disk, and resume it each time.

    python forks.py <folder> <first> <step> <overrides of scripts/train.py>...

In <folder>/<n> a training is killed just before its nth change on disk, for n = first, first + step
and so on until one ends by itself. What it left is copied to <folder>/<n>-killed; then it is
resumed, or begun again where there was no run yet. The trainings are forks of this process, which
has imported what takes longer than they do.
"""

import os
import runpy
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import qkvtrace.command
import qkvtrace.translation.quality
import qkvtrace.views.tensorboard  # noqa: F401
from qkvtrace.corpus.tokens import Tokenizer

CHANGES = {"os.mkdir", "os.rename", "os.symlink", "os.remove", "os.rmdir"}


def main(folder: Path, first: int, step: int, overrides: list[str]) -> None:
    for language in ("en", "de"):
        Tokenizer(language, lowercase=True)
    for number in count(first, step):
        outputs = folder / str(number)
        outputs.mkdir()
        new = [*overrides, f"outputs={outputs}", f"hydra.run.dir={outputs}/run"]
        status = forked(new, dying_at(number))
        shutil.copytree(outputs, folder / f"{number}-killed", symlinks=True)
        if status == 0:
            break
        assert status == -signal.SIGKILL, f"{outputs}: {status}"
        begun = (outputs / "run" / "manifest.json").exists()
        status = forked([f"resume={outputs}/run"] if begun else new)
        assert status == 0, f"{outputs}: {status} when resumed"


def forked(arguments: list[str], watch: Callable[[str, Any], None] | None = None) -> int:
    """Train in a fork; its exit status, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        if watch is not None:
            sys.addaudithook(watch)
        sys.argv = ["train.py", *arguments]
        status = 1
        try:
            runpy.run_path("scripts/train.py", run_name="__main__")
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def changing(event: str, arguments: Any) -> bool:
    if event == "open":
        return bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
    if event == "os.remove" and arguments[1] == -1:  # no folder's descriptor: an ordinary path
        return os.path.lexists(arguments[0])
    return event in CHANGES


def dying_at(number: int) -> Callable[[str, Any], None]:
    """An audit hook: Python calls it before it changes anything."""
    changes = 0

    def watch(event: str, arguments: Any) -> None:
        nonlocal changes
        if changing(event, arguments):
            changes += 1
            if changes == number:
                os.kill(os.getpid(), signal.SIGKILL)

    return watch


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
