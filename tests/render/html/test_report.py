"""The file that the report is: whole, closed, compact, and nothing that a trace says can change it."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from phasetrace.mapping.columns import unpack
from phasetrace.model import Diagnosis, Recording, RequestStatus, Sequence
from phasetrace.render import html, json_report
from phasetrace.render.colors import LOOKS
from phasetrace.render.html.document import document
from phasetrace.render.html.safe import safe
from tests.render.html import scenes
from tests.render.html.browser import missing

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b]0;owned\x07\u202e\u2066&lt;{{constructor}}\x00"


class Elements(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes
        self._inside = tag
        if tag == "script" and ("type", "application/json") in attributes:
            self._inside = "data"

    def handle_data(self, data: str) -> None:
        {"script": self.scripts, "style": self.styles}.get(self._inside or "", []).append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = None


def content(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def column(packed: str) -> list[int]:
    return unpack(base64.b64decode(packed)).tolist()


def test_numbers_are_those_of_the_json_report(served: Diagnosis, parts: html.Parts) -> None:
    shown = content(html.report(served, parts))["report"]
    assert shown == json.loads(json_report.diagnosis(served))


def test_only_the_files_own_code_may_run(served: Diagnosis, parts: html.Parts) -> None:
    text = html.report(served, parts)
    elements = Elements(text)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None and policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1] and "http" not in policy[1]
    for code in elements.scripts + elements.styles:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" in policy[1]
    assert len(elements.scripts) == 1 + (parts.charts is not None) and len(elements.styles) == 1


def test_nothing_is_asked_of_a_network(served: Diagnosis, parts: html.Parts) -> None:
    text = html.report(served, parts)
    assert not {name for name, _ in Elements(text).attributes} & {"src", "action", "srcset", "background"}
    assert [value for name, value in Elements(text).attributes if name == "href"] == ["data:,"]
    own = "".join(parts.modules.values()) + parts.style
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(|https?:|url\(", own)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", own)


def hostile(recording: Recording) -> Recording:
    named = [
        replace(
            r,
            id=f"{i}{HOSTILE}",
            external_id=HOSTILE,
            finish_reason=HOSTILE,
            sequences=(Sequence(9, 0, 30, HOSTILE),),
        )
        for i, r in enumerate(recording.requests)
    ]
    model = replace(scenes.MODEL, name=HOSTILE + "x" * 1_000_000)
    return replace(recording, requests=tuple(named), models={"m": model})


def test_a_hostile_trace_makes_no_element_and_no_attribute(parts: html.Parts) -> None:
    from phasetrace import advise, analyze

    plain, recording = scenes.served(), hostile(scenes.served())
    texts = [html.report(advise.diagnose(analyze.breakdown(r)), parts) for r in (plain, recording)]
    assert Elements(texts[1]).tags == Elements(texts[0]).tags
    names = [[name for name, _ in Elements(text).attributes] for text in texts]
    assert names[1] == names[0]
    data = json.dumps(content(texts[1]), ensure_ascii=False)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", data)
    assert len(texts[1]) < len(texts[0]) + 100_000


def test_strings_are_spelled_out_and_cut() -> None:
    assert safe({"a": ["\x1b[2J\u202e", 3, None]}) == {"a": ["\\x1b[2J\\u202e", 3, None]}
    assert safe("two\nlines") == "two\nlines"
    assert safe("x" * 5_000).startswith("x" * 4_000 + "… (5,000")


def test_phases_of_a_request_lie_end_to_end(served: Diagnosis) -> None:
    requests = document(served)["run"]["requests"]
    pieces, ends, arrivals = (column(requests[name]) for name in ("pieces", "piece_end", "arrival"))
    assert sum(pieces) == len(ends) == len(column(requests["piece_phase"]))
    at = 0
    for r, n, arrival in zip(served.breakdown.recording.requests, pieces, arrivals, strict=True):
        assert ends[at + n - 1] - arrival == pytest.approx((r.finished_ns - r.arrival_ns) / 1000, abs=1)
        assert sorted(ends[at : at + n]) == ends[at : at + n]
        at += n


def test_a_request_knows_each_of_its_tokens(served: Diagnosis) -> None:
    run = document(served)["run"]
    end = column(run["steps"]["end"])
    for place, first, last in zip(
        range(24), column(run["requests"]["first_row"]), column(run["requests"]["end_row"]), strict=True
    ):
        r = served.breakdown.requests[place].request
        assert last - first == 30
        assert end[first] == (r.first_token_ns - run["start_ns"]) // 1000
        assert end[last - 1] == (r.last_token_ns - run["start_ns"]) // 1000


def test_prompt_tokens_stand_at_the_step_that_read_them(served: Diagnosis) -> None:
    steps = document(served)["run"]["steps"]
    assert sum(column(steps["prefill"])) == sum(r.prompt_tokens for r in served.breakdown.recording.requests)
    assert max(column(steps["running"])) == 6


def test_stalls_name_their_causes_by_place(served: Diagnosis) -> None:
    run = document(served)["run"]
    (stall,) = run["stalls"]
    assert (stall["request"], stall["by"], stall["cause"]) == (4, [7], "others-prefill")
    assert run["interference"]["cost"] == [[7, 84_000_000]]


def test_steps_beyond_the_limit_are_those_of_fast_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    from phasetrace import advise, analyze
    from phasetrace.render.html import steps

    monkeypatch.setattr(steps, "MOST_STEPS", 100)
    made = advise.diagnose(analyze.breakdown(scenes.generated(10, 40)))
    run = document(made)["run"]
    first = np.array(column(run["requests"]["first_row"]))
    known = np.flatnonzero(first >= 0)
    slowest = np.argsort([-r.e2e_ns for r in made.breakdown.requests])[:2]
    assert sorted(known) == sorted(slowest)
    assert run["steps"]["left_out"] == 320 and len(column(run["steps"]["end"])) == 80


def test_a_thousand_requests_with_half_a_million_tokens_fit_in_two_megabytes(parts: html.Parts) -> None:
    from phasetrace import advise, analyze

    made = advise.diagnose(analyze.breakdown(scenes.generated(1_000, 500)))
    assert len(html.report(made, parts)) < 2_000_000


def test_without_charts_the_report_is_still_made(served: Diagnosis, parts: html.Parts) -> None:
    text = html.report(served, html.Parts(parts.style, parts.modules))
    assert len(Elements(text).scripts) == 1
    assert content(text)["report"]["cause"] == served.cause


def test_failed_requests_are_shown_apart_as_far_as_they_came(served: Diagnosis) -> None:
    bad = replace(
        served.breakdown.recording.requests[2], id="bad", status=RequestStatus.FAILED, error_type="Boom",
        last_token_ns=None, finished_ns=None,
    )  # fmt: skip
    run = document(replace(served, breakdown=replace(served.breakdown, failed=(bad,))))["run"]
    place = run["requests"]["ids"].index("bad")
    assert run["requests"]["ended"][place] == "failed (Boom)"
    assert column(run["requests"]["apart"])[place] == 1 and sum(column(run["requests"]["apart"])) == 1
    assert column(run["requests"]["e2e_ns"])[place] == bad.first_token_ns - bad.arrival_ns


def test_what_is_no_number_is_unknown() -> None:
    assert safe({"a": [float("nan"), float("inf"), 1.5]}) == {"a": [None, None, 1.5]}


def test_a_diagnosis_without_a_time_is_a_page_too(made: ModuleType, parts: html.Parts) -> None:
    bare = made.diagnosis(breakdown=made.breakdown(recording=Recording(), requests=(), warm_up=(), failed=()))
    assert content(html.report(bare, parts))["run"] is None


def test_phases_have_the_colours_of_the_terminal(served: Diagnosis) -> None:
    assert {p["phase"]: p["color"] for p in document(served)["phases"]} == {
        k.value: v.hex for k, v in LOOKS.items()
    }


def test_the_charts_come_with_their_licence(served: Diagnosis, parts: html.Parts) -> None:
    if parts.charts is None:
        missing("this copy was built without charts; building it anew fetches them")
    assert "Permission is hereby granted" in html.report(served, parts)


def test_modules_import_only_what_earlier_ones_export(parts: html.Parts) -> None:
    exported: dict[str, set[str]] = {}
    for name, source in parts.modules.items():
        for names, module in re.findall(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', source, re.MULTILINE):
            wanted = {each.split(" as ")[0].strip() for each in names.split(",")} - {""}
            assert wanted <= exported.get(module, set()), f"{name} imports from {module}"
        found = re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", source, re.MULTILINE)
        exported[name] = set(found)
        assert source.count("\nimport ") + source.startswith("import ") == source.count(' from "./')


def test_every_module_is_in_the_page(parts: html.Parts) -> None:
    there = {path.name for path in files("phasetrace.render.html").joinpath("site").iterdir()}
    assert there == {"style.css", *(f"{name}.js" for name in parts.modules)}
