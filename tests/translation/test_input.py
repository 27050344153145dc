"""Where the sentences to translate come from."""

import io
import sys
from pathlib import Path

import pytest

from qkvtrace.errors import UserError
from qkvtrace.translation.input import batched, input_lines


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("we eat", ["we eat"]),
        ("", [""]),
        ("we\n\nit\n", ["we", "", "it", ""]),
        ("ä\u2028b", ["ä\u2028b"]),
    ],
)
def test_text_is_one_sentence_a_line(text: str, lines: list[str]) -> None:
    assert list(input_lines(text, None)) == lines


def test_a_file_is_one_sentence_a_line(tmp_path: Path) -> None:
    path = tmp_path / "sentences.txt"
    path.write_bytes("\ufeffwe eat\r\n\r\nfür\u2028uns".encode())
    assert list(input_lines(None, str(path))) == ["we eat", "", "für\u2028uns"]


def test_stdin_is_utf_8_whatever_the_locale_says(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, "we eat\r\nfür\u2028uns\n\nit".encode())
    assert list(input_lines(None, None)) == ["we eat", "für\u2028uns", "", "it"]


def test_other_bytes_on_stdin_are_an_error_that_names_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stdin(monkeypatch, b"we\n\xff\n")
    lines = input_lines(None, None)
    assert next(lines) == "we"
    with pytest.raises(UserError, match="expected UTF-8, found other bytes: stdin:2"):
        next(lines)


def test_text_and_a_file_at_once_are_an_error() -> None:
    with pytest.raises(UserError, match="expected TEXT or file=, found both: 'we' and 'x'"):
        next(input_lines("we", "x"))


def test_a_missing_file_is_an_error_that_names_it() -> None:
    with pytest.raises(UserError, match=r"expected a text file, found none: missing.txt"):
        next(input_lines(None, "missing.txt"))


def test_lines_are_taken_together_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"")
    assert list(batched("abcdefg", 3)) == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert list(batched([], 3)) == []


def test_a_line_is_read_only_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"one\ntwo\nthree\n")
    assert next(batched(input_lines(None, None), 2)) == ["one", "two"]
    assert sys.stdin.buffer.read() == b"three\n"
