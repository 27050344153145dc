"""An ensemble's members are what the ordinary loop trains, one seed after the other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from qkvtrace.corpus.batches import Batches
from qkvtrace.corpus.vocabulary import PAD
from qkvtrace.model.transformer import Transformer
from qkvtrace.settings import ModelSettings, TrainingSettings
from qkvtrace.snapshots.recording import recording
from qkvtrace.training.ensemble import Ensemble, train
from qkvtrace.training.trainer import Trainer

SEEDS = [0, 5, 3]
CPU = torch.device("cpu")

Build = Callable[[], Transformer]
Ordinary = Callable[[int], tuple[Trainer, list[float]]]
Together = Callable[..., tuple[Ensemble, Tensor]]

CHANGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "dropout": {"dropout": 0.2},
    "pre-norm, tied, one layer": {"norm": "pre", "tied_embeddings": True, "layers": 1},
    "sinusoidal, shared, dropout": {
        "positions": "sinusoidal",
        "projections": "shared",
        "dropout": 0.1,
    },
    "no positions, not scaled": {"positions": "none", "scaled_scores": False},
    "not clipped, decay": {"clip_norm": None, "optimizer": "adamw", "weight_decay": 0.1},
}


@pytest.fixture(params=list(CHANGES.values()), ids=list(CHANGES))
def changed(request: pytest.FixtureRequest) -> dict[str, Any]:
    changes: dict[str, Any] = request.param
    return changes


@pytest.fixture
def recipe(
    changed: dict[str, Any],
    model_settings: Callable[..., ModelSettings],
    training_settings: Callable[..., TrainingSettings],
) -> tuple[ModelSettings, TrainingSettings]:
    model, training = model_settings(), training_settings(batch_size=4)
    own = {name: value for name, value in changed.items() if hasattr(model, name)}
    other = {name: value for name, value in changed.items() if name not in own}
    return replace(model, **own), replace(training, **other)


@pytest.fixture
def build(recipe: tuple[ModelSettings, TrainingSettings], batches: Callable[..., Batches]) -> Build:
    pairs = batches().pairs
    source, target = (1 + max(max(pair[side]) for pair in pairs) for side in (0, 1))
    return lambda: Transformer(
        recipe[0], source_vocabulary=source, target_vocabulary=target, pad=PAD
    )


@pytest.fixture
def ordinary(
    recipe: tuple[ModelSettings, TrainingSettings], build: Build, batches: Callable[..., Batches]
) -> Ordinary:
    """Train as `make train` does; returns the trainer and each step's loss."""

    def run(seed: int) -> tuple[Trainer, list[float]]:
        torch.manual_seed(seed)
        trainer, losses = Trainer(build(), recipe[1], last_step=9), []
        for epoch in range(1, 4):
            for batch in batches(size=4).shuffled(seed, epoch):
                before = trainer.sums.loss.item()
                trainer.train_step(batch)
                losses.append((trainer.sums.loss.item() - before) / batch.tokens)
        return trainer, losses

    return run


@pytest.fixture
def together(
    recipe: tuple[ModelSettings, TrainingSettings], build: Build, batches: Callable[..., Batches]
) -> Together:
    """Train as an ensemble; returns it and the losses, (steps, N)."""

    def run(seeds: list[int], last_step: int = 9) -> tuple[Ensemble, Tensor]:
        ensemble = Ensemble(build, seeds, recipe[1], last_step, CPU)
        losses: list[Tensor] = []
        train(ensemble, batches(size=4), after_step=[losses.append])
        return ensemble, torch.stack(losses)

    return run


def test_each_member_is_what_the_ordinary_loop_trains_within_1e_5(
    ordinary: Ordinary, together: Together
) -> None:
    ensemble, losses = together(SEEDS)
    for number, seed in enumerate(SEEDS):
        trainer, own = ordinary(seed)
        assert_close(losses[:, number].tolist(), own, rtol=0, atol=1e-5)
        found = ensemble.tensors(number)
        wanted = trainer.model_tensors()
        assert list(found) == list(wanted)
        for name, value in wanted.items():
            if not is_rounding(name, trainer.model):
                assert_close(found[name], value, rtol=0, atol=1e-5, msg=f"{seed}: {name}")


@pytest.mark.parametrize("changed", [CHANGES["dropout"]], ids=["dropout"], indirect=True)
def test_in_float64_the_two_differ_by_1e_10_at_most_after_many_epochs(
    recipe: tuple[ModelSettings, TrainingSettings], build: Build, batches: Callable[..., Batches]
) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        ensemble = Ensemble(build, SEEDS, recipe[1], 90, CPU)
        train(ensemble, batches(size=4))
        torch.manual_seed(SEEDS[1])
        trainer = Trainer(build(), recipe[1], last_step=90)
        for epoch in range(1, 31):
            for batch in batches(size=4).shuffled(SEEDS[1], epoch):
                trainer.train_step(batch)
    finally:
        torch.set_default_dtype(torch.float32)
    for name, value in ensemble.tensors(1).items():
        assert value.dtype == torch.float64
        if not is_rounding(name, trainer.model):
            wanted = trainer.model.get_parameter(name)
            assert_close(value, wanted.detach(), rtol=0, atol=1e-10, msg=name)


def is_rounding(name: str, model: Transformer) -> bool:
    """Whether a parameter's gradient is rounding alone: the softmax cancels what keys share."""
    return name.endswith("key.bias") and model.settings.projections == "separate"


def test_what_members_compute_is_what_ordinary_models_compute_within_1e_4(
    ordinary: Ordinary, together: Together, build: Build, batches: Callable[..., Batches]
) -> None:
    ensemble, _ = together(SEEDS)
    batch = next(batches(size=4).in_order())
    model, (trainer, _) = build(), ordinary(SEEDS[1])
    model.load_parameters(ensemble.tensors(1))
    records = []
    for each in (model, trainer.model):
        with recording(each, "*.x1", "*.weights", "*.output", "logits") as record:
            each(batch.source, batch.target)
        records.append(record)
    for name, (value,) in records[0].items():
        assert_close(value, records[1][name][0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("changed", [CHANGES["dropout"]], ids=["dropout"], indirect=True)
def test_members_know_nothing_of_one_another(together: Together) -> None:
    alone, _ = together([SEEDS[1]])
    among, _ = together(SEEDS)
    other, _ = together([7, SEEDS[1]])
    for ensemble, number in ((among, 1), (other, 1)):
        for name, value in alone.tensors(0).items():
            if not name.endswith("key.bias"):
                assert_close(ensemble.tensors(number)[name], value, rtol=0, atol=1e-5)
    assert not torch.equal(among.rows[0], among.rows[1])


@pytest.mark.parametrize("changed", [CHANGES["dropout"]], ids=["dropout"], indirect=True)
def test_the_same_seeds_give_the_same_numbers(together: Together) -> None:
    (one, losses), (other, others) = together(SEEDS), together(SEEDS)
    assert torch.equal(one.rows, other.rows)
    assert torch.equal(losses, others)


@pytest.mark.parametrize("changed", [CHANGES["dropout"]], ids=["dropout"], indirect=True)
def test_pytorch_s_random_numbers_are_left_alone(together: Together) -> None:
    before = torch.get_rng_state()
    together(SEEDS)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("changed", [CHANGES["plain"]], ids=["plain"], indirect=True)
def test_the_last_step_may_cut_an_epoch_short(together: Together) -> None:
    ensemble, losses = together(SEEDS, last_step=5)
    assert ensemble.step == len(losses) == 5


@pytest.mark.parametrize("changed", [CHANGES["plain"]], ids=["plain"], indirect=True)
def test_epochs_are_told_as_they_end(
    recipe: tuple[ModelSettings, TrainingSettings], build: Build, batches: Callable[..., Batches]
) -> None:
    ensemble = Ensemble(build, SEEDS, recipe[1], 9, CPU)
    ends: list[tuple[int, int]] = []
    train(
        ensemble, batches(size=4), at_epoch_end=[lambda epoch: ends.append((epoch, ensemble.step))]
    )
    assert ends == [(1, 3), (2, 6), (3, 9)]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("changed", [CHANGES["plain"]], ids=["plain"], indirect=True)
def test_a_gpu_trains_the_same_members(
    recipe: tuple[ModelSettings, TrainingSettings],
    build: Build,
    batches: Callable[..., Batches],
    together: Together,
) -> None:
    device = torch.device("cuda")
    ensemble = Ensemble(build, SEEDS, recipe[1], 9, device)
    on_gpu = batches(size=4)
    on_gpu.device = device
    train(ensemble, on_gpu)
    for name, value in together(SEEDS)[0].tensors(1).items():
        if not name.endswith("key.bias"):
            assert_close(ensemble.tensors(1)[name], value, rtol=0, atol=1e-3)
