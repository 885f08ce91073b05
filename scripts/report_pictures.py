"""Turn a report into pictures for the documentation: light, dark, one request, and as wide as a phone.

phasetrace diagnose trace.json -o report.html && python scripts/report_pictures.py report.html docs/img

It needs Playwright (of the development tools) and a Chromium on PATH.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WIDE, PHONE = {"width": 1120, "height": 1000}, {"width": 390, "height": 844}
MOST_STALLED = """() => {
    const { stalls } = JSON.parse(document.getElementById("data").textContent).run;
    const count = new Map();
    for (const { request } of stalls) count.set(request, (count.get(request) ?? 0) + 1);
    return [...count].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}"""


def opened(browser: Browser, report: Path, scheme: str, viewport: dict[str, int]) -> Page:
    page = browser.new_page(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(report.resolve().as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    page.wait_for_timeout(200)  # the charts draw themselves in the next frames
    return page


def bottom(page: Page, selector: str) -> int:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return int(box["y"] + box["height"]) + 24


def top(page: Page, until: str, file: Path) -> None:
    """From the head of the page to the end of an element."""
    assert page.viewport_size is not None
    height = bottom(page, until)
    page.screenshot(
        path=file,
        full_page=True,
        clip={"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height},
    )


def request(page: Page, file: Path) -> None:
    """The request that stalled most often, down to its tokens."""
    page.locator(".waterfall").focus()
    for _ in range(page.evaluate(MOST_STALLED) + 1):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    page.locator(".request").screenshot(path=file)


def main(report: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        light = opened(browser, report, "light", WIDE)
        top(light, ".waterfall", folder / "report.png")
        request(light, folder / "report-request.png")
        dark, phone = opened(browser, report, "dark", WIDE), opened(browser, report, "light", PHONE)
        top(dark, "[data-chart=kv_blocks]", folder / "report-dark.png")
        top(phone, ".waterfall", folder / "report-phone.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
