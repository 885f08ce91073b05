"""A headless Chromium, driven by Playwright, that tells whatever a page says or asks for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
NAMES = ("chromium", "chromium-browser", "google-chrome")


def missing(what: str) -> NoReturn:
    """Skip by name, or fail where a browser is required."""
    if "browser" in os.environ.get("PHASETRACE_REQUIRE_ENGINES", "").split():
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser of this machine."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("no Chromium on PATH; on Debian the package `chromium` has it")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


class Tab:
    """A page that was opened from disk, and what it did."""

    def __init__(self, browser: Any, file: Path, **look: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **look})
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.file = file
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")

    @property
    def quiet(self) -> bool:
        """No word on the console, and nothing asked for but the file."""
        return not self.said and self.asked == [self.file.as_uri()]

    def text(self, selector: str) -> str:
        """What stands there."""
        return str(self.page.inner_text(selector))

    def paint(self) -> str:
        """The waterfall as it is drawn now, after what was asked of it."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        return str(self.page.evaluate("document.querySelector('.waterfall canvas').toDataURL()"))

    def drawn(self) -> dict[str, float]:
        """Where the waterfall is on the screen, scrolled to."""
        canvas = self.page.locator(".waterfall canvas")
        canvas.scroll_into_view_if_needed()
        return dict(canvas.bounding_box())
