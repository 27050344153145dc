"""How quickly the tab Q/K/V shows an epoch, and how much it asks of the server: make bench-tab.

From the slider's event to the next frame, in Chromium without a window; over a run of its own with
4 layers, 8 heads, 40 sentences and 31 epochs, or over the one that `run` names.
"""

import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from omegaconf import DictConfig

from qkvtrace.command import command, plain
from qkvtrace.conversion import from_config
from qkvtrace.errors import UserError
from qkvtrace.settings import BenchmarkTabSettings

CHOICES = {
    "“eat” in two sentences": "word=eat",
    "the same in 3-d": "word=eat&view=3d",
    "all words of two sentences": "words=all",
    "all words of all sentences": "words=all&sentences=all",
}
MORE = ("apple eat can we", "eat apple can i", "we beer can read", "i can eat apple book")
FLAGS = ("--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader")
SLIDE = """async slider => {
  const times = [];
  for (let epoch = 0; epoch <= Number(slider.max); epoch += 1) {
    slider.value = epoch;
    const start = performance.now();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    times.push(performance.now() - start);
  }
  return times;
}"""
ANSWERS = """() => performance.getEntriesByType("resource")
  .filter(({ initiatorType }) => initiatorType === "fetch").map((asked) => asked.decodedBodySize)"""


@command("benchmark_tab")
def main(config: DictConfig) -> None:
    """Measure, and print medians and slowest over the epochs."""
    settings = from_config(BenchmarkTabSettings, plain(config))
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise UserError("expected Chromium, found none on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(settings.run).resolve() if settings.run else train(Path(folder))
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = str(free.getsockname()[1])
        board = [str(Path(sys.executable).with_name("tensorboard")), "--logdir", str(run)]
        quiet = subprocess.DEVNULL
        with subprocess.Popen([*board, "--port", port], stderr=quiet) as server:
            try:
                measure(chromium, f"http://localhost:{port}/data/plugin/qkv")
            finally:
                server.terminate()


def train(folder: Path) -> Path:
    """A large run."""
    lines = Path("data/eat_drink_read.tsv").read_text(encoding="utf-8").splitlines()
    probes = ",".join((*(line.split("\t")[0] for line in lines), *MORE))
    overrides = ("model.layers=4", "model.heads=8", f"data.probes=[{probes}]", f"outputs={folder}")
    command = [sys.executable, "scripts/train.py", *overrides]
    subprocess.run(command, check=True, capture_output=True)
    return (folder / "latest").resolve()


def wait_for(address: str) -> None:
    """Wait until TensorBoard answers there, half a minute at most."""
    for _ in range(60):
        with suppress(OSError), urllib.request.urlopen(address):
            return
        time.sleep(0.5)
    raise UserError(f"expected TensorBoard to answer, found silence: {address}")


def measure(chromium: str, address: str) -> None:
    """Open the view with each choice, go through all epochs, and tell."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        wait_for(f"{address}/runs")
        for what, choice in CHOICES.items():
            page.goto("about:blank")
            page.goto(f"{address}/view#{choice}")
            page.wait_for_selector(".explorer:not(.busy) .cloud .main-svg")
            page.wait_for_timeout(1000)
            times = page.get_by_label("Epoch", exact=True).evaluate(SLIDE)
            largest = max(page.evaluate(ANSWERS)) / 1e6
            print(
                f"{what}: an epoch in {statistics.median(times):.0f} ms, the slowest of "
                f"{len(times)} in {max(times):.0f} ms; largest answer {largest:.2f} MB"
            )
        browser.close()


if __name__ == "__main__":
    main()
