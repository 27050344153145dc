"""Snapshots read again and again: the sound ones, the newest, and not too many in memory."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from qkvtrace.errors import UserError
from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.probes import Snapshot
from qkvtrace.snapshots.sites import SITES
from qkvtrace.snapshots.store import Store
from qkvtrace.views.history import Cache, History

ENCODER, DECODER, CROSS = SITES
Open = Callable[[Run], History]
Write = Callable[..., Run]
Axes = dict[str, tuple[str, ...]]


def test_every_epoch_comes_with_the_values_of_the_layer(
    write_run: Write, history: Open, snapshots: list[Snapshot]
) -> None:
    found = list(history(write_run()).layer(CROSS, 1))
    assert [snapshot.epoch for snapshot in found] == [0, 1, 3]
    name = "decoder.layers.1.cross_attention.weights"
    for snapshot, expected in zip(found, snapshots, strict=True):
        assert torch.equal(snapshot.values[name], expected.values[name])
        assert snapshot.values.keys() < expected.values.keys()
        assert snapshot.sentences == expected.sentences


def test_a_missing_and_a_damaged_epoch_hide_no_other(write_run: Write, history: Open) -> None:
    run = write_run()
    Store(run.snapshots).path(0).unlink()
    damaged = Store(run.snapshots).path(3)
    damaged.write_bytes(damaged.read_bytes()[:-7])
    opened = history(run)
    assert [snapshot.epoch for snapshot in opened.layer(ENCODER, 0)] == [1]
    assert opened.left_out.keys() == {0, 3}
    assert "damaged file" in opened.left_out[3]
    assert str(damaged) in opened.left_out[3]
    assert opened.last().epoch == 1


def test_without_one_sound_epoch_it_says_why(write_run: Write, history: Open) -> None:
    run = write_run()
    for epoch in (0, 1, 3):
        Store(run.snapshots).path(epoch).write_bytes(b"")
    for read in (lambda: list(history(run).layer(ENCODER, 0)), lambda: history(run).last()):
        with pytest.raises(UserError, match=r"no snapshot of this run can be read: .*damaged"):
            read()


@pytest.mark.parametrize(
    "index",
    ["", "{", "[]", "{}", '{"epochs": 3}', '{"epochs": ["0"]}', '{"epochs": [-1]}', "null"],
)
def test_a_damaged_index_is_an_error_that_names_it(
    write_run: Write, history: Open, index: str
) -> None:
    run = write_run()
    (run.snapshots / "index.json").write_text(index, encoding="utf-8")
    with pytest.raises(UserError, match=r"damaged file.*index\.json"):
        history(run).epochs()


def test_a_run_without_snapshots_is_told_so(write_run: Write, history: Open) -> None:
    with pytest.raises(UserError, match="no snapshots in this run yet"):
        history(write_run(recorded=[])).epochs()


def test_an_epoch_of_other_sizes_is_left_out(
    write_run: Write, history: Open, observed: Callable[..., Snapshot], axes: Axes
) -> None:
    run = write_run()
    Store(run.snapshots).save(observed(1, seed=1, width=26), axes)
    opened = history(run)
    assert [snapshot.epoch for snapshot in opened.layer(ENCODER, 0)] == [0, 3]
    assert "expected the sentences and sizes of epoch 0" in opened.left_out[1]


@pytest.mark.parametrize("value", ["q", "k", "x4", "scores", "weights"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_values_smaller_than_the_sentences_need_are_left_out(
    write_run: Write, history: Open, snapshots: list[Snapshot], axes: Axes, value: str, axis: int
) -> None:
    run = write_run()
    name = ENCODER.tap(0, value)
    cut = snapshots[1].values[name].narrow(axis, 0, 1)
    values = snapshots[1].values | {name: cut}
    Store(run.snapshots).save(Snapshot(1, 10, snapshots[1].sentences, values), axes)
    opened = history(run)
    assert [snapshot.epoch for snapshot in opened.layer(ENCODER, 0)] == [0, 3]


@pytest.mark.parametrize("value", ["q", "x4", "weights"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_a_damaged_first_epoch_does_not_blame_the_others(
    write_run: Write, history: Open, snapshots: list[Snapshot], axes: Axes, value: str, axis: int
) -> None:
    run = write_run()
    name = ENCODER.tap(0, value)
    values = snapshots[0].values | {name: snapshots[0].values[name].narrow(axis, 0, 1)}
    Store(run.snapshots).save(Snapshot(0, 0, snapshots[0].sentences, values), axes)
    opened = history(run)
    assert [snapshot.epoch for snapshot in opened.layer(ENCODER, 0)] == [1, 3]
    assert "expected the size of its sentences" in opened.left_out[0]


def test_a_layer_can_be_gone_through_twice(write_run: Write, history: Open) -> None:
    layer = history(write_run()).layer(ENCODER, 0)
    assert [[snapshot.epoch for snapshot in layer] for _ in range(2)] == [[0, 1, 3]] * 2


def test_a_replaced_epoch_is_read_anew_and_changes_the_version(
    write_run: Write, history: Open, observed: Callable[..., Snapshot], axes: Axes
) -> None:
    run = write_run()
    opened = history(run)
    name = ENCODER.tap(0, "q")
    before = [snapshot.values[name] for snapshot in opened.layer(ENCODER, 0)]
    version = opened.version()
    assert opened.version() == version
    Store(run.snapshots).save(observed(1, seed=9), axes)
    assert opened.version() != version
    after = [snapshot.values[name] for snapshot in opened.layer(ENCODER, 0)]
    assert [torch.equal(a, b) for a, b in zip(before, after, strict=True)] == [True, False, True]


def test_what_was_read_is_not_read_again(
    write_run: Write, history: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = history(write_run())
    first = list(opened.layer(ENCODER, 0))
    monkeypatch.setattr(Store, "load", lambda *_: pytest.fail("read again"))
    assert all(a is b for a, b in zip(first, opened.layer(ENCODER, 0), strict=True))


def test_the_cache_lets_go_of_what_was_not_used_for_longest() -> None:
    def snapshot(epoch: int) -> Snapshot:
        return Snapshot(epoch, 0, [], {"q": torch.zeros(10)})

    cache = Cache(most=100)  # bytes; each of these has 40
    for epoch in (0, 1):
        cache.put((epoch,), snapshot(epoch))
    assert cache.get((0,)) is not None
    cache.put((2,), snapshot(2))
    assert [cache.get((epoch,)) is not None for epoch in (0, 1, 2)] == [True, False, True]
    assert cache.size == 80


def test_a_link_to_elsewhere_is_not_followed(
    write_run: Write, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, elsewhere = write_run(), tmp_path_factory.mktemp("elsewhere")
    path = Store(run.snapshots).path(1)
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)
    opened = History(run.snapshots, tmp_path.resolve(), Cache())
    assert [snapshot.epoch for snapshot in opened.layer(ENCODER, 0)] == [0, 3]
    assert "link to elsewhere" in opened.left_out[1]
    run.snapshots.rename(elsewhere / "snapshots")
    run.snapshots.symlink_to(elsewhere / "snapshots")
    with pytest.raises(UserError, match="link to elsewhere"):
        opened.epochs()


def test_an_index_that_lists_a_missing_epoch_still_shows_the_others(
    write_run: Write, history: Open
) -> None:
    run = write_run()
    path = run.snapshots / "index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(index | {"epochs": [0, 1, 2, 3]}), encoding="utf-8")
    opened = history(run)
    assert [snapshot.epoch for snapshot in opened.layer(DECODER, 1)] == [0, 1, 3]
    assert "expected a snapshot of epoch 2" in opened.left_out[2]
