"""The sentences to translate: from the environment, a file or stdin."""

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from qkvtrace.corpus.pairs import decoded, read_lines
from qkvtrace.errors import UserError


def input_lines(text: str | None, file: str | None) -> Iterator[str]:
    """The lines of `text`, else of `file`, else of stdin.

    Raises UserError for a missing file, or invalid UTF-8, naming the line.
    """
    if text is not None and file is not None:
        raise UserError(f"expected TEXT or file=, found both: {text!r} and {file!r}")
    if text is not None:
        for number, line in enumerate(os.fsencode(text).split(b"\n"), start=1):
            yield decoded(line, f"TEXT:{number}")
    elif file is not None:
        yield from (line for _, line in read_lines(Path(file)))
    else:
        if sys.stdin.isatty():
            print("one sentence a line; Ctrl-D ends", file=sys.stderr)
        for number, line in enumerate(sys.stdin.buffer, start=1):
            yield decoded(line, f"stdin:{number}")


def batched(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Lists of up to `size` lines; of one where a person types, who waits for each answer."""
    iterator = iter(lines)
    size = 1 if sys.stdin is not None and sys.stdin.isatty() else size
    while batch := list(islice(iterator, size)):
        yield batch
