"""Settings: every choice in configs/ is valid and explained, every mistake names its key."""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir

from qkvtrace.command import CONFIGS, plain
from qkvtrace.conversion import from_config
from qkvtrace.errors import UserError
from qkvtrace.settings import (
    BenchmarkSettings,
    DataSettings,
    InterventionSettings,
    ModelSettings,
    PictureSettings,
    PrepareSettings,
    Settings,
    SnapshotSettings,
    TrainingSettings,
    TranslateSettings,
)

COMMANDS = {
    "train": Settings,
    "prepare": PrepareSettings,
    "translate": TranslateSettings,
    "picture": PictureSettings,
    "benchmark": BenchmarkSettings,
}
GROUPS = ("data", "model", "training", "snapshots", "experiment")
CHOICES = [
    f"{group}={path.stem}" for group in GROUPS for path in sorted((CONFIGS / group).iterdir())
]


def composed(command: str, *overrides: str) -> dict[str, Any]:
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return plain(compose(command, list(overrides)))


@pytest.fixture(scope="module")
def default() -> dict[str, Any]:
    return composed("train")


@pytest.fixture
def changed(default: dict[str, Any]) -> Callable[[str, object], dict[str, Any]]:
    def change(key: str, value: object) -> dict[str, Any]:
        config = copy.deepcopy(default)
        *groups, name = key.split(".")
        inner = config
        for group in groups:
            inner = inner[group]
        inner[name] = value
        return config

    return change


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_s_defaults_are_valid(command: str) -> None:
    assert isinstance(from_config(COMMANDS[command], composed(command)), COMMANDS[command])


@pytest.mark.parametrize("choice", CHOICES)
def test_each_choice_of_each_group_is_valid(choice: str) -> None:
    needed = {"data=multi30k": ["data.folder=here"], "data=own": ["data.train=mine.tsv"]}
    settings = from_config(Settings, composed("train", choice, *needed.get(choice, [])))
    group, _, name = choice.partition("=")
    if group == "data":
        assert settings.data.name == name


def test_the_defaults_are_the_documented_ones(default: dict[str, Any]) -> None:
    settings = from_config(Settings, default)
    assert settings.data.name == "eat_drink_read"
    assert (settings.model.layers, settings.model.heads, settings.model.width) == (1, 1, 64)
    assert settings.snapshots.shown(settings.training.epochs) == [0, 1, 15, 30]
    assert (settings.outputs, settings.resume) == ("outputs", None)


def test_the_article_s_experiment_has_the_article_s_optimiser() -> None:
    training = from_config(Settings, composed("train", "experiment=article")).training
    assert (training.optimizer, training.learning_rate, training.betas) == (
        "adam",
        5e-4,
        (0.9, 0.999),
    )
    assert (training.schedule, training.warmup_steps, training.clip_norm) == ("constant", 0, 1.0)


def keys(path: Path) -> Iterator[tuple[str, str, str]]:
    """Each top-level key of a YAML file, its line and the one before; but not Hydra's own."""
    lines = ["", *path.read_text(encoding="utf-8").splitlines()]
    for before, line in pairwise(lines):
        key = line.partition(":")[0]
        if key.isidentifier() and key not in ("defaults", "hydra"):
            yield key, line, before


@pytest.mark.parametrize(
    "path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONFIGS))
)
def test_each_key_is_explained_by_a_comment(path: Path) -> None:
    if path.parent.name == "experiment":  # repeats keys that are explained in their group
        for group, values in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            explained = {key for key, _, _ in keys(CONFIGS / group / "default.yaml")}
            assert set(values) <= explained
    else:
        assert [k for k, line, before in keys(path) if "# " not in line and before[:1] != "#"] == []
    assert path.read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize("group", GROUPS[:-1])
def test_the_choices_of_a_group_have_the_same_keys_in_the_same_order(group: str) -> None:
    kind: type[Any] = {
        "data": DataSettings,
        "model": ModelSettings,
        "training": TrainingSettings,
        "snapshots": SnapshotSettings,
    }[group]
    for path in (CONFIGS / group).iterdir():
        assert [key for key, _, _ in keys(path)] == [field.name for field in fields(kind)], (
            path.name
        )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model.width", "wide", "expected a whole number, found 'wide'"),
        ("model.width", 64.0, "expected a whole number, found 64.0"),
        ("model.width", True, "expected a whole number, found True"),
        ("model.width", None, "expected a whole number, found None"),
        ("model.dropout", "0.1", "expected a number, found '0.1'"),
        ("model.dropout", False, "expected a number, found False"),
        ("model.norm", "pots", "expected one of post, pre, found 'pots'"),
        ("model.norm", ["post"], "expected one of post, pre, found ['post']"),
        ("model.tied_embeddings", 1, "expected true or false, found 1"),
        ("model", None, "expected a group of settings, found None"),
        ("model", [1], "expected a group of settings, found [1]"),
        ("training.steps", 1.5, "expected a whole number or null, found 1.5"),
        ("training.clip_norm", "no", "expected a number or null, found 'no'"),
        ("training.betas", 0.9, "expected a list (a number each), found 0.9"),
        ("training.betas", [0.9, "b"], "expected a number, found 'b'"),
        ("training.device", "gpu", "expected one of auto, cpu, cuda, found 'gpu'"),
        ("snapshots.epochs", 3, "expected a list (a whole number each) or null, found 3"),
        ("snapshots.epochs", "0,1", "expected a list (a whole number each) or null, found '0,1'"),
        ("snapshots.epochs", [0, 1.5], "expected a whole number, found 1.5"),
        ("data.train", None, "expected text or a list (text each), found None"),
        ("data.train", [1, 2], "expected text, found 1"),
        ("data.valid", 7, "expected text or a list (text each) or null, found 7"),
        ("data.probes", "we eat", "expected a list (text each) or null, found 'we eat'"),
        ("outputs", 1, "expected text, found 1"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_key_and_what_it_holds(
    changed: Callable[[str, object], dict[str, Any]], key: str, value: object, message: str
) -> None:
    with pytest.raises(UserError) as raised:
        from_config(Settings, changed(key, value))
    assert str(raised.value) == f"{key}: {message}"


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("data.min_frequency", 0, "1 or more, found 0"),
        ("data.max_length", 0, "1 or more, found 0"),
        ("data.train", ["a"], "two parallel files, found a list of 1"),
        ("data.valid", ["a", "b", "c"], "two parallel files, found a list of 3"),
        ("data.test", [], "two parallel files, found a list of 0"),
        ("model.layers", 0, "1 or more, found 0"),
        ("model.heads", 0, "1 or more, found 0"),
        ("model.width", -64, "1 or more, found -64"),
        ("model.feed_forward", 0, "1 or more, found 0"),
        ("model.max_positions", 1, "2 or more, found 1"),
        ("model.dropout", 1, "0 <= dropout < 1, found 1.0"),
        ("model.dropout", -0.1, "0 <= dropout < 1, found -0.1"),
        ("model.dropout", math.nan, "0 <= dropout < 1, found nan"),
        ("training.epochs", 0, "1 or more, found 0"),
        ("training.steps", 0, "1 or more, found 0"),
        ("training.batch_size", 0, "1 or more, found 0"),
        ("training.checkpoint_every", 0, "1 or more, found 0"),
        ("training.seed", -1, "0 or more, found -1"),
        ("training.seed", 2**32, "below 2**32, found 4294967296"),
        ("training.warmup_steps", -1, "0 or more, found -1"),
        ("training.learning_rate", -1e-3, "0 or more, found -0.001"),
        ("training.learning_rate", math.nan, "0 or more, found nan"),
        ("training.weight_decay", -1, "0 or more, found -1.0"),
        ("training.clip_norm", 0, "above 0 or null, found 0.0"),
        ("training.clip_norm", -1, "above 0 or null, found -1.0"),
        ("training.clip_norm", math.nan, "above 0 or null, found nan"),
        ("training.betas", [0.9], "two numbers from 0 to below 1, found [0.9]"),
        (
            "training.betas",
            [0.9, 0.98, 0.5],
            "two numbers from 0 to below 1, found [0.9, 0.98, 0.5]",
        ),
        ("training.betas", [0.9, 1], "two numbers from 0 to below 1, found [0.9, 1.0]"),
        ("training.betas", [-0.1, 0.9], "two numbers from 0 to below 1, found [-0.1, 0.9]"),
        ("training.label_smoothing", 1, "0 <= label_smoothing < 1, found 1.0"),
        ("training.label_smoothing", math.nan, "0 <= label_smoothing < 1, found nan"),
        ("snapshots.every", -1, "0 or more, found -1"),
        ("snapshots.epochs", [0, -1], "0 or more, found -1"),
    ],
)
def test_an_impossible_value_is_an_error_that_names_the_key_and_the_bound(
    changed: Callable[[str, object], dict[str, Any]], key: str, value: object, part: str
) -> None:
    with pytest.raises(UserError) as raised:
        from_config(Settings, changed(key, value))
    assert str(raised.value).startswith(f"{key}: expected ")
    assert str(raised.value).endswith(part)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["model.heads=7"],
            "model.width: expected a multiple of model.heads = 7, found 64",
        ),
        (
            ["model.positions=sinusoidal", "model.width=33"],
            "model.width: expected an even width for sinusoidal positions, found 33",
        ),
        (
            ["training.schedule=inverse_sqrt", "training.warmup_steps=0"],
            "training.warmup_steps: expected at least 1 for schedule inverse_sqrt, found 0",
        ),
    ],
)
def test_an_impossible_combination_is_an_error_that_names_the_key(
    overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError) as raised:
        from_config(Settings, composed("train", *overrides))
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("model.wdith", "model.wdith: no such setting; there are layers, heads, width, "),
        ("colour", "colour: no such setting; there are data, model, training, "),
    ],
)
def test_an_unknown_key_is_an_error_that_lists_those_there_are(
    changed: Callable[[str, object], dict[str, Any]], key: str, message: str
) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        from_config(Settings, changed(key, 1))


def test_a_missing_value_is_an_error_that_names_the_key(
    default: dict[str, Any], changed: Callable[[str, object], dict[str, Any]]
) -> None:
    with pytest.raises(UserError, match=r"^data\.folder: expected a value, found none$"):
        from_config(Settings, composed("train", "data=multi30k"))
    with pytest.raises(UserError, match=r"^model\.heads: expected a value, found none$"):
        from_config(Settings, changed("model", {"layers": 1}))
    without = {name: value for name, value in default.items() if name != "outputs"}
    with pytest.raises(UserError, match=r"^outputs: expected a value, found none$"):
        from_config(Settings, without)


@pytest.mark.parametrize(
    ("key", "value"), [("batch_size", 0), ("candidates", 0), ("max_length", 0)]
)
def test_translating_nothing_is_an_error_that_names_the_key(key: str, value: int) -> None:
    with pytest.raises(UserError, match=f"^{key}: expected 1 or more, found 0$"):
        from_config(TranslateSettings, composed("translate") | {key: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"attention": "unfirm"},
            "attention: expected one of learned, uniform, last, hard, first<n> with n from 1, "
            "found 'unfirm'",
        ),
        ({"attention": "first0"}, "* found 'first0'"),
        ({"attention": "first(3"}, "* found 'first(3'"),
        ({"attention": "first-3"}, "* found 'first-3'"),
        (
            {"attention": "hard", "site": "encoder"},
            "site: expected one of encoder_self, decoder_self, cross or null, found 'encoder'",
        ),
        ({"decoder_input": "x"}, "decoder_input: expected one of tokens_unscaled, * found 'x'"),
        ({"skip": "encoder"}, "skip: expected one of decoder, * or null, found 'encoder'"),
        ({"only": "decoder"}, "only: expected one of cross_attention or null, found 'decoder'"),
        (
            {"layer": 0},
            "layer: expected only where attention is replaced, found layer=0 and attention=learned",
        ),
        ({"site": "cross"}, "site: * found site=cross and attention=learned"),
        ({"head": 0}, "head: * found head=0 and attention=learned"),
        ({"attention": "last", "layer": -1}, "layer: expected 0 or more, found -1"),
        ({"attention": "last", "head": -1}, "head: expected 0 or more, found -1"),
        (
            {"skip": "decoder", "only": "cross_attention"},
            "expected skip or only, found both: skip=decoder, only=cross_attention",
        ),
    ],
)
def test_an_impossible_intervention_is_an_error_that_says_what_there_is(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError) as raised:
        from_config(TranslateSettings, composed("translate") | changes)
    assert fnmatchcase(str(raised.value), message)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "as learned"),
        ({"attention": "uniform"}, "uniform attention"),
        (
            {"attention": "uniform", "site": "cross", "layer": 0, "head": 1},
            "uniform attention at cross, layer 0, head 1",
        ),
        ({"attention": "first3", "layer": 2}, "first-3 attention at layer 2"),
        ({"attention": "first(12)", "head": 0}, "first-12 attention at head 0"),
        (
            {"attention": "hard", "decoder_input": "encoder_output", "skip": "feed_forward"},
            "hard attention; decoder input: the encoder's output; feed-forward skipped",
        ),
        ({"only": "cross_attention"}, "only cross-attention"),
    ],
)
def test_an_intervention_says_in_a_line_what_it_changes(changes: dict[str, Any], line: str) -> None:
    assert str(InterventionSettings(**changes)) == line


@pytest.mark.parametrize(("attention", "n"), [("first3", 3), ("first(40)", 40), ("last", None)])
def test_first_is_how_many_positions_are_attended_to(attention: str, n: int | None) -> None:
    assert InterventionSettings(attention=attention).first == n


def test_whole_numbers_are_taken_where_numbers_are_expected_and_lists_become_tuples(
    changed: Callable[[str, object], dict[str, Any]],
) -> None:
    settings = from_config(Settings, changed("training.clip_norm", 2))
    assert isinstance(settings.training.clip_norm, float)
    assert isinstance(settings.training.betas, tuple)
    data = from_config(Settings, changed("data.train", ["a.en", "a.de"])).data
    assert data.train == ("a.en", "a.de")


@pytest.mark.parametrize(
    ("epochs", "last", "shown"),
    [
        (None, 30, [0, 1, 15, 30]),
        (None, 1, [0, 1]),
        (None, 2, [0, 1, 2]),
        (None, 3, [0, 1, 2, 3]),
        (None, 7, [0, 1, 4, 7]),
        ((3, 0, 3), 30, [0, 3]),
        ((30,), 30, [30]),
        ((), 30, []),
    ],
)
def test_shown_epochs_are_those_named_or_0_1_half_way_and_the_last(
    epochs: tuple[int, ...] | None, last: int, shown: list[int]
) -> None:
    settings = SnapshotSettings(epochs=epochs, every=0, parameters=True, tensorboard=True)
    assert settings.shown(last) == settings.stored(last) == shown


@pytest.mark.parametrize(
    ("every", "stored"), [(0, [2, 7]), (1, list(range(8))), (3, [0, 2, 3, 6, 7]), (99, [0, 2, 7])]
)
def test_stored_epochs_are_those_shown_and_every_nth(every: int, stored: list[int]) -> None:
    settings = SnapshotSettings(epochs=(2, 7), every=every, parameters=True, tensorboard=True)
    assert settings.stored(last_epoch=7) == stored


def test_an_epoch_beyond_the_last_is_an_error_that_names_it() -> None:
    settings = SnapshotSettings(epochs=(0, 31, 30, 40), every=1, parameters=True, tensorboard=True)
    with pytest.raises(UserError, match=r"^snapshots\.epochs: .* the last, 30, found 31, 40$"):
        settings.stored(30)
