"""Claims on a run's page and in TensorBoard's tab: a verdict on each, and every seed as a dot."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from qkvtrace.runs import files
from qkvtrace.runs.folder import Run, nested
from qkvtrace.studies.answer import Answer
from qkvtrace.studies.evidence.claim import Measured, Part
from qkvtrace.studies.evidence.kept import HeldOut, Report
from qkvtrace.studies.evidence.kept import keep as keep_claims
from qkvtrace.studies.evidence.verdict import Result, finding, together
from qkvtrace.studies.kept import keep as keep_answer
from qkvtrace.studies.word_order import WordOrder
from qkvtrace.training.saving import Saver
from qkvtrace.views.page import write_page

MARKUP = "<b>bold</b> <img src=x onerror=alert(1)> | &lt;"
BEYOND = "(beyond the claim, which it does not decide)"
LONG = "where nothing of what the claim speaks of is there at all"
PART = Part(name="apart", says="They differ.", measure="|a − b|", unit="share", least=0.1)
FURTHER = replace(PART, name="further", says="They win.", beyond=True)
SAME = replace(PART, name="same", says="They are one.", least=1e-5, because="a is b")


def around(mean: float, reach: float, seeds: int) -> list[float]:
    """Values whose mean is exactly so, `reach` to each side at most, thick in the middle."""
    spread = [math.cos(math.pi * (i + 0.5) / seeds) for i in range(seeds)]
    return [mean + reach * each**3 for each in spread]


def result(letter: str, title: str, *measured: tuple[Part, Measured]) -> Result:
    findings = [finding(part, numbers) for part, numbers in measured]
    verdict = together([each.verdict for each in findings])
    return Result(f"claim_{letter}", letter, title, "So it is.", "the article", verdict, findings)


@lru_cache
def results(seeds: int) -> list[Result]:
    """One that holds in two of its parts, one that does not, an open one, and identities."""
    marked = replace(PART, says=MARKUP, measure=MARKUP, unit=MARKUP, least=-0.5)
    zero, tiny = [0.0] * seeds, [1e-7 * (1 + i / seeds) for i in range(seeds)]
    return [
        result(
            "a",
            "Words and contexts",
            (
                PART,
                Measured(
                    around(0.4, 0.2, seeds),
                    {"untrained": around(0.39, 0.3, seeds), LONG: around(-0.02, 0.05, seeds)},
                ),
            ),
            (PART, Measured([1.0] * seeds, {"always": [0.0] * seeds})),
        ),
        result("b", "Decoder and encoder", (PART, Measured(around(-40.0, 30.0, seeds)))),
        result("c", "Nonsense", (FURTHER, Measured(around(0.1, 0.2, seeds)))),
        result(
            "d",
            "Lengths alone",
            (SAME, Measured(tiny, {"second layer": around(0.5, 0.2, seeds)})),
            (SAME, Measured(zero, {"twin": zero})),
            (replace(SAME, least=0.0), Measured(zero)),
        ),
        result("e", MARKUP, (marked, Measured(around(0.0, 1e-6, seeds), {MARKUP: tiny}))),
    ]


def report(run: Run, seeds: int) -> Report:
    settings = nested(run.settings())
    return Report(
        made="2026-12-01T09:30:00+00:00",
        versions={"qkvtrace": "0.1.0", "torch": "2.13.0"},
        git_revision="0123456789abcdef",
        corpus="eat_drink_read",
        fingerprint=files.read_json(run.manifest)["corpus"],
        model=settings["model"],
        training=settings["training"],
        held_out=HeldOut("grammatical", 6),
        asked={"seeds": 32},
        seeds=list(range(7, 7 + seeds)),
        epochs=30,
        seconds=61.7,
        results=results(seeds),
    )


@pytest.fixture
def tested(saver: Callable[..., Saver], tmp_path: Path) -> Callable[[int], Run]:
    """A run with one study, and claims that were tested over some seeds; its page is written."""

    def build(seeds: int) -> Run:
        run: Run = saver().run
        manifest = {"corpus": "f" * 64, "parameters": 1234}
        files.write_json(run.manifest, manifest)
        keep_answer(run.studies, "word_order", WordOrder(sentences=("a",)), Answer(["So."], []))
        keep_claims(tmp_path / "claims" / "now", report(run, seeds))
        write_page(run)
        return run

    return build


@pytest.fixture
def opened(
    new_page: Callable[..., Page], tested: Callable[[int], Run], said: list[str]
) -> Iterator[Callable[..., Page]]:
    """Open the page of a run with claims over some seeds; its console stays silent."""

    def build(seeds: int, width: int = 1280, height: int = 900, **options: Any) -> Page:
        page = new_page(width, height, **options)
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.goto(tested(seeds).page.as_uri())
        drawn(page)
        return page

    yield build
    assert said == []


def drawn(page: Page) -> Locator:
    """The pictures of the parts, when all of them are there."""
    pictures = page.locator(".claims .strip svg")
    expect(pictures).to_have_count(8)
    return pictures


def overlaps(page: Page) -> list[list[str]]:
    """Texts of a picture that lie over each other, or that leave it."""
    found: list[list[str]] = page.evaluate(
        """() => [...document.querySelectorAll(".strip svg")].flatMap((picture) => {
          const texts = [...picture.querySelectorAll("text")].map((text) =>
            ({ said: text.textContent, box: text.getBoundingClientRect() }));
          const across = (a, b) => a.left < b.right && b.left < a.right;
          const down = (a, b) => a.top + 2 < b.bottom && b.top + 2 < a.bottom;
          const { left, right } = picture.getBoundingClientRect();
          const outside = texts.filter(({ box }) => box.left < left - 1 || box.right > right + 1);
          return [...outside.map(({ said }) => [said]), ...texts.flatMap((one, i) =>
            texts.slice(i + 1)
              .filter((other) => across(one.box, other.box) && down(one.box, other.box))
              .map((other) => [one.said, other.said]))];
        })"""
    )
    return found


def dots(picture: Locator) -> list[list[list[float]]]:
    """The places of the dots of each row."""
    paths = picture.locator(".dots").evaluate_all("all => all.map(path => path.getAttribute('d'))")
    return [
        [[float(x), float(y)] for x, y in re.findall(r"M(\S+) (\S+?)h0", path)] for path in paths
    ]


def test_the_verdicts_stand_at_the_top_with_links_to_their_claims(
    opened: Callable[..., Page],
) -> None:
    page = opened(32)
    expect(page.locator(".contents li").last).to_have_text("What texts claim, over 32 seeds")
    section = page.locator("#claims")
    expect(section.locator("h2")).to_have_text("2. What texts claim, over 32 seeds")
    expect(section.locator(".says")).to_have_text(
        "Of 5 claims, 2 hold, 1 is true by construction, 1 does not hold "
        "and 1 is undecided at 32 seeds."
    )
    expect(section.locator(".note")).to_contain_text("seeds 7 to 38; generalisation on grammatical")
    rows = section.locator(".verdicts tr")
    expect(rows).to_have_text(
        [
            "a. Words and contexts✓ holds",
            "b. Decoder and encoder✗ does not hold",
            "c. Nonsense? undecided at 32 seeds",
            "d. Lengths alone≡ true by construction",
            f"e. {MARKUP}✓ holds",
        ]
    )
    rows.nth(3).get_by_role("link").click()
    heading = page.locator("#claim-claim_d h3").bounding_box()
    assert heading is not None
    assert 0 <= heading["y"] < 900


def test_a_part_says_in_words_what_came_out(opened: Callable[..., Page]) -> None:
    page = opened(32)
    claim = page.locator("#claim-claim_a")
    expect(claim.locator(".sentence")).to_have_text("“So it is.” the article")
    first = claim.locator("figure").first
    expect(first.locator("figcaption")).to_have_text("They differ. ✓ holds")
    expect(first.locator(".measure")).to_have_text("Measured: |a − b|")
    expect(first.locator(".found").first).to_have_text(
        re.compile(
            r"^Mean 0\.400 over 32 seeds, "
            r"95 % interval 0\.3\d\d to 0\.4\d\d: all of it above 0\.1\.$"
        )
    )
    expect(first.locator(".warned")).to_have_text(
        "Not surely more than in the control “untrained”."
    )
    expect(page.locator("#claim-claim_b .found").first).to_have_text(
        re.compile(r"^Mean −40\.0 over 32 seeds, .*: all of it below 0\.1\.$")
    )
    expect(page.locator("#claim-claim_c .found").first).to_have_text(
        re.compile(r"^Mean 0\.100 over 32 seeds, .*: 0\.1 lies within\.$")
    )
    expect(page.locator("#claim-claim_c figcaption")).to_have_text(
        f"They win. {BEYOND} ? undecided at 32 seeds"
    )
    same, twin, _ = page.locator("#claim-claim_d figure").all()
    expect(same.locator(".found")).to_have_text(
        [
            "Largest deviation 2e−7 over 32 seeds; rounding explains at most 1e−5.",
            "It must be so: a is b.",
        ]
    )
    expect(twin.locator(".warned")).to_have_text("The control “twin” is as exact.")


@pytest.mark.parametrize("seeds", [1, 8, 32, 1000])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_seed_is_a_dot_where_its_value_is(
    opened: Callable[..., Page], keep: Callable[..., None], seeds: int, width: int
) -> None:
    page = opened(seeds, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert overlaps(page) == []
    findings = [finding for result in results(seeds) for finding in result.findings]
    for picture, found in zip(drawn(page).all(), findings, strict=True):
        size = picture.bounding_box()
        assert size is not None
        line = float(picture.locator(".bound line").get_attribute("x1") or "nan")
        rows = [found.values, *(control.values for control in found.controls)]
        assert len(dots(picture)) == len(rows)
        for places, values in zip(dots(picture), rows, strict=True):
            assert len(places) == seeds
            assert all(0 < x < size["width"] and 0 < y < size["height"] for x, y in places)
            least = found.part.least  # a dot hardly beside the line may be of either side
            assert sum(x < line - 0.1 for x, _ in places) <= sum(v < least for v in values)
            assert sum(x > line + 0.1 for x, _ in places) <= sum(v > least for v in values)
        bound = "at least" if found.part.because is None else "at most"
        expect(picture.locator(".bound text")).to_contain_text(bound)
        bars = picture.locator(".average.effect path")
        assert bars.count() == (1 if seeds >= 8 else 0)
    page.locator("#claims").evaluate("section => section.scrollIntoView()")
    if seeds == 32:
        keep(page, f"claims_{width}")


def test_deviations_that_rounding_explains_are_far_from_others_and_0_is_left_of_all(
    opened: Callable[..., Page],
) -> None:
    tiny, zero = drawn(opened(32)).all()[4:6]
    for picture in (tiny, zero):
        line = float(picture.locator(".bound line").get_attribute("x1") or "nan")
        effect, _ = dots(picture)
        assert max(x for x, _ in effect) < line - 50
    assert min(x for x, _ in dots(tiny)[1]) > line + 50
    ticks = zero.locator(".tick").all_text_contents()
    assert ticks[0] == "0"
    assert float(zero.locator(".tick").first.get_attribute("x") or "nan") == effect[0][0]


def test_dots_of_32_seeds_do_not_touch(opened: Callable[..., Page]) -> None:
    (places, *_) = dots(drawn(opened(32)).first)
    nearest = min(
        math.dist(one, other) for i, one in enumerate(places) for other in places[i + 1 :]
    )
    assert nearest > 5


def test_a_dot_says_its_seed_and_its_value(opened: Callable[..., Page]) -> None:
    page = opened(8)
    picture = drawn(page).first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    assert box is not None
    largest = max(dots(picture)[0])
    page.mouse.move(box["x"] + largest[0], box["y"] + largest[1])
    card = page.locator(".explorer-card")
    expect(card).to_have_text("seed 7: 0.589")
    control = min(dots(picture)[2])
    page.mouse.move(box["x"] + control[0], box["y"] + control[1])
    expect(card).to_have_text(f"{LONG}, seed 14: −0.0672")
    page.mouse.move(box["x"] + largest[0], box["y"] + 2)
    expect(card).to_be_hidden()


def test_all_numbers_unfold(opened: Callable[..., Page]) -> None:
    page = opened(8)
    figure = page.locator("#claim-claim_d figure").first
    figure.locator("summary").click()
    expect(figure.locator("th")).to_have_text(["seed", "measured", "second layer"])
    expect(figure.locator("tbody tr").first.locator("td")).to_have_text(["7", "1e−7", "0.689"])


def test_text_of_a_claim_is_shown_as_it_is(opened: Callable[..., Page]) -> None:
    page = opened(8)
    claim = page.locator("#claim-claim_e")
    expect(claim.locator("h3")).to_contain_text(MARKUP)
    expect(claim.locator(".measure")).to_have_text(f"Measured: {MARKUP}")
    expect(claim.locator(".strip .unit")).to_have_text(MARKUP)
    assert page.locator("#claims img, #claims b").count() == 0


def test_pictures_are_drawn_anew_when_the_window_is_resized(opened: Callable[..., Page]) -> None:
    page = opened(32)
    before = drawn(page).first.bounding_box()
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(200)
    after = drawn(page).first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] < 390 < before["width"]
    assert overlaps(page) == []


def test_dark_pages_have_light_ink(opened: Callable[..., Page], keep: Callable[..., None]) -> None:
    page = opened(32, color_scheme="dark")
    line = page.locator(".strip .bound line").first
    assert line.evaluate("line => getComputedStyle(line).stroke") == "rgb(233, 235, 238)"
    badge = page.locator(".verdicts .badge").first
    assert badge.evaluate("it => getComputedStyle(it).color") == "rgb(233, 235, 238)"
    page.locator("#claims").evaluate("section => section.scrollIntoView()")
    keep(page, "claims_dark")


def test_a_printed_picture_fits_its_sheet(opened: Callable[..., Page]) -> None:
    page = opened(32)
    page.emulate_media(media="print")
    page.add_style_tag(content="body.page > main { width: 500px; }")
    for picture in drawn(page).all():
        box = picture.bounding_box()
        assert box is not None
        assert box["width"] <= 500


def test_a_run_of_another_kind_has_no_such_section(
    new_page: Callable[..., Page], tested: Callable[[int], Run], tmp_path: Path, said: list[str]
) -> None:
    run = tested(8)
    path = tmp_path / "claims" / "now" / "claims.json"
    files.write_json(path, files.read_json(path) | {"fingerprint": "e" * 64})
    write_page(run)
    page = new_page()
    page.goto(run.page.as_uri())
    page.locator("#word_order").wait_for()
    assert page.locator("#claims").count() == 0
    assert page.locator(".contents li").count() == 1
    assert said == []


def test_the_tab_shows_the_same_claims(
    new_page: Callable[..., Page],
    tested: Callable[[int], Run],
    tensorboard: Callable[..., AbstractContextManager[str]],
    said: list[str],
) -> None:
    run = tested(32)
    name = run.folder.name
    # TensorBoard is over the run alone, as it is over outputs/train: its claims lie beside.
    with tensorboard(run.folder, "data/plugin/qkv/runs", name) as url:
        page = new_page()
        page.goto(f"{url}/data/plugin/qkv/studies?run={name}")
        drawn(page)
        expect(page.locator("#claims h2")).to_have_text("2. What texts claim, over 32 seeds")
        assert len(dots(drawn(page).first)[0]) == 32
        assert said == []
