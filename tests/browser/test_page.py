"""The page of a default run, opened from disk, and its studies in TensorBoard's tab."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from qkvtrace.runs import files
from qkvtrace.runs.folder import Run
from qkvtrace.studies.answer import Answer, Cloud, Heatmap, Lines, Picture, Table
from qkvtrace.studies.catalogue import STUDIES
from qkvtrace.studies.kept import keep as keep_answer
from qkvtrace.studies.word_order import WordOrder
from qkvtrace.views.page import write_page

ROOT = Path(__file__).parents[2]
MOST_BYTES = 8_000_000
MARKUP = "<img src=x onerror=alert(1)>"
BOLD = "<b>bold</b>"


@pytest.fixture(scope="module")
def studied(run: Run) -> Run:
    """The default run after make study and make page."""
    for script in ("study", "page"):
        command = [sys.executable, f"scripts/{script}.py", f"run={run.folder}"]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return run


@pytest.fixture(scope="module")
def stored(studied: Run) -> list[dict[str, Any]]:
    return [files.read_json(studied.studies / name / "study.json") for name in STUDIES]


@pytest.fixture
def opened(new_page: Callable[..., Page], said: list[str]) -> Iterator[Callable[..., Page]]:
    """Open a run's page from disk; its console stays silent, and no dialog appears."""

    def build(run: Run, width: int = 1280, height: int = 720, **options: Any) -> Page:
        page = new_page(width, height, **options)
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.goto(run.page.as_uri())
        page.locator("main section").first.wait_for()
        return page

    yield build
    assert said == []


def written(cell: Any) -> str:
    """A cell as people read it: three decimals, or an exponent where they would say nothing."""
    if cell is None:
        return ""
    if not isinstance(cell, float):
        return str(cell).replace("-", "−") if isinstance(cell, int) else str(cell)
    size = abs(cell)
    if cell.is_integer():
        text = str(int(cell))
    elif size < 1e-6:
        text = "0.000"
    elif size < 1e-3 or size >= 1e5:
        text = re.sub(r"e([+-])0*", r"e\1", f"{cell:.1e}")
    else:
        text = f"{cell:.3f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def drawn(section: Locator) -> Locator:
    """The section's first picture, when it is there."""
    plot = section.locator(".plot").first
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    return plot


def test_the_page_is_one_small_file(studied: Run) -> None:
    assert studied.page.stat().st_size < MOST_BYTES


def test_every_study_has_its_section_in_the_articles_order(
    opened: Callable[..., Page], studied: Run, stored: list[dict[str, Any]]
) -> None:
    page = opened(studied)
    expect(page.locator("main section h2")).to_have_text(
        [f"{number}. {study['title']}" for number, study in enumerate(stored, start=1)]
    )
    expect(page.locator("main section .question")).to_have_text([s["question"] for s in stored])
    expect(page.locator("main section .says")).to_have_text([t for s in stored for t in s["says"]])
    assert page.locator("main figure").count() == sum(len(study["tables"]) for study in stored)


def test_the_numbers_are_those_that_the_studies_stored(
    opened: Callable[..., Page], studied: Run, stored: list[dict[str, Any]]
) -> None:
    page = opened(studied)
    figures = page.locator("main figure")
    tables = [table for study in stored for table in study["tables"]]
    for number, table in enumerate(tables):
        figure = figures.nth(number)
        rows = table["rows"][:60]
        if figure.locator("details").count():
            figure.locator("summary").evaluate("summary => summary.click()")
            figure.locator("details tbody tr").first.wait_for()
        shown = figure.locator("tbody").last.evaluate(
            "body => [...body.rows].map(row => [...row.cells].map(cell => cell.textContent))"
        )
        assert len(shown) == len(table["rows"])
        assert shown[: len(rows)] == [[written(cell) for cell in row] for row in rows]


def test_matrices_show_the_stored_weights(
    opened: Callable[..., Page],
    studied: Run,
    stored: list[dict[str, Any]],
    keep: Callable[..., None],
) -> None:
    (study,) = (study for study in stored if study["name"] == "attention_over_training")
    table = study["tables"][0]
    page = opened(studied)
    section = page.locator("#attention_over_training")
    drawn(section)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # which draws all there are
    section.evaluate("section => section.scrollIntoView()")
    matrices = section.locator(".panels.heatmap .plot.js-plotly-plot")
    expect(matrices).to_have_count(12)  # three sites, four epochs
    shown = matrices.evaluate_all("plots => plots.map(plot => plot.data[0].z).flat(2)")
    assert shown == [row[-1] for row in table["rows"]]
    keep(page, "page")


def test_a_cloud_can_be_seen_in_three_dimensions(
    opened: Callable[..., Page], studied: Run, stored: list[dict[str, Any]]
) -> None:
    (study,) = (study for study in stored if study["name"] == "encoder_trajectories")
    table = study["tables"][0]
    section = opened(studied).locator("#encoder_trajectories")
    plot = drawn(section)
    marks = "plot => plot.data.filter(t => t.mode !== 'lines').map(t => [t.type, t.x, t.z])"
    assert {kind for kind, *_ in plot.evaluate(marks)} == {"scatter"}
    section.get_by_role("button", name="3-d").first.click()
    expect(section.get_by_role("button", name="3-d").first).to_have_attribute(
        "aria-pressed", "true"
    )
    plot.locator("canvas").first.wait_for()
    traces = plot.evaluate(marks)
    assert {kind for kind, *_ in traces} == {"scatter3d"}
    picture = table["picture"]
    at = [table["columns"].index(axis) for axis in picture["axes"]]
    along = table["columns"].index(picture["along"])
    marked = [row for row in table["rows"] if row[along] in picture["marked"]]
    points = sorted((x, z) for _, xs, zs in traces for x, z in zip(xs, zs, strict=True))
    assert points == sorted((row[at[0]], row[at[2]]) for row in marked)


def test_the_view_to_explore_works_without_a_server(
    opened: Callable[..., Page], studied: Run, keep: Callable[..., None]
) -> None:
    page = opened(studied)
    plot = page.locator(".explore .cloud")
    plot.locator(".main-svg").first.wait_for()
    marks = "plot => plot.data.filter(t => t.customdata).map(t => [t.x, t.y])"
    last = plot.evaluate(marks)
    slider = page.locator(".explore input[type=range]")
    slider.evaluate("slider => { slider.value = 0; slider.dispatchEvent(new Event('input')); }")
    expect(page.locator(".explore .reading")).to_have_text(re.compile("epoch 0 of 30"))
    assert plot.evaluate(marks) != last
    keep(page, "page_explore")


def test_text_of_a_corpus_is_shown_as_it_is(
    opened: Callable[..., Page], studied: Run, tmp_path: Path
) -> None:
    run = Run(tmp_path / "run")
    shutil.copytree(studied.folder, run.folder, symlinks=True)
    shutil.rmtree(run.studies)
    pictures: list[Picture] = [
        Heatmap(row="a", column="b", value="n", scale="number", panels=("c",), row_title=BOLD),
        Lines(x="n", y="m", colour="a", y_title=MARKUP),
        Cloud(axes=("n", "m", "n"), label="a", colour="b"),
    ]
    tables = [
        Table(f"t{i}", MARKUP, ("a", "b", "c", "n", "m"), rows(), picture)
        for i, picture in enumerate([None, *pictures])
    ]
    keep_answer(
        run.studies,
        "word_order",
        WordOrder(sentences=(MARKUP,)),
        Answer([MARKUP], tables, [MARKUP]),
    )
    write_page(run)
    page = opened(run)
    section = page.locator("#word_order")
    expect(section.locator(".says")).to_have_text(MARKUP)
    for plot in section.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
    texts = section.locator(".plot.js-plotly-plot text").all_text_contents()
    assert MARKUP in texts
    assert BOLD in texts
    assert page.locator("img").count() == 0
    section.get_by_role("button", name="3-d").click()
    plot = section.locator(".plot").last
    plot.locator("canvas").first.wait_for()
    texts = plot.evaluate("plot => plot.data.flatMap(trace => trace.text ?? [])")
    assert {text.replace("\u2060", "") for text in texts} == {MARKUP, "b"}
    assert not any(MARKUP in text for text in texts)  # there Plotly would read it as a tag


def rows() -> list[tuple[Any, ...]]:
    return [(MARKUP, MARKUP, MARKUP, 0.5, 1.0), ("b", "c", MARKUP, 1.5, 3.0)]


def test_nothing_is_wider_than_a_phone(
    opened: Callable[..., Page], studied: Run, keep: Callable[..., None]
) -> None:
    page = opened(studied, 390, 844)
    drawn(page.locator("#encoder_trajectories"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    view, first = page.locator(".explore"), page.locator("#dot_products")
    boxes = [view.locator(part).bounding_box() for part in (".stage", ".tables")]
    assert all(box is not None for box in boxes)
    bottoms = [box["y"] + box["height"] for box in boxes if box is not None]
    start = first.bounding_box()
    assert start is not None
    assert boxes[1] is not None
    assert bottoms[0] <= boxes[1]["y"] < bottoms[1] <= start["y"]  # one below the other
    keep(page, "page_phone")


def test_links_find_their_study_wherever_they_are_clicked(
    opened: Callable[..., Page], studied: Run
) -> None:
    page = opened(studied)
    for name in ("similarity_over_training", "embeddings", "walk"):
        page.evaluate("scrollTo(0, 0)")
        page.locator(f".contents a[href='#{name}']").click()
        page.wait_for_timeout(400)  # pictures on the way are drawn
        heading = page.locator(f"#{name} h2").bounding_box()
        assert heading is not None
        assert 0 <= heading["y"] < 100


def test_a_printed_page_has_every_picture(opened: Callable[..., Page], studied: Run) -> None:
    page = opened(studied)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".plot").count() == page.locator(".plot.js-plotly-plot").count()


def test_dark_pages_have_light_ink(opened: Callable[..., Page], studied: Run) -> None:
    page = opened(studied, color_scheme="dark")
    plot = drawn(page.locator("#dot_products"))
    body = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert body == "rgb(29, 32, 37)"
    assert plot.evaluate("plot => plot.layout.font.color") == "#e9ebee"


def test_the_tab_shows_the_same_studies(
    new_page: Callable[..., Page],
    studied: Run,
    stored: list[dict[str, Any]],
    tensorboard: Callable[..., AbstractContextManager[str]],
    keep: Callable[..., None],
) -> None:
    name = studied.folder.name
    with tensorboard(studied.folder.parent, "data/plugin/qkv/runs", name) as url:
        page = new_page(1280, 720)
        page.goto(f"{url}/data/plugin/qkv/view")
        page.get_by_role("link", name="Studies").click()
        expect(page.locator("main section h2")).to_have_text(
            [f"{number}. {study['title']}" for number, study in enumerate(stored, start=1)]
        )
        section = page.locator("#attention_over_training")
        drawn(section)
        section.evaluate("section => section.scrollIntoView()")
        page.wait_for_timeout(300)
        keep(page, "studies")
        page.get_by_role("link", name="Q, K and V").click()
        page.locator(".explorer .cloud .main-svg").first.wait_for()


def test_the_tab_says_how_to_make_studies(
    new_page: Callable[..., Page],
    run: Run,
    tmp_path: Path,
    tensorboard: Callable[..., AbstractContextManager[str]],
) -> None:
    shutil.copytree(run.folder, tmp_path / "bare", symlinks=True)
    shutil.rmtree(tmp_path / "bare" / "studies", ignore_errors=True)
    with tensorboard(tmp_path, "data/plugin/qkv/runs", "bare") as url:
        page = new_page()
        page.goto(f"{url}/data/plugin/qkv/studies?run=bare")
        expect(page.get_by_role("alert")).to_contain_text("make study")
