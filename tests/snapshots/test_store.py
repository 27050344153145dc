"""Snapshots on disk: what goes in comes out, and damage is said in one sentence."""

import json
from pathlib import Path

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.snapshots.probes import Sentence, Snapshot
from qkvtrace.snapshots.store import Store

AXES = {"logits": ("sentence", "position"), "encoder.output": ("sentence",)}


def snapshot(epoch: int) -> Snapshot:
    sentences = [
        Sentence(["<sos>", "we", "<eos>"], ["<sos>", "für", "|<unk>"], ["“\n\t"], ["für"]),
        Sentence(["<sos>", "<eos>"], ["<sos>"], [], None),
    ]
    values = {
        "logits": torch.tensor([[1.5, -torch.inf, 0.1], [2.0, 3.0, 4.0]]) + epoch,
        "encoder.output": torch.arange(6.0).view(2, 3).T,
    }
    return Snapshot(epoch, 10 * epoch, sentences, values)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "snapshots")
    for epoch in (15, 0, 3):
        store.save(snapshot(epoch), AXES)
    return store


def equal(one: Snapshot, other: Snapshot) -> bool:
    return (
        (one.epoch, one.step, one.sentences) == (other.epoch, other.step, other.sentences)
        and one.values.keys() == other.values.keys()
        and all(torch.equal(value, other.values[name]) for name, value in one.values.items())
    )


def test_a_snapshot_comes_back_as_it_was_stored(store: Store) -> None:
    assert all(equal(store.load(epoch), snapshot(epoch)) for epoch in (0, 3, 15))


def test_the_index_lists_epochs_ascending_and_the_axes_of_each_tap(store: Store) -> None:
    assert store.epochs() == [0, 3, 15]
    index = json.loads(store.index.read_text(encoding="utf-8"))
    assert index["taps"] == {name: list(axes) for name, axes in AXES.items()}
    assert store.path(15).name == "epoch-0015.safetensors"


def test_a_snapshot_replaces_an_earlier_one_of_its_epoch(store: Store) -> None:
    other = Snapshot(3, 99, [], {"logits": torch.ones(1, 1)})
    store.save(other, AXES)
    assert equal(store.load(3), other)
    assert store.epochs() == [0, 3, 15]


def test_nothing_is_stored_before_the_first_snapshot(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.epochs() == []
    with pytest.raises(UserError, match="expected a snapshot of epoch 1, found none: "):
        store.load(1)


def test_a_missing_epoch_is_an_error_that_lists_the_stored_ones(store: Store) -> None:
    with pytest.raises(UserError, match=r"expected a snapshot of epoch 4, found 0, 3, 15: .*snap"):
        store.load(4)


@pytest.mark.parametrize("length", [0, 7, 8, 100, -1])
def test_a_truncated_snapshot_is_an_error_that_names_the_file(store: Store, length: int) -> None:
    path = store.path(3)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(UserError, match=r"found a damaged file: .*epoch-0003"):
        store.load(3)


@pytest.mark.parametrize(
    ("header", "damaged"),
    [
        (b'{"__', b'{"_a'),
        (b'"sentences"', b'"sentencer"'),
        (b"source", b"sourse"),
        (b'"step"', b'"stop"'),
        (b'"30"', b'"3p"'),
        (b'"F32"', b'"F33"'),
        (b'"shape"', b'"shapd"'),
    ],
)
def test_a_damaged_header_is_an_error_that_names_the_file(
    store: Store, header: bytes, damaged: bytes
) -> None:
    path = store.path(3)
    content = path.read_bytes()
    assert header in content
    path.write_bytes(content.replace(header, damaged, 1))
    with pytest.raises(UserError, match=r"found a damaged file: .*epoch-0003"):
        store.load(3)


def test_a_damaged_index_is_an_error_that_names_the_file(store: Store) -> None:
    store.index.write_bytes(store.index.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"expected JSON, found a damaged file .*index\.json"):
        store.epochs()


@pytest.mark.parametrize("text", ["[1]", "{}", '{"format": 2, "epochs": [1]}', '{"format": 1}'])
def test_another_programs_index_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"snapshots of format 1, found .*index\.json"):
        Store(tmp_path).epochs()
