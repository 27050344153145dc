"""The page: everything in one file, what studies found as they stored it, text as text."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from qkvtrace.errors import UserError
from qkvtrace.runs import files
from qkvtrace.runs.folder import Run, nested
from qkvtrace.runs.metrics import Metrics, write_metrics
from qkvtrace.studies.answer import Answer, Heatmap, Table
from qkvtrace.studies.catalogue import STUDIES
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.kept import HeldOut, Report, load
from qkvtrace.studies.evidence.kept import keep as keep_claims
from qkvtrace.studies.evidence.verdict import Result, finding
from qkvtrace.studies.kept import keep
from qkvtrace.studies.subject import Subject
from qkvtrace.training.saving import Saver
from qkvtrace.views.page import write_page

TOKEN = "<img src=x onerror=alert(1)>"
NAMES = ("dot_products", "word_order")


@dataclass(frozen=True)
class Asked:
    title: ClassVar = f"Title {TOKEN}"
    question: ClassVar = "</script><script>alert(2)</script>"
    look: ClassVar = "<!-- & -->"

    word: str = TOKEN

    def answer(self, subject: Subject) -> Answer:
        raise NotImplementedError


ANSWER = Answer(
    [f"{TOKEN} is 0.125."],
    [
        Table(
            "weights",
            "Weights",
            ("query", "key", "weight"),
            [(TOKEN, "</script>", 0.125), ("b", "c", float("nan"))],
            Heatmap(row="query", column="key", value="weight", scale="weight"),
        )
    ],
)


@pytest.fixture
def run(saver: Callable[..., Saver]) -> Run:
    run: Run = saver().run
    files.write_json(run.manifest, {"corpus": "f" * 64, "parameters": 1234})
    metrics = Metrics(
        epoch=3,
        step=12,
        train_loss=1.0,
        valid_loss=1.0,
        valid_ppl=2.7,
        exact_match=0.25,
        learning_rate=0.1,
        tokens_per_second=1.0,
        seconds=1.0,
    )
    write_metrics(run.metrics, [metrics])
    return run


def data(page: Path) -> dict[str, Any]:
    """The JSON in a page, found as a browser finds it: up to the first end tag."""
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script',
        page.read_text(encoding="utf-8"),
        re.DOTALL | re.IGNORECASE,
    )
    assert found
    content: dict[str, Any] = json.loads(found[1])
    return content


def test_the_page_holds_each_study_as_it_was_stored_in_the_catalogues_order(run: Run) -> None:
    for name in reversed(NAMES):
        keep(run.studies, name, Asked(), ANSWER)
    missing = write_page(run)
    stored = [files.read_json(run.studies / name / "study.json") for name in NAMES]
    assert data(run.page)["studies"] == sorted(stored, key=lambda s: [*STUDIES].index(s["name"]))
    (lacking,) = missing
    assert {*lacking.partition(": ")[2].split(", ")} == STUDIES.keys() - set(NAMES)


def test_the_page_tells_what_the_run_is(run: Run) -> None:
    keep(run.studies, "word_order", Asked(), ANSWER)
    write_page(run)
    for fact in ("2 + 2 layers", "2 heads", "width 22", "1,234 parameters", "exact match 0.250"):
        assert fact in data(run.page)["facts"]


def test_text_of_a_corpus_stays_inside_the_data(run: Run) -> None:
    keep(run.studies, "word_order", Asked(), ANSWER)
    write_page(run)
    page = run.page.read_text(encoding="utf-8")
    assert data(run.page)["studies"][0]["tables"][0]["rows"][0] == [TOKEN, "</script>", 0.125]
    assert "<img" not in page.split("<script>", 1)[0]
    assert "alert(2)</script" not in page


def test_the_page_allows_itself_no_request(run: Run) -> None:
    keep(run.studies, "word_order", Asked(), ANSWER)
    write_page(run)
    page = run.page.read_text(encoding="utf-8")
    assert "default-src 'none'" in page.split("<script", 1)[0]
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", page.split("<script>", 1)[0])


def test_a_run_without_studies_is_told_how_to_make_them(run: Run) -> None:
    with pytest.raises(UserError, match=r"expected studies .*make study.*, found none"):
        write_page(run)
    assert not run.page.exists()


def test_a_damaged_study_is_named_and_the_earlier_page_stays(run: Run) -> None:
    keep(run.studies, "word_order", Asked(), ANSWER)
    write_page(run)
    before = run.page.read_bytes()
    (run.studies / "word_order" / "study.json").write_text("{")
    with pytest.raises(UserError, match=r"damaged file .*word_order/study.json"):
        write_page(run)
    assert run.page.read_bytes() == before


def claims(run: Run) -> Report:
    """On models like the run's; one claim, of which nothing is sure yet."""
    part = Part(name="p", says=TOKEN, measure="m", unit="u", least=0.1)
    found = finding(part, Measured([0.25]))
    settings = nested(run.settings())
    return Report(
        made="2026-12-01T09:30:00+00:00",
        versions={},
        git_revision=None,
        corpus="small",
        fingerprint="f" * 64,
        model=settings["model"],
        training=settings["training"],
        held_out=HeldOut("other", 1),
        asked={"seeds": 32},
        seeds=[0],
        epochs=3,
        seconds=1.0,
        results=[Result("n", "a", TOKEN, "</script>", "s", found.verdict, [found])],
    )


def test_the_page_holds_the_claims_of_models_like_the_runs(run: Run, tmp_path: Path) -> None:
    keep(run.studies, "word_order", Asked(), ANSWER)
    write_page(run)
    assert data(run.page)["claims"] is None
    keep_claims(tmp_path / "claims" / "now", claims(run))
    write_page(run)
    assert data(run.page)["claims"] == load(tmp_path / "claims" / "now" / "claims.json")
    assert "<img" not in run.page.read_text(encoding="utf-8").split("<script>", 1)[0]


def test_damaged_claims_are_left_out_with_a_note(run: Run, tmp_path: Path) -> None:
    keep(run.studies, "word_order", Asked(), ANSWER)
    without = write_page(run)
    keep_claims(tmp_path / "claims" / "now", claims(run))
    (tmp_path / "claims" / "now" / "claims.json").write_text("{")
    (note,) = [note for note in write_page(run) if note not in without]
    assert re.fullmatch(r"without these claims: .*damaged file .*now/claims\.json", note)
    assert data(run.page)["claims"] is None
