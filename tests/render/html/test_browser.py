"""The report in a real Chromium: it works, says what the JSON says, and reaches nothing."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from phasetrace import advise, analyze
from phasetrace.model import Diagnosis
from phasetrace.render import html, json_report, units
from tests.render.html import scenes
from tests.render.html.browser import Tab, chromium, missing
from tests.render.html.test_report import HOSTILE, hostile

WATERFALL = ".waterfall"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def report(served: Diagnosis, parts: html.Parts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if parts.charts is None:
        missing("this copy was built without charts; building it anew fetches them")
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(html.report(served, parts), encoding="utf-8")
    return file


@pytest.fixture
def tab(browser: Any, report: Path) -> Iterator[Tab]:
    opened = Tab(browser, report)
    yield opened
    assert opened.quiet, (opened.said, opened.asked)
    opened.page.close()


def test_numbers_on_the_page_are_those_of_the_json(tab: Tab, served: Diagnosis) -> None:
    told = json.loads(json_report.diagnosis(served))
    assert tab.text("#verdict") == told["verdict"] and tab.text("#cause") == told["cause"]
    rows = tab.page.locator("table.legend tbody tr").all_inner_texts()
    shown = [p for p in told["phases"] if p["seconds"] > 0]
    assert len(rows) == len(shown) > 2
    for row, phase in zip(rows, shown, strict=True):
        for said in (phase["phase"], units.duration(phase["seconds"] * 1e9), units.share(phase["share"])):
            assert said in row
    figures = tab.page.locator("table.figures").first.locator("tbody tr").all_inner_texts()
    for row, name in zip(figures, ("ttft", "tpot", "itl", "e2e"), strict=True):
        for value in told["metrics"][f"{name}_s"].values():
            assert units.duration(value * 1e9) in row
    assert tab.text("#throughput") == units.rate(told["metrics"]["throughput_tok_s"])
    for evidence in told["findings"][0]["evidence"]:
        assert evidence.lower() in tab.text("main").lower()


def test_numbers_are_written_as_in_the_terminal(tab: Tab, parts: html.Parts) -> None:
    values = [
        0,
        1,
        9.995,
        12.25,
        99.95,
        0.00012345,
        999.5,
        1234.5,
        59.95e9,
        0.9995e9,
        7.2e12,
        1e-9,
        0.1 + 0.2,
    ]
    values += [math.pi * 10**power for power in range(-8, 14)]
    source = html.Parts("", {"format": parts.modules["format"]})
    script = f"{html.page.joined(source.modules)}\nwindow.$format = $format;"
    tab.page.add_init_script(script)
    tab.page.reload()
    for name, python in (
        ("duration", units.duration),
        ("share", units.share),
        ("threeDigits", units.three_digits),
    ):
        shown = tab.page.evaluate(f"(values) => values.map((v) => $format.{name}(v))", values)
        assert shown == [python(value) for value in values]
    tab.asked.pop()


def test_every_picture_is_there(tab: Tab) -> None:
    assert tab.page.locator("[data-chart]").evaluate_all("all => all.map((c) => c.dataset.chart)") == [
        "running", "waiting", "prefill", "kv_blocks", "ttft", "tpot", "e2e", "roofline",
    ]  # fmt: skip
    assert tab.page.locator("[data-chart] canvas, [data-chart].plot canvas").count() >= 8
    for title in (
        "Who owns the percentiles",
        "Stalls by cause",
        "Who slowed the others",
        "Step cost",
        "What this rests on",
    ):
        assert tab.page.get_by_role("heading", name=title).count() == 1


def test_hovering_tells_numbers(tab: Tab) -> None:
    box = tab.drawn()
    tab.page.mouse.move(box["x"] + box["width"] * 0.05, box["y"] + 32)
    tip = tab.text(".tip")
    assert "chat-" in tip and "e2e" in tip and "TTFT" in tip and "%" in tip
    tab.page.mouse.move(5, 5)
    assert not tab.page.locator(".tip").is_visible()


def test_clicking_opens_a_request_down_to_its_tokens(tab: Tab) -> None:
    box = tab.drawn()
    tab.page.mouse.click(box["x"] + box["width"] * 0.05, box["y"] + 32)
    panel = tab.text(".request")
    assert "chat-0" in panel and "30 output tokens" in panel and "Each mark is a token" in panel
    assert tab.page.locator(".request .plot canvas").count() == 1
    tab.page.get_by_role("button", name="Close this request").click()
    assert not tab.page.locator(".request").is_visible()


def test_the_keyboard_is_enough(tab: Tab) -> None:
    page = tab.page
    page.locator(WATERFALL).focus()
    whole = tab.paint()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert "chat-4" in tab.text(".request h3")
    assert "chat-4" in tab.text("[aria-live]")
    page.keyboard.press("+")
    zoomed = tab.paint()
    page.keyboard.press("ArrowRight")
    assert len({whole, zoomed, tab.paint()}) == 3
    page.keyboard.press("Escape")
    assert not page.locator(".request").is_visible()
    page.keyboard.press("0")
    assert tab.paint() == whole


def test_tab_reaches_every_control_in_order(tab: Tab) -> None:
    seen = []
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        seen.append(tab.page.evaluate("document.activeElement.className || document.activeElement.tagName"))
        if seen[-1] == "BODY":
            break
    assert seen.index("waterfall") > seen.index("quiet") and "link" in seen


def test_a_stall_names_who_caused_it(tab: Tab) -> None:
    page = tab.page
    page.locator(WATERFALL).focus()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert "others-prefill" in tab.text(".request .stalls")
    page.locator(".request .stalls .link").first.click()
    assert "chat-7" in tab.text(".request h3")


def test_zoom_by_wheel_buttons_and_charts(tab: Tab) -> None:
    page = tab.page
    whole = tab.paint()
    box = tab.drawn()
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    wheeled = tab.paint()
    page.get_by_role("button", name="All: show the whole run").click()
    page.mouse.move(5, 5)
    assert whole != wheeled and tab.paint() == whole
    page.locator("[data-chart=running]").scroll_into_view_if_needed()
    plot = page.locator("[data-chart=running] .u-over").bounding_box()
    page.mouse.move(plot["x"] + 200, plot["y"] + 20)
    page.mouse.down()
    page.mouse.move(plot["x"] + 320, plot["y"] + 30, steps=4)
    page.mouse.up()
    assert tab.paint() != whole


def test_dragging_moves_in_time_and_opens_nothing(tab: Tab) -> None:
    page = tab.page
    page.get_by_role("button", name="Zoom in").click()
    before = tab.paint()
    box = tab.drawn()
    page.mouse.move(box["x"] + 300, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 40, steps=5)
    page.mouse.up()
    page.mouse.move(5, 5)
    assert tab.paint() != before
    assert not page.locator(".request").is_visible()


def test_light_and_dark(browser: Any, report: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (Tab(browser, report, color_scheme=scheme) for scheme in ("light", "dark"))
    grounds = [each.page.evaluate(ground) for each in (light, dark)]
    assert grounds[0] == "rgb(255, 255, 255)" and grounds[1] != grounds[0]
    painted = light.paint()
    light.page.click("#theme")
    assert light.page.evaluate(ground) == grounds[1] and light.paint() != painted
    assert light.quiet and dark.quiet
    light.page.close()
    dark.page.close()


@pytest.mark.parametrize("width", [360, 768, 1600])
def test_nothing_sticks_out_sideways(browser: Any, report: Path, width: int) -> None:
    opened = Tab(browser, report, viewport={"width": width, "height": 800})
    opened.page.locator(WATERFALL).focus()
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("Enter")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.page.close()


def test_on_paper_controls_are_gone_and_findings_open(tab: Tab) -> None:
    tab.page.click("#theme")
    dark = tab.paint()
    tab.page.emulate_media(media="print")
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.paint() != dark  # the canvas is light too
    assert not tab.page.locator("#theme").is_visible() and not tab.page.locator(".tools").is_visible()
    assert tab.page.locator("details.finding:not([open])").count() == 0
    tab.page.emulate_media(media="screen")
    tab.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.paint() == dark
    assert len(tab.page.pdf()) > 10_000


def test_commands_are_copied_whole(browser: Any, made: ModuleType, parts: html.Parts, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html.report(made.diagnosis(), parts), encoding="utf-8")
    opened = Tab(browser, file)
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.page.locator(".copy").first.click()
    opened.page.get_by_role("button", name="Copied").wait_for()
    copied = opened.page.evaluate("navigator.clipboard.readText()")
    assert copied == made.diagnosis().findings[0].commands[0]
    gain = opened.text(".gain")
    for said in ("2.6×", "1.35 s", "511 ms", "490 ms", "530 ms"):
        assert said in gain
    opened.page.close()


def test_a_hostile_trace_is_shown_and_never_run(browser: Any, parts: html.Parts, tmp_path: Path) -> None:
    made = advise.diagnose(analyze.breakdown(hostile(scenes.served())))
    said = replace(
        made,
        verdict=HOSTILE,
        findings=tuple(
            replace(f, recommendation=HOSTILE, evidence=(HOSTILE,), commands=(HOSTILE,), tradeoff=HOSTILE)
            for f in made.findings
        ),
    )
    file = tmp_path / "hostile.html"
    file.write_text(html.report(said, parts), encoding="utf-8")
    opened = Tab(browser, file)
    opened.page.locator(WATERFALL).focus()
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("Enter")
    assert opened.quiet, opened.said
    assert opened.page.locator("img").count() == 0
    assert "<img src=x onerror=alert(1)>" in opened.text("#verdict") and "\\x1b" in opened.text("#verdict")
    assert "\u202e" not in opened.text("main") and "\\u202e" in opened.text(".request h3")
    opened.page.close()


def test_script_from_elsewhere_is_refused(tab: Tab) -> None:
    tab.page.evaluate(
        "() => { const added = document.createElement('script');"
        "added.textContent = 'window.ran = 1'; document.body.append(added); }"
    )
    assert tab.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in said for said in tab.said)
    tab.said.clear()


def test_without_charts_all_else_works(
    browser: Any, served: Diagnosis, parts: html.Parts, tmp_path: Path
) -> None:
    file = tmp_path / "bare.html"
    file.write_text(html.report(served, html.Parts(parts.style, parts.modules)), encoding="utf-8")
    opened = Tab(browser, file)
    opened.page.locator(WATERFALL).focus()
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("Enter")
    assert "built without its charting library" in opened.text(".request")
    assert opened.quiet
    opened.page.close()
