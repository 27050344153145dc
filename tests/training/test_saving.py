"""Keeping a training: what is written at an epoch's end, and going on from it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

from qkvtrace.corpus.batches import Batches
from qkvtrace.corpus.vocabulary import SPECIALS, Vocabulary
from qkvtrace.errors import UserError
from qkvtrace.runs import checkpoints
from qkvtrace.runs.metrics import Metrics, read_metrics, write_metrics
from qkvtrace.training.loop import EpochEnd, train
from qkvtrace.training.saving import Saver

BuildSaver = Callable[..., Saver]
BuildBatches = Callable[..., Batches]


def metrics(epoch: int, valid_loss: float) -> EpochEnd:
    values = dict.fromkeys(
        ("train_loss", "valid_ppl", "exact_match", "learning_rate", "tokens_per_second", "seconds"),
        1.0,
    )
    return EpochEnd(Metrics(epoch=epoch, step=4 * epoch, valid_loss=valid_loss, **values), 1.0)


def run(saver: Saver, batches: BuildBatches, after_step: Callable[[], None]) -> None:
    train(
        saver.trainer,
        batches(),
        valid=batches("valid"),
        exact_match=lambda: 0.0,
        after_step=[after_step],
        at_epoch_end=[saver.at_epoch_end],
    )


def again(saver: Saver, build: Callable[..., Any]) -> Saver:
    """What a new process makes of the run."""
    other: Saver = build(name="other", seed=99, dropout=0.3)
    other.run = saver.run
    return other


def timeless(saver: Saver) -> list[dict[str, float]]:
    return [
        {name: value for name, value in vars(m).items() if "second" not in name}
        for m in read_metrics(saver.run.metrics)
    ]


@pytest.mark.parametrize("stop", [1, 4, 6, 11])
def test_a_training_that_was_stopped_and_restored_ends_bit_identical(
    saver: BuildSaver, batches: BuildBatches, stop: int
) -> None:
    torch.manual_seed(3)
    whole = saver("whole", dropout=0.3)
    torch.manual_seed(3)
    run(whole, batches, lambda: None)

    stopped = saver("stopped", dropout=0.3)

    def interrupt() -> None:
        if stopped.trainer.step == stop:
            stopped.stop()
            raise InterruptedError

    torch.manual_seed(3)
    with pytest.raises(InterruptedError):
        run(stopped, batches, interrupt)
    resumed = again(stopped, saver)
    assert resumed.restore()
    assert resumed.trainer.step == stop
    run(resumed, batches, lambda: None)
    for which in ("latest", "best"):
        one, other = (checkpoints.load(s.run.checkpoints, which) for s in (whole, resumed))
        assert one.state == other.state
        for a, b in ((one.model, other.model), (one.training, other.training)):
            assert [name for name in a if not torch.equal(a[name], b[name])] == []
    assert timeless(resumed) == timeless(whole)


def test_without_a_checkpoint_training_starts_from_the_beginning(saver: BuildSaver) -> None:
    fresh = saver()
    assert not fresh.restore()
    assert (fresh.trainer.step, fresh.metrics, fresh.best) == (0, [], None)


def test_best_is_the_lowest_validation_loss_also_after_restoring(saver: BuildSaver) -> None:
    first = saver()

    def end(which: Saver, epoch: int, valid_loss: float) -> None:
        which.trainer.step += 4
        which.trainer.end_epoch()
        which.at_epoch_end(metrics(epoch, valid_loss))

    end(first, 1, 3.0)
    end(first, 2, 2.0)
    second = again(first, saver)
    second.restore()
    assert second.best == 2.0
    end(second, 3, 2.5)
    folder = first.run.checkpoints
    assert (folder / "best").resolve().name == "epoch-0002"
    assert (folder / "latest").resolve().name == "epoch-0003"
    assert [m.valid_loss for m in read_metrics(first.run.metrics)] == [3.0, 2.0, 2.5]


def test_checkpoints_come_every_nth_epoch_and_after_the_last(saver: BuildSaver) -> None:
    kept = saver(checkpoint_every=2)
    found = []
    for epoch in (1, 2, 3):
        kept.trainer.step += 4
        kept.trainer.end_epoch()
        kept.at_epoch_end(metrics(epoch, 1.0))
        latest = kept.run.checkpoints / "latest"
        found.append(latest.resolve().name if latest.exists() else None)
    assert found == [None, "epoch-0002", "epoch-0003"]
    assert len(read_metrics(kept.run.metrics)) == 3


def test_metrics_after_the_checkpoint_are_written_anew(saver: BuildSaver) -> None:
    first = saver(checkpoint_every=2)
    for epoch in (1, 2):
        first.trainer.step += 4
        first.trainer.end_epoch()
        first.at_epoch_end(metrics(epoch, 1.0))
    first.metrics.append(metrics(3, 9.0).metrics)
    write_metrics(first.run.metrics, first.metrics)
    second = again(first, saver)
    second.restore()
    assert [m.epoch for m in second.metrics] == [1, 2]


@pytest.mark.parametrize(
    ("epoch", "batch", "name"),
    [(0, 3, "epoch-0001-batch-0003"), (15, 0, "epoch-0015"), (15, 2, "epoch-0016-batch-0002")],
)
def test_a_checkpoint_s_name_says_where_training_stood(
    saver: BuildSaver, epoch: int, batch: int, name: str
) -> None:
    kept = saver()
    kept.trainer.epoch, kept.trainer.batch = epoch, batch
    assert f"resume={kept.run.folder}" in kept.stop()
    latest = kept.run.checkpoints / "latest"
    assert latest.resolve().name == name
    state = json.loads((latest / "state.json").read_text(encoding="utf-8"))
    assert (state["epoch"], state["batch"]) == (epoch, batch)


def test_leftovers_of_a_killed_process_are_removed(saver: BuildSaver) -> None:
    kept = saver()
    left = kept.run.checkpoints / ".epoch-0001.7.tmp"
    left.mkdir()
    kept.restore()
    assert not left.exists()


@pytest.mark.parametrize("changed", [{"layers": 1}, {"width": 26}, {"tied_embeddings": True}])
def test_a_checkpoint_of_another_network_is_an_error(
    saver: BuildSaver, changed: dict[str, Any]
) -> None:
    first, other = saver("first"), saver("other", **changed)
    first.save()
    other.run = first.run
    with pytest.raises(UserError, match=r"expected a checkpoint of the model that .hydra"):
        other.restore()


def test_another_vocabulary_is_an_error(saver: BuildSaver) -> None:
    kept = saver()
    kept.save()
    kept.target = Vocabulary([*SPECIALS, *reversed(kept.target.tokens[4:])])
    with pytest.raises(UserError, match=r"expected the vocabulary .*/vocabulary.target.json"):
        kept.restore()
