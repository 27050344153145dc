"""A default run, seen in a real TensorBoard by a real browser."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import Frame, Page, expect

from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.store import Store


@pytest.fixture(scope="module")
def address(run: Run, tensorboard: Callable[..., AbstractContextManager[str]]) -> Iterator[str]:
    with tensorboard(run.folder.parent, "data/runs", run.folder.name) as url:
        yield url


def test_scalars_show_every_curve(page: Page, address: str) -> None:
    page.goto(f"{address}/#scalars")
    for group in ("loss", "quality", "training"):
        page.get_by_text(group, exact=True).first.wait_for()
    page.get_by_text("loss/valid").first.wait_for()


def test_images_show_each_attention_site(page: Page, address: str) -> None:
    page.goto(f"{address}/#images")
    for site in ("encoder_self", "decoder_self", "cross"):
        page.get_by_text(f"attention_{site}", exact=True).first.wait_for()


def test_text_shows_the_translations(page: Page, address: str) -> None:
    page.goto(f"{address}/#text")
    page.get_by_text("wir konnen apfel essen").first.wait_for()


@pytest.mark.parametrize("embedding", ["head_vectors", "model_vectors"])
def test_projector_shows_every_vector(page: Page, address: str, run: Run, embedding: str) -> None:
    page.goto(f"{address}/#projector")
    frame = projector(page)
    choose(frame, embedding)
    count = frame.locator(".numDataPoints").first
    expect(count).to_have_text(str(points(run, embedding)), timeout=60_000)
    assert frame.locator(".dim").first.inner_text() == "64"
    columns = frame.locator("#colorby paper-item").evaluate_all(
        "items => items.map(item => item.textContent.trim().split(/\\s+/)[0])"
    )
    assert {"token", "vector", "epoch", "sentence", "site", "layer", "head", "position"} <= {
        *columns
    }
    # It tells of work in progress, then closes itself; an error stays.
    expect(frame.locator("#notification-dialog")).to_be_hidden(timeout=60_000)


def projector(page: Page) -> Frame:
    page.wait_for_selector("iframe", state="attached")
    for _ in range(120):
        for frame in page.frames:
            if "projector_binary.html" in frame.url:
                frame.wait_for_selector(".numDataPoints")
                return frame
        page.wait_for_timeout(500)
    pytest.fail("the Projector did not open")


def choose(frame: Frame, embedding: str) -> None:
    item = frame.locator("paper-item", has_text=embedding).first
    item.evaluate("item => item.click()")  # in a menu that is folded


def points(run: Run, embedding: str) -> int:
    """Counted by hand: tokens of each sentence, times the vectors recorded at them."""
    total = 0
    for epoch in (0, 1, 15, 30):
        for sentence in Store(run.snapshots).load(epoch).sentences:
            source, target = len(sentence.source), len(sentence.target)
            if embedding == "head_vectors":
                # Encoder and decoder self-attention: q, k, v, x1; cross: q, x1 and k, v.
                total += 4 * source + 4 * target + 2 * target + 2 * source
            else:
                # x4 at the three sites, the outputs of both layers.
                total += 2 * source + 3 * target
    return total
