"""Checkpoints: what goes in comes out, two are kept, and any damage is noticed."""

from pathlib import Path

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.runs import checkpoints
from qkvtrace.runs.checkpoints import FILES, Checkpoint


def checkpoint(number: int) -> Checkpoint:
    return Checkpoint(
        {"weight": torch.full((3, 5), float(number)), "bias": torch.tensor([0.1, -torch.inf])},
        {"adam.steps": torch.tensor(7.0), "random.cpu": torch.arange(11, dtype=torch.uint8)},
        {"epoch": number, "best_valid_loss": None, "vocabularies": {"source": "für"}},
    )


def save(folder: Path, number: int, best: bool) -> None:
    checkpoints.save(folder, f"epoch-{number:04d}", checkpoint(number), best)


def equal(one: Checkpoint, other: Checkpoint) -> bool:
    return one.state == other.state and all(
        a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
        for a, b in ((one.model, other.model), (one.training, other.training))
    )


@pytest.mark.parametrize("which", ["latest", "best"])
def test_a_checkpoint_comes_back_as_it_was_saved(tmp_path: Path, which: str) -> None:
    save(tmp_path, 1, best=True)
    assert equal(checkpoints.load(tmp_path, which), checkpoint(1))


def test_latest_and_best_are_kept_and_no_others(tmp_path: Path) -> None:
    for number, best, kept in (
        (1, True, {"epoch-0001"}),
        (2, False, {"epoch-0001", "epoch-0002"}),
        (3, False, {"epoch-0001", "epoch-0003"}),
        (4, True, {"epoch-0004"}),
        (5, False, {"epoch-0004", "epoch-0005"}),
    ):
        save(tmp_path, number, best)
        assert {path.name for path in tmp_path.iterdir()} == kept | {"latest", "best"}
    assert checkpoints.load(tmp_path, "best").state["epoch"] == 4
    assert checkpoints.load(tmp_path, "latest").state["epoch"] == 5


def test_the_first_is_the_best_until_there_is_a_better_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a checkpoint .*, found none: .*best"):
        checkpoints.load(tmp_path, "best")
    for number in (1, 2):
        save(tmp_path, number, best=False)
    assert (tmp_path / "best").readlink().name == "epoch-0001"
    save(tmp_path, 3, best=True)
    assert {path.name for path in tmp_path.iterdir()} == {"epoch-0003", "latest", "best"}


def test_a_checkpoint_replaces_an_earlier_one_of_its_name(tmp_path: Path) -> None:
    save(tmp_path, 1, best=True)
    checkpoints.save(tmp_path, "epoch-0001", checkpoint(9), False)
    assert equal(checkpoints.load(tmp_path, "best"), checkpoint(9))


def test_a_failed_save_leaves_the_earlier_checkpoint(tmp_path: Path) -> None:
    save(tmp_path, 1, best=True)
    unsaveable = Checkpoint({}, {}, {"epoch": object()})
    with pytest.raises(TypeError):
        checkpoints.save(tmp_path, "epoch-0002", unsaveable, True)
    assert {path.name for path in tmp_path.iterdir()} == {"epoch-0001", "latest", "best"}
    assert equal(checkpoints.load(tmp_path, "latest"), checkpoint(1))


@pytest.mark.parametrize("bits", [0x01, 0x07, 0x20, 0xFF])
@pytest.mark.parametrize("file", [*FILES, "SHA256SUMS"])
def test_any_flipped_byte_is_noticed(tmp_path: Path, file: str, bits: int) -> None:
    save(tmp_path, 1, best=True)
    path = tmp_path / "epoch-0001" / file
    content = path.read_bytes()
    unnoticed = []
    for offset, byte in enumerate(content):
        path.write_bytes(content[:offset] + bytes([byte ^ bits]) + content[offset + 1 :])
        try:
            checkpoints.load(tmp_path, "latest")
            unnoticed.append(offset)
        except UserError as error:
            assert "epoch-0001" in str(error)  # noqa: PT017
    assert unnoticed == []


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(("length", "more"), [(-1, b""), (None, b"\n"), (0, b"")])
def test_a_shorter_or_longer_file_is_an_error_that_names_it(
    tmp_path: Path, file: str, length: int | None, more: bytes
) -> None:
    save(tmp_path, 1, best=True)
    path = tmp_path / "epoch-0001" / file
    path.write_bytes(path.read_bytes()[:length] + more)
    with pytest.raises(UserError, match=f"expected the SHA-256 .* damaged file: .*0001/{file}"):
        checkpoints.load(tmp_path, "latest")


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path, file: str) -> None:
    save(tmp_path, 1, best=True)
    (tmp_path / "epoch-0001" / file).unlink()
    with pytest.raises(UserError, match=f"damaged file: .*epoch-0001/{file}"):
        checkpoints.load(tmp_path, "latest")


@pytest.mark.parametrize("content", [None, b"", b"nonsense\n", b"\xff\n"])
def test_missing_or_invalid_sums_are_an_error(tmp_path: Path, content: bytes | None) -> None:
    save(tmp_path, 1, best=True)
    path = tmp_path / "epoch-0001" / "SHA256SUMS"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"expected .* SHA256SUMS.*: .*epoch-0001"):
        checkpoints.load(tmp_path, "latest")


def test_a_link_to_nothing_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("epoch-0001")
    with pytest.raises(UserError, match=r"expected a checkpoint .*, found none: .*latest"):
        checkpoints.load(tmp_path, "latest")
