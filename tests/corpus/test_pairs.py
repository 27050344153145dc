"""Sentence pairs from text files, and one sentence for each mistake in them."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvtrace.corpus.pairs import Pair, read_lines, read_pairs
from qkvtrace.errors import UserError


def written(path: Path, content: bytes) -> str:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.gz"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"we eat\twir essen\nit\tes\n", [("we eat", "wir essen"), ("it", "es")]),
        (b"we\twir\nit\tes", [("we", "wir"), ("it", "es")]),
        (b"we\twir\r\nit\tes\r\n", [("we", "wir"), ("it", "es")]),
        (b"\xef\xbb\xbfwe\twir\n", [("we", "wir")]),
        (b"\n\nwe\twir\n  \n\r\nit\tes\n\n", [("we", "wir"), ("it", "es")]),
        ("we\u2028eat\tfür\x85uns\x0b\n".encode(), [("we\u2028eat", "für\x85uns\x0b")]),
        (b'"we\twir"\n"it"\t"es\n', [('"we', 'wir"'), ('"it"', '"es')]),
    ],
    ids=["two", "no-end", "crlf", "bom", "blank", "u2028", "quotes"],
)
def test_a_tsv_is_a_pair_a_line(
    tmp_path: Path, name: str, content: bytes, expected: list[Pair]
) -> None:
    assert read_pairs(written(tmp_path / name, content)) == expected


@pytest.mark.parametrize("end", ["", ".gz"])
def test_parallel_files_are_paired_line_by_line(tmp_path: Path, end: str) -> None:
    source = written(tmp_path / f"a.en{end}", "\ufeffwe\teat\r\n\r\nit\u2028\r\n".encode())
    target = written(tmp_path / f"a.de{end}", "wir essen\n \nes\u2028es\n".encode())
    assert read_pairs((source, target)) == [("we\teat", "wir essen"), ("it\u2028", "es\u2028es")]


text = st.text(st.characters(exclude_characters="\t\n\r\ufeff", codec="utf-8"), min_size=1)
sentence = text.filter(str.strip)


@given(pairs=st.lists(st.tuples(sentence, sentence), min_size=1))
def test_any_pairs_come_back_from_a_tsv_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair]
) -> None:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_bytes("".join(f"{source}\t{target}\n" for source, target in pairs).encode())
    assert read_pairs(str(path)) == pairs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected sentence pairs, found an empty corpus: {path}"),
        (b"\n \r\n", "expected sentence pairs, found an empty corpus: {path}"),
        (b"\xef\xbb\xbf", "expected sentence pairs, found an empty corpus: {path}"),
        (b"we\twir\nwe eat\n", "expected source TAB target, found 1 column: {path}:2"),
        (b"\nwe\twir\tnous\n", "expected source TAB target, found 3 columns: {path}:2"),
        (b"we\twir\n\nit\t \n", "expected a target sentence, found blank text: {path}:3"),
        (b"\twir\n", "expected a source sentence, found blank text: {path}:1"),
        (b"we\twir\nf\xfcr\tf\n", "expected UTF-8, found other bytes: {path}:2"),
    ],
)
def test_a_bad_tsv_is_an_error_that_names_file_and_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = written(tmp_path / "pairs.tsv", content)
    with pytest.raises(UserError, match=f"^{re.escape(message.format(path=path))}$"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            b"a\nb\n",
            b"c\n",
            "expected parallel files of one length, found 2 lines in {s} and 1 in {t}",
        ),
        (
            b"a\n",
            b"c\n\n",
            "expected parallel files of one length, found 1 lines in {s} and 2 in {t}",
        ),
        (b"a\n\n", b"c\nd\n", "expected a source sentence, found blank text: {s}:2 and {t}:2"),
        (b"a\nb\n", b"c\n\t\n", "expected a target sentence, found blank text: {s}:2 and {t}:2"),
        (b"a\n", b"\xff\n", "expected UTF-8, found other bytes: {t}:1"),
    ],
)
def test_bad_parallel_files_are_an_error_that_names_file_and_line(
    tmp_path: Path, source: bytes, target: bytes, message: str
) -> None:
    s, t = written(tmp_path / "a.en", source), written(tmp_path / "a.de", target)
    with pytest.raises(UserError, match=f"^{re.escape(message.format(s=s, t=t))}$"):
        read_pairs((s, t))


def test_a_missing_file_and_a_folder_are_errors_that_name_them(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a text file, found none: .*absent\.tsv"):
        read_pairs(str(tmp_path / "absent.tsv"))
    with pytest.raises(UserError, match=f"expected a text file, found a folder: {tmp_path}"):
        read_pairs(str(tmp_path))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-9],
        lambda content: content[:15] + bytes([content[15] ^ 0xFF]) + content[16:],
        lambda _content: b"we\twir\n",
    ],
    ids=["truncated", "flipped", "plain"],
)
def test_a_damaged_gz_is_an_error_that_names_it(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(damage(gzip.compress(b"we\twir\n" * 20)))
    with pytest.raises(UserError, match=r"expected a gzip file, found damaged data: .*tsv\.gz"):
        read_pairs(str(path))


def test_lines_are_numbered_from_1(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"a\n\nb\r\n")
    assert list(read_lines(path)) == [(1, "a"), (2, ""), (3, "b")]
