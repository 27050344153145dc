"""A run folder: its layout, its settings and the link to the newest."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from qkvtrace.errors import UserError
from qkvtrace.runs.folder import Run, stored_config
from qkvtrace.settings import (
    DataSettings,
    ModelSettings,
    Settings,
    SnapshotSettings,
    TrainingSettings,
)


@pytest.fixture
def settings(
    data_settings: Callable[..., DataSettings],
    model_settings: Callable[..., ModelSettings],
    training_settings: Callable[..., TrainingSettings],
) -> Settings:
    return Settings(
        data=data_settings(probes=("für uns", "yes", "1", ""), train=("a.en", "a.de")),
        model=model_settings(),
        training=training_settings(learning_rate=1e-05, steps=7),
        snapshots=SnapshotSettings(epochs=(0, 3), every=0, parameters=True, tensorboard=True),
        outputs="outputs",
        resume=None,
    )


def test_a_new_run_has_the_documented_layout(tmp_path: Path, settings: Settings) -> None:
    run = Run.create(tmp_path / "a" / "run", settings, {"corpus": "c"})
    found = {str(path.relative_to(run.folder)) for path in run.folder.rglob("*")}
    assert found == {".hydra", ".hydra/config.yaml", "manifest.json", "checkpoints", "snapshots"}
    assert run.vocabulary("source").name == "vocabulary.source.json"
    assert run.metrics == run.folder / "metrics.jsonl"


def test_settings_come_back_as_they_were_stored(tmp_path: Path, settings: Settings) -> None:
    run = Run.create(tmp_path / "run", settings, {})
    assert Run.open(run.folder).settings() == settings
    longer = replace(settings, training=replace(settings.training, epochs=99))
    run.store_settings(longer)
    assert run.settings() == longer


def test_a_second_run_in_one_folder_is_an_error(tmp_path: Path, settings: Settings) -> None:
    Run.create(tmp_path, settings, {})
    with pytest.raises(UserError, match=f"expected a new folder, found a run .*: {tmp_path}"):
        Run.create(tmp_path, settings, {})


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"expected a run folder .*, found none: {tmp_path}"):
        Run.open(tmp_path)


def test_another_corpus_is_an_error(tmp_path: Path, settings: Settings) -> None:
    run = Run.create(tmp_path, settings, {"corpus": "this"})
    run.check_corpus("this")
    with pytest.raises(UserError, match=r"expected the corpus .*, found another: "):
        run.check_corpus("that")


@pytest.mark.parametrize("inside", [True, False])
def test_latest_points_to_the_newest_run(tmp_path: Path, settings: Settings, inside: bool) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    parent = outputs if inside else tmp_path
    for name in ("one", "two"):
        run = Run.create(parent / "train" / name, settings, {})
        run.point_latest(outputs)
        assert Run.open(outputs / "latest").folder == run.folder
    link = os.readlink(outputs / "latest")  # noqa: PTH115
    assert link == ("train/two" if inside else str(run.folder))


@pytest.mark.parametrize("content", [b"a: [", b"\xff", b"", b"just text", b"- 1\n"])
def test_a_damaged_configuration_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "config.yaml").write_bytes(content)
    with pytest.raises(UserError, match=r"found a damaged file: .*config.yaml"):
        stored_config(tmp_path)


def test_a_missing_configuration_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a run's configuration, found none: .*yaml"):
        stored_config(tmp_path)


def test_the_stored_configuration_is_plain_yaml(tmp_path: Path, settings: Settings) -> None:
    run = Run.create(tmp_path, settings, {})
    config = yaml.safe_load(run.settings_file.read_text(encoding="utf-8"))
    assert list(config) == ["data", "model", "training", "outputs", "snapshots", "resume"]
    assert config["training"]["betas"] == [0.9, 0.98]
    assert config["data"]["probes"] == ["für uns", "yes", "1", ""]


@pytest.mark.parametrize(("here", "shown"), [(".", "a/run"), ("a/run", "."), ("b", None)])
def test_a_run_is_called_by_its_path_from_here_where_it_lies_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, shown: str | None
) -> None:
    run = Run(tmp_path / "a" / "run")
    (tmp_path / here).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / here)
    assert str(run) == (shown or str(run.folder))
