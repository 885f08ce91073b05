"""The HTML report of a real vLLM with 200 requests, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phasetrace.render import units
from tests.acceptance.real import Engine, Run, phasetrace
from tests.integrations.vllm.engine import ENVIRONMENT
from tests.render.html.browser import Tab, chromium

pytestmark = pytest.mark.slow

ASKED = 200


@pytest.fixture(scope="module")
def run(vllm: Engine, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("report")
    command = vllm.application(
        "vllm_in_process.py", "async", str(tiny_model), str(folder / "told"), str(ASKED)
    )
    recorded = vllm.record(folder, command, env=ENVIRONMENT)
    assert recorded.done.returncode == 0, recorded.done.stderr
    return recorded


@pytest.fixture(scope="module")
def tab(run: Run) -> Iterator[Tab]:
    file = run.folder / "report.html"
    done = phasetrace("diagnose", str(run.trace), "--slo", "ttft=0.2", "-o", str(file))
    assert done.returncode == 0, done.stderr
    with chromium() as browser:
        yield Tab(browser, file)


@pytest.fixture(scope="module")
def told(run: Run) -> dict[str, Any]:
    return run.diagnosis("--slo", "ttft=0.2")


def test_numbers_on_the_page_are_those_of_the_json(tab: Tab, told: dict[str, Any]) -> None:
    assert told["requests"]["total"] == ASKED
    assert tab.text("#verdict").lower() == told["verdict"].lower()
    shown = tab.text("main")
    for phase in told["phases"]:
        if phase["seconds"] > 0:
            assert units.duration(phase["seconds"] * 1e9) in shown and units.share(phase["share"]) in shown
    for name in ("ttft", "tpot", "itl", "e2e"):
        for value in told["metrics"][f"{name}_s"].values():
            assert units.duration(value * 1e9) in shown
    assert tab.text("#throughput") == units.rate(told["metrics"]["throughput_tok_s"])
    page_data = json.loads(tab.page.text_content("#data"))
    assert page_data["report"] == told


def test_each_request_can_be_chosen_and_most_have_all_their_tokens(tab: Tab) -> None:
    page = tab.page
    page.locator(".waterfall").focus()
    names, drawn = set(), 0
    for _ in range(ASKED):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        names.add(tab.text(".request h3"))
        drawn += page.locator(".request .plot canvas").count()
    assert len(names) == ASKED
    assert drawn == ASKED


def test_the_page_is_quiet(tab: Tab) -> None:
    assert tab.quiet, (tab.said, tab.asked)
