"""The runs under TensorBoard's log directory, found anew each time: they come while one looks."""

import os
from collections.abc import Iterator
from pathlib import Path

from qkvtrace.errors import UserError

DEEPEST = 6  # folders below the log directory in which runs are looked for


class NotThere(UserError):
    """What was asked for does not exist."""


class Logdir:
    """A folder of runs, or a run; nothing outside of it is read, be there a link to it."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @property
    def root(self) -> Path:
        """The folder itself, without links; raises NotThere if there is none."""
        if self.folder is None or not self.folder.is_dir():
            raise NotThere(f"expected a folder of runs, found none: {self.folder}")
        return self.folder.resolve()

    def runs(self) -> dict[str, Path]:
        """Run folders by name, which is their path below the root; each once, newest name first.

        Raises NotThere if there is none.
        """
        root = self.root
        folders = set(_run_folders(root, root, DEEPEST))
        if not folders:
            raise NotThere(
                f"no run in {self.folder} yet: make train writes one, and it appears here"
            )
        named = {
            folder.name if folder == root else folder.relative_to(root).as_posix(): folder
            for folder in folders
        }
        return dict(sorted(named.items(), reverse=True))

    def run(self, name: str) -> Path:
        """The folder of the run of this name; raises NotThere if there is none."""
        folder = self.runs().get(name)
        if folder is None:
            raise NotThere(f"no run is named {name!r} here: it may have been moved or deleted")
        return folder


def _run_folders(folder: Path, root: Path, deeper: int) -> Iterator[Path]:
    """Run folders at and below `folder`, by real path."""
    try:
        if (folder / "manifest.json").is_file():
            yield folder
        elif deeper:
            for entry in os.scandir(folder):
                if entry.is_dir() and not entry.name.startswith("."):
                    inner = Path(entry.path).resolve()
                    if inner.is_relative_to(root) and inner != root:
                        yield from _run_folders(inner, root, deeper - 1)
    except OSError:
        return  # a folder that may not be read, or that went away
