"""A default run, seen in a real TensorBoard by a real browser."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Frame, Page, expect, sync_playwright

from qkvtrace.runs.folder import Run
from qkvtrace.snapshots.store import Store

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    outputs = tmp_path_factory.mktemp("outputs")
    train = [sys.executable, "scripts/train.py", f"outputs={outputs}"]
    subprocess.run(train, cwd=ROOT, check=True, capture_output=True)
    return Run.open(outputs / "latest")


@pytest.fixture(scope="module")
def address(run: Run) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    board = Path(sys.executable).with_name("tensorboard")
    serve = [str(board), "--logdir", str(run.folder.parent), "--port", str(port)]
    with subprocess.Popen(serve, stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_loaded(f"{url}/data/runs", run)
            yield url
        finally:
            server.terminate()


def wait_until_loaded(url: str, run: Run) -> None:
    for _ in range(120):
        with suppress(OSError), urllib.request.urlopen(url) as answer:
            if run.folder.name.encode() in answer.read():
                return
        time.sleep(0.5)
    pytest.fail("TensorBoard did not load the run within a minute")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A page that asserts, when it is done with, that nothing was asked of another host."""
    hosts: set[str | None] = set()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=CHROMIUM,
            args=FLAGS,
            viewport={"width": 1280, "height": 900},
        )
        browser.set_default_timeout(60_000)
        page = browser.new_page()
        page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
        yield page
        browser.close()
    assert {host for host in hosts if host} == {"127.0.0.1"}


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
