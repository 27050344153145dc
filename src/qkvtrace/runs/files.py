"""Writing files so that a reader, or a crash, never meets half of one.

Temporary name, fsync, rename: after a power cut the final name holds the old content or the new.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qkvtrace.errors import UserError


def write_bytes(path: Path, content: bytes) -> None:
    """Put `content` under `path` as a whole, replacing what was there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        error.filename = str(path)  # which a full disk does not say by itself
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Like `write_bytes`, in UTF-8."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Like `write_text`, as indented JSON."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def read_json(path: Path) -> Any:
    """Parse a JSON file; raises UserError naming the file if it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"expected a file, found none: {path}") from None
    except ValueError as error:
        raise UserError(f"expected JSON, found a damaged file ({error}): {path}") from None


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder beside `path`; it takes that name when the block ends well.

    What stood there before is replaced. Files are expected to be written with the functions above.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir()
        yield temporary
        sync_folder(temporary)
        if path.exists():
            remove_folder(path)
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def remove_folder(path: Path) -> None:
    """Delete a folder so that no reader meets half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.old.tmp")
    path.replace(temporary)
    shutil.rmtree(temporary)


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def point(link: Path, target: str) -> None:
    """Make `link` a symbolic link to `target` (relative to the link), atomically."""
    temporary = link.with_name(f".{link.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def remove_leftovers(folder: Path) -> None:
    """Delete what a killed process left under temporary names, in subfolders too."""
    for path in list(folder.rglob(".*.tmp")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
