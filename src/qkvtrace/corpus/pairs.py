"""Sentence pairs from text files: one TSV, or two parallel files; plain or .gz, UTF-8."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from qkvtrace.errors import UserError

Pair = tuple[str, str]


def read_pairs(files: str | tuple[str, ...]) -> list[Pair]:
    """The (source, target) sentences of `files`, in order; blank lines are skipped.

    Args:
        files: the path of a TSV (source TAB target), or the paths of two parallel files.

    Raises:
        UserError: for a missing or empty file, a line without exactly one tab, invalid UTF-8,
            a sentence without its translation, or parallel files of different lengths.
    """
    pairs = _read_tsv(Path(files)) if isinstance(files, str) else _read_parallel(*map(Path, files))
    if not pairs:
        raise UserError(f"expected sentence pairs, found an empty corpus: {files}")
    return pairs


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its end) of a text file; raises UserError as above."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except FileNotFoundError:
        raise UserError(f"expected a text file, found none: {path}") from None
    except IsADirectoryError:
        raise UserError(f"expected a text file, found a folder: {path}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UserError(f"expected a gzip file, found damaged data: {path}") from None
    # Only line feeds end a line: str.splitlines would also cut at U+2028 and the like.
    lines = content.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines if lines != [b""] else [], start=1):
        yield number, decoded(line, f"{path}:{number}")


def decoded(line: bytes, where: str) -> str:
    """A line of UTF-8 as text, without its end; raises UserError, with `where`, if it is none."""
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"expected UTF-8, found other bytes: {where}") from None


def _read_tsv(path: Path) -> list[Pair]:
    pairs = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 2:
            raise UserError(
                f"expected source TAB target, found {len(columns)} column"
                f"{'s' if len(columns) > 1 else ''}: {path}:{number}"
            )
        pairs.append(_complete((columns[0], columns[1]), f"{path}:{number}"))
    return pairs


def _read_parallel(source: Path, target: Path) -> list[Pair]:
    sources, targets = list(read_lines(source)), list(read_lines(target))
    if len(sources) != len(targets):
        raise UserError(
            f"expected parallel files of one length, found {len(sources)} lines in {source} "
            f"and {len(targets)} in {target}"
        )
    return [
        _complete(pair, f"{source}:{number} and {target}:{number}")
        for (number, pair) in ((n, (s, t)) for (n, s), (_, t) in zip(sources, targets, strict=True))
        if any(sentence.strip() for sentence in pair)
    ]


def _complete(pair: Pair, where: str) -> Pair:
    for side, sentence in zip(("source", "target"), pair, strict=True):
        if not sentence.strip():
            raise UserError(f"expected a {side} sentence, found blank text: {where}")
    return pair
