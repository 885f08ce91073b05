"""The HTML report of 1,000 requests with 512,000 tokens: its size, how soon one can use it, how smooth it is.

The worst shape: calls of `generate()` of one row, where every token is a step of its own. It is opened from
disk in a headless Chromium; without one, or without Playwright, only the file is measured.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure, figure

REQUESTS, EACH = 1_000, 512
SECONDS, MEGABYTES, FRAME_MS = 2.0, 2.0, 33.0
ROUNDS = 5
DIAGNOSE = [sys.executable, "-c", "import sys; from phasetrace.cli import main; sys.exit(main())", "diagnose"]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Frames while time is moved by keys, as somebody does who looks around
MOVE = """async (frames) => {
    const box = document.querySelector(".waterfall");
    const press = (key) => box.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    const frame = () => new Promise(requestAnimationFrame);
    press("+");
    const begin = performance.now();
    for (let i = 0; i < frames; i++) { press(i % 2 ? "ArrowLeft" : "ArrowRight"); await frame(); }
    return (performance.now() - begin) / frames;
}"""


def measure(quick: bool = False) -> Iterator[Figure]:
    """The file's size and what a browser takes."""
    yield from of_size(REQUESTS, 2 if quick else ROUNDS)


def of_size(requests: int, rounds: int) -> Iterator[Figure]:
    """For so many requests of 512 tokens."""
    with tempfile.TemporaryDirectory() as folder:
        trace, report = Path(folder) / "trace.json", Path(folder) / "report.html"
        write = [sys.executable, "-m", "benchmarks.ten_million", "single", str(requests * EACH), str(trace)]
        subprocess.run(write, check=True)
        subprocess.run([*DIAGNOSE, str(trace), "-o", str(report)], check=True, capture_output=True)
        what = f"report of {requests:,} requests"
        yield figure(f"{what}: size", [report.stat().st_size / 1e6], "MB", MEGABYTES)
        found = opened(report, rounds)
        if found is None:
            print("  no Chromium or no Playwright: how soon the page can be used was not measured")
            return
        ready, frames = found
        yield figure(f"{what}: time to interactive", ready, "s", SECONDS)
        yield figure(f"{what}: a frame while moving", frames, "ms", FRAME_MS)


def opened(report: Path, rounds: int) -> tuple[list[float], list[float]] | None:
    """(seconds until a key has opened a request with its tokens, milliseconds a frame), a round each."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if path is None:
        return None
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        pairs = [round_of(browser, report) for _ in range(rounds)]
        browser.close()
    return [ready for ready, _ in pairs], [frame for _, frame in pairs]


def round_of(browser: Any, report: Path) -> tuple[float, float]:
    """One visit, in a tab of its own."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    begin = time.monotonic()
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    page.locator(".waterfall").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".request h3")
    ready = time.monotonic() - begin
    frame = float(page.evaluate(MOVE, 60))
    page.close()
    return ready, frame
