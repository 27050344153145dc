"""Writing: the final name holds the old content or the new, and nothing else stays behind."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qkvtrace.errors import UserError
from qkvtrace.runs import files


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_written_and_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"long content", b"short", b""):
        files.write_bytes(path, content)
        assert path.read_bytes() == content
    assert names(tmp_path) == {"file"}


def test_a_write_that_fails_leaves_the_old_content_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import resource, sys; from pathlib import Path; from qkvtrace.runs import files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "files.write_bytes(Path(sys.argv[1]), b'x' * 1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == f"OSError: [Errno 27] File too large: '{path}'"
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"file"}


def test_a_rename_that_fails_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        files.write_bytes(tmp_path / "folder", b"content")
    assert names(tmp_path) == {"folder"}


def test_a_folder_that_vanished_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone/file"):
        files.write_bytes(tmp_path / "gone" / "file", b"content")


@pytest.mark.parametrize("seconds", [0.05, 0.1, 0.2])
def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_file(
    tmp_path: Path, seconds: float
) -> None:
    path = tmp_path / "file"
    code = (
        "import sys; from pathlib import Path; from qkvtrace.runs import files\n"
        "while True:\n"
        "    for content in (b'a', b'b'):\n"
        "        files.write_bytes(Path(sys.argv[1]), content * 1_000_003)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, path])
    while not path.exists():
        time.sleep(0.01)
    time.sleep(seconds)
    process.kill()
    process.wait()
    assert path.read_bytes() in (b"a" * 1_000_003, b"b" * 1_000_003)
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == {"file"}


@pytest.mark.parametrize("value", [{"für": [1, 2.5, None, True]}, [], "\u2028", 1e-300])
def test_json_comes_back_as_it_was_written(tmp_path: Path, value: object) -> None:
    path = tmp_path / "file.json"
    files.write_json(path, value)
    assert files.read_json(path) == json.loads(path.read_text(encoding="utf-8")) == value


@pytest.mark.parametrize("content", [b"", b'{"a": ', b"\xff", b"{} {}"])
def test_damaged_json_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"expected JSON, found a damaged file \(.*\): {path}"):
        files.read_json(path)


def test_missing_json_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"expected a file, found none: {tmp_path}/file.json"):
        files.read_json(tmp_path / "file.json")


def test_a_new_folder_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "parent" / "folder"
    with files.new_folder(path) as temporary:
        (temporary / "one").touch()
        assert not path.exists()
    assert names(path) == {"one"}
    assert names(path.parent) == {"folder"}


def test_a_new_folder_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    for name in ("one", "two"):
        with files.new_folder(path) as temporary:
            (temporary / name).touch()
    assert names(path) == {"two"}
    assert names(tmp_path) == {"folder"}


def test_an_exception_leaves_the_old_folder_and_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    with files.new_folder(path) as temporary:
        (temporary / "one").touch()

    def fail() -> None:
        with files.new_folder(path) as temporary:
            (temporary / "two").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert names(path) == {"one"}
    assert names(tmp_path) == {"folder"}


def test_a_removed_folder_is_gone(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    files.remove_folder(tmp_path / "folder")
    assert names(tmp_path) == set()


def test_a_link_is_replaced(tmp_path: Path) -> None:
    for target in ("one", "two"):
        (tmp_path / target).mkdir()
        files.point(tmp_path / "latest", target)
        assert os.readlink(tmp_path / "latest") == target  # noqa: PTH115
        assert (tmp_path / "latest").resolve() == tmp_path / target
    assert names(tmp_path) == {"one", "two", "latest"}


def test_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for kept in ("file", ".hidden", "a.tmp", "inner/.hydra"):
        (tmp_path / kept).touch()
    for left in (".file.7.tmp", "inner/.x.1.tmp"):
        (tmp_path / left).touch()
    (tmp_path / ".epoch-0001.7.tmp").mkdir()
    (tmp_path / ".epoch-0001.7.tmp" / ".model.7.tmp").touch()
    (tmp_path / ".latest.7.tmp").symlink_to("inner")
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == {"file", ".hidden", "a.tmp", "inner"}
    assert names(tmp_path / "inner") == {".hydra"}
