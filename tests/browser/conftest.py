"""What browser tests share: trained runs, TensorBoard over them, Chromium, screenshots."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from qkvtrace.runs.folder import Run

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
LOUD = ("error", "warning")
SLOW = re.compile("willReadFrequently|GPU stall")  # warnings of drawing in 3-d without a GPU


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="Chromium is not installed"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Train by the command that people use."""

    def train(*overrides: str) -> Run:
        outputs = tmp_path_factory.mktemp("outputs")
        command = [sys.executable, "scripts/train.py", f"outputs={outputs}", *overrides]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        return Run.open(outputs / "latest")

    return train


@pytest.fixture(scope="session")
def run(trained: Callable[..., Run]) -> Run:
    """A default run."""
    return trained()


@pytest.fixture(scope="session")
def tensorboard() -> Callable[..., AbstractContextManager[str]]:
    """TensorBoard over a folder, as long as the context lasts; `ready` is what it must show."""

    @contextmanager
    def serve(folder: Path, route: str, ready: str) -> Iterator[str]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        board = Path(sys.executable).with_name("tensorboard")
        command = [str(board), "--logdir", str(folder), "--port", str(port)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
            try:
                url = f"http://127.0.0.1:{port}"
                wait_until_loaded(f"{url}/{route}", ready)
                yield url
            finally:
                server.terminate()

    return serve


def wait_until_loaded(url: str, ready: str) -> None:
    for _ in range(300):
        with suppress(OSError), urllib.request.urlopen(url) as answer:
            if ready.encode() in answer.read():
                return
        time.sleep(0.2)
    pytest.fail("TensorBoard did not load the run within a minute")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def said() -> list[str]:
    """Errors and warnings of the console, and exceptions, of every page of a test."""
    return []


@pytest.fixture(scope="session")
def context(browser: Browser) -> BrowserContext:
    """A profile for most pages, which has the large scripts in its cache."""
    return browser.new_context()


@pytest.fixture
def new_page(
    browser: Browser, context: BrowserContext, said: list[str]
) -> Iterator[Callable[..., Page]]:
    """Open pages that assert, when they are done with, that nothing was asked of another host.

    options: what makes a browser another one, such as a colour scheme.
    """
    hosts: set[str | None] = set()
    pages: list[Page] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in LOUD and not SLOW.search(message.text):
            said.append(message.text)

    def build(width: int = 1280, height: int = 900, **options: Any) -> Page:
        page = browser.new_page(**options) if options else context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.set_default_timeout(60_000)
        pages.append(page)
        page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
        page.on("console", hear)
        page.on("pageerror", lambda error: said.append(str(error)))
        return page

    yield build
    for page in pages:
        page.close()
    assert {host for host in hosts if host} <= {"127.0.0.1"}


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    return new_page()


@pytest.fixture
def keep() -> Callable[..., None]:
    """Keep a picture of a page under a name, for people to look at."""
    folder = Path(os.environ.get("QKVTRACE_SCREENSHOTS") or ROOT / "outputs" / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)

    def shoot(page: Page, name: str, *, whole: bool = False) -> None:
        page.screenshot(path=folder / f"{name}.png", full_page=whole)

    return shoot
