"""Reports on claims on disk, and which of them speaks of a run."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.runs.folder import Run, nested
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.kept import HeldOut, Report, about, keep, load
from qkvtrace.studies.evidence.verdict import Result, finding, together
from qkvtrace.training.saving import Saver

PART = Part(name="apart", says="They are größer.", measure="|a − b|", unit="share", least=0.1)
SAME = replace(PART, name="same", least=1e-5, because="a is b")


def result(effect: list[float]) -> Result:
    findings = [
        finding(PART, Measured(effect, {"untrained": [0.0] * len(effect)})),
        finding(SAME, Measured([1e-7] * len(effect))),
    ]
    verdict = together([each.verdict for each in findings])
    return Result("clusters", "a", "A title", "So it is.", "the article", verdict, findings)


def report(effect: list[float], **changed: Any) -> Report:
    made = Report(
        made="2026-12-01T09:30:00+00:00",
        versions={"torch": "2.13.0"},
        git_revision=None,
        corpus="small",
        fingerprint="f" * 64,
        model={"layers": 2, "norm": "post"},
        training={"betas": [0.9, 0.98], "steps": None, "seed": 0},
        held_out=HeldOut("grammatical", 6),
        asked={"seeds": 32},
        seeds=list(range(len(effect))),
        epochs=30,
        seconds=1.5,
        results=[result(effect)],
    )
    return replace(made, **changed)


EFFECT = [0.3, 0.31, 0.32, 0.33, 1 / 3, 0.34, 0.35, 0.36]


def test_a_report_comes_back_whole(tmp_path: Path) -> None:
    kept = report(EFFECT)
    keep(tmp_path / "claims" / "now", kept)
    found = load(tmp_path / "claims" / "now" / "claims.json")
    for name in ("made", "versions", "git_revision", "corpus", "model", "training", "seeds"):
        assert found[name] == getattr(kept, name)
    assert found["held_out"] == {"corpus": "grammatical", "epochs": 6}
    (told,) = found["results"]
    assert (told["letter"], told["verdict"]) == ("a", "holds")
    apart, same = told["findings"]
    assert apart["part"]["says"] == "They are größer."
    assert apart["part"]["because"] is None
    assert apart["values"] == [0.3, 0.31, 0.32, 0.33, 0.3333333, 0.34, 0.35, 0.36]
    interval = kept.results[0].findings[0].interval
    assert apart["interval"] == {
        name: pytest.approx(getattr(interval, name), rel=1e-6) for name in ("mean", "low", "high")
    }
    (control,) = apart["controls"]
    assert (control["name"], control["values"], control["exceeded"]) == ("untrained", [0] * 8, True)
    assert (same["verdict"], same["part"]["because"]) == ("true by construction", "a is b")
    assert same["values"] == [1e-7] * 8


def test_what_is_not_finite_is_null_and_the_text_is_json(tmp_path: Path) -> None:
    keep(tmp_path, report([0.3, math.nan]))
    text = (tmp_path / "claims.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert "größer" in text
    apart = load(tmp_path / "claims.json")["results"][0]["findings"][0]
    assert apart["values"] == [0.3, None]
    assert apart["interval"] == {"mean": None, "low": None, "high": None}
    assert apart["verdict"] == "undecided"


def test_a_new_report_takes_the_place_of_the_old_which_stays_if_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, report(EFFECT))
    keep(tmp_path, report(EFFECT, corpus="other"))
    assert load(tmp_path / "claims.json")["corpus"] == "other"

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        keep(tmp_path, report(EFFECT))
    assert load(tmp_path / "claims.json")["corpus"] == "other"
    assert [path.name for path in tmp_path.iterdir()] == ["claims.json"]


def test_a_damaged_report_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    with pytest.raises(UserError, match=r"expected a file, found none.*claims\.json"):
        load(path)
    keep(tmp_path, report(EFFECT))
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(UserError, match=r"damaged file.*claims\.json"):
        load(path)


@pytest.mark.parametrize("text", ["[1]", "3", "{}", '{"format": 2}'])
def test_another_programs_file_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "claims.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"expected claims of format 1.*claims\.json"):
        load(tmp_path / "claims.json")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("results",), 3),
        (("seeds", 0), "0"),
        (("versions",), None),
        (("held_out",), "grammatical"),
        (("results", 0, "verdict"), "true"),
        (("results", 0, "findings", 0, "values", 1), "0.3"),
        (("results", 0, "findings", 0, "interval"), None),
        (("results", 0, "findings", 0, "part", "because"), 1),
        (("results", 0, "findings", 0, "controls", 0), {"name": "untrained"}),
    ],
)
def test_a_report_that_lacks_what_views_read_is_damaged(
    tmp_path: Path, where: tuple[str | int, ...], value: Any
) -> None:
    keep(tmp_path, report(EFFECT))
    content = files.read_json(tmp_path / "claims.json")
    inside = content
    for step in where[:-1]:
        inside = inside[step]
    inside[where[-1]] = value
    files.write_json(tmp_path / "claims.json", content)
    with pytest.raises(UserError, match=r"expected claims, found a damaged file.*claims\.json"):
        load(tmp_path / "claims.json")


@pytest.fixture
def run(saver: Callable[..., Saver]) -> Run:
    """A run in the outputs folder `tmp_path`."""
    found: Run = saver().run
    return found


@pytest.fixture
def like(run: Run) -> Callable[..., Report]:
    """A report on models like the run's, some settings changed: like(model={"heads": 1})."""

    def build(**changed: Any) -> Report:
        settings = nested(run.settings())
        groups = {name: settings[name] | changed.pop(name, {}) for name in ("model", "training")}
        return report(EFFECT, **groups, **changed)

    return build


def test_a_run_is_spoken_of_by_the_newest_report_on_models_like_its_own(
    tmp_path: Path, run: Run, like: Callable[..., Report]
) -> None:
    assert about(run) == (None, [])
    for day in (1, 3, 2):
        keep(tmp_path / "claims" / f"2026-12-0{day}", like(corpus=f"day {day}"))
    keep(tmp_path / "claims" / "2026-12-04", like(model={"heads": 1}))
    found, unreadable = about(run)
    assert found is not None
    assert found["corpus"] == "day 3"
    assert unreadable == []


def test_a_later_report_on_fewer_claims_does_not_hide_one_on_more(
    tmp_path: Path, run: Run, like: Callable[..., Report]
) -> None:
    both = [result(EFFECT), result(EFFECT)]
    keep(tmp_path / "claims" / "2026-12-01", like(corpus="both", results=both))
    keep(tmp_path / "claims" / "2026-12-02" / "0", like(corpus="one of a sweep"))
    found, _ = about(run)
    assert found is not None
    assert found["corpus"] == "both"
    (tmp_path / "claims" / "2026-12-01" / "claims.json").unlink()
    found, _ = about(run)
    assert found is not None
    assert found["corpus"] == "one of a sweep"


@pytest.mark.parametrize(
    ("changed", "alike"),
    [
        ({"training": {"seed": 7, "device": "cuda", "checkpoint_every": 9}}, True),
        ({"training": {"learning_rate": 0.01 * (1 + 1e-9)}}, True),
        ({"training": {"epochs": 4}}, False),
        ({"training": {"betas": [0.9, 0.99]}}, False),
        ({"model": {"dropout": 0.1}}, False),
        ({"fingerprint": "e" * 64}, False),
        ({"held_out": HeldOut("other", 1)}, True),
    ],
)
def test_models_are_alike_whose_settings_are_whatever_their_seed(
    tmp_path: Path,
    run: Run,
    like: Callable[..., Report],
    changed: dict[str, Any],
    alike: bool,
) -> None:
    keep(tmp_path / "claims" / "now", like(**changed))
    assert (about(run)[0] is not None) == alike


def test_a_damaged_report_is_passed_over_and_told_of(
    tmp_path: Path, run: Run, like: Callable[..., Report]
) -> None:
    keep(tmp_path / "claims" / "1", like())
    damaged = tmp_path / "claims" / "2" / "claims.json"
    damaged.parent.mkdir()
    damaged.write_text("{")
    found, (note,) = about(run)
    assert found is not None
    assert note.startswith("without these claims: ")
    assert str(damaged) in note


def test_reports_elsewhere_are_not_looked_for(
    tmp_path: Path, run: Run, like: Callable[..., Report], tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    keep(elsewhere / "claims" / "now", like())
    (tmp_path / "claims").symlink_to(elsewhere / "claims")
    assert about(run) == (None, [])
    run.store_settings(replace(run.settings(), outputs=str(elsewhere)))
    assert about(run) == (None, [])
