"""What the tests of studies and claims share: a small trained run, each study, trained seeds."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from qkvtrace.conversion import from_config
from qkvtrace.runs.folder import Run
from qkvtrace.settings import DataSettings, ModelSettings, Recipe, TrainingSettings
from qkvtrace.studies.answer import Answer, Cell, Table
from qkvtrace.studies.catalogue import STUDIES
from qkvtrace.studies.evidence.laboratory import Laboratory
from qkvtrace.studies.study import Study
from qkvtrace.studies.subject import Subject

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three epochs of the default corpus, which teach a part of it: two layers, two heads."""
    outputs = tmp_path_factory.mktemp("studied")
    overrides = ("layers=2", "heads=2", "width=32", "feed_forward=32")
    subprocess.run(
        [
            sys.executable,
            "scripts/train.py",
            f"outputs={outputs}",
            "training.epochs=3",
            "training.batch_size=1",
            "training.warmup_steps=10",
            "training.device=cpu",
            "snapshots.tensorboard=false",
            *(f"model.{override}" for override in overrides),
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return Run.open(str(outputs / "latest"))


@pytest.fixture(scope="session")
def subject(run: Run) -> Subject:
    return Subject(run, torch.device("cpu"))


@pytest.fixture(scope="session")
def study() -> Callable[..., Study]:
    """Build a study with the defaults of its configuration file, some of them changed."""

    def build(name: str, **changed: Any) -> Study:
        text = (ROOT / "configs" / "study" / f"{name}.yaml").read_text(encoding="utf-8")
        return from_config(STUDIES[name], yaml.safe_load(text) | changed, "study")

    return build


@pytest.fixture(scope="session")
def rows() -> Callable[[Table], list[dict[str, Cell]]]:
    """A table's rows, by the names of its columns."""
    return lambda table: [dict(zip(table.columns, row, strict=True)) for row in table.rows]


@pytest.fixture(scope="session")
def named() -> Callable[[Answer, str], Table]:
    """The table of an answer that has a name."""
    return lambda answer, name: next(table for table in answer.tables if table.name == name)


@pytest.fixture(scope="session")
def recipe(
    data_settings: Callable[..., DataSettings],
    model_settings: Callable[..., ModelSettings],
    training_settings: Callable[..., TrainingSettings],
) -> Callable[..., Recipe]:
    """Recipe of a tiny model, of which some are changed: one layer and one head by default."""

    def build(name: str = "base", **changed: Any) -> Recipe:
        return Recipe(
            data=data_settings(name=name),
            model=model_settings(**({"layers": 1, "heads": 1, "width": 8} | changed)),
            training=training_settings(),
            outputs="outputs",
        )

    return build


@pytest.fixture(scope="session")
def trained(recipe: Callable[..., Recipe], tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """Two seeds of a model with two layers and heads, trained on the default corpus for a bit."""
    base = recipe("eat_drink_read", layers=2, heads=2, width=16)
    data = replace(base.data, train=str(ROOT / "data" / "eat_drink_read.tsv"))
    outputs = str(tmp_path_factory.mktemp("laboratory"))
    base = replace(base, data=data, outputs=outputs)
    return Laboratory(base, base, [3, 4], torch.device("cpu"))
