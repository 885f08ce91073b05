"""What Perfetto is given: lines, slices, counters and arrows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from phasetrace import analyze
from phasetrace.emit.perfetto import to_perfetto
from phasetrace.emit.perfetto.tracks import Tracks
from phasetrace.model import Breakdown
from tests.builders import generation, process, recording, request
from tests.emit.perfetto.scene import STEPS_MS, server


def events(found: Breakdown) -> list[dict[str, Any]]:
    document = json.loads(b"".join(to_perfetto(found)))
    return document["traceEvents"]  # type: ignore[no-any-return]


def test_a_line_for_the_steps_and_one_for_each_request() -> None:
    made = events(analyze.breakdown(generation(tokens=4)))
    names = [e["args"]["name"] for e in made if e["ph"] == "M" and "name" in e["args"]]
    assert names == ["app", "engine steps", "text_completion tiny r1"]
    slices = [e for e in made if e["ph"] == "X"]
    by_line = {line: [e["name"] for e in slices if e["tid"] == line] for line in (1, 2)}
    assert by_line[1] == ["prefill", *["decode"] * 3]
    assert by_line[2] == ["text_completion tiny", "prefill", "decode", *["token"] * 3]
    request = next(e for e in slices if e["tid"] == 2)
    assert request["ts"] == 0 and all(e["ts"] + e["dur"] <= request["dur"] for e in slices)


def test_steps_say_what_they_did() -> None:
    steps = [e for e in events(server()) if e.get("cat") == "step"]
    assert [e["dur"] for e in steps] == [ms * 1000 for ms in STEPS_MS]
    assert [e["name"] for e in steps[:4]] == [
        "prefill",
        *["decode"] * 2,
        "prefill and decode",
    ]
    assert steps[3]["args"]["prompt tokens read"] == 400


def test_counters_change_when_steps_do_and_end_with_them() -> None:
    values: dict[str, list[int]] = {}
    for event in events(server()):
        if event["ph"] == "C":
            ((key, value),) = event["args"].items()
            values.setdefault(f"{event['name']} {key}", []).append(value)
    assert values == {
        "sequences running": [1, 2, 1, 0],
        "requests waiting": [0, 1, 0],
        "KV blocks used": [4, 9, 14, 4],
        "prompt tokens read": [64, 0, 400, 300, 0, 0],
    }


def test_arrows_lead_from_the_reader_to_who_waited() -> None:
    made = events(server())
    lines = {e["args"]["name"].split()[-1]: e["tid"] for e in made if e["name"] == "thread_name"}
    arrows = [(e["ph"], e["tid"], e["id"]) for e in made if e["ph"] in "sf"]
    both = [("s", lines["second"]), ("f", lines["first"])]
    assert arrows == [(*end, number) for number in (1, 2) for end in both]


def test_streams_that_run_at_once_have_lines_of_their_own() -> None:
    one, other, later = (
        generation(name=name, stream=number, begin=begin)
        for name, number, begin in (("a", 1, 10**18), ("b", 2, 10**18 + 5), ("c", 3, 2 * 10**18))
    )
    found = recording(
        *(r for part in (one, other, later) for r in part.requests),
        steps=[s for part in (one, other, later) for s in part.steps],
    )
    made = events(analyze.breakdown(found))
    names = [e["args"]["name"] for e in made if e["name"] == "thread_name"]
    assert names[:2] == ["engine steps", "engine steps 2"] and len(names) == 5


def test_what_became_of_a_request_is_its_category() -> None:
    kinds = {e["cat"] for e in events(server()) if e["ph"] == "X"}
    assert kinds == {"diagnosed", "failed", "step", "pause", "stage", "stall"}


def test_without_steps_there_are_requests_alone() -> None:
    made = events(analyze.breakdown(recording(request())))
    assert [e["name"] for e in made if e["ph"] == "X"] == ["text_completion tiny"]


def test_names_from_elsewhere_are_cut_and_valid() -> None:
    hostile = "<script>alert(1)</script>\x1b[31m\u202e" + "x" * 1_000_000
    found = generation(name=hostile, external_id=hostile + "\ud800", error_type="\ud800" + hostile)
    data = b"".join(to_perfetto(analyze.breakdown(replace(found, processes=()))))
    assert len(data) < 20_000 and json.loads(data)


def test_processes_have_their_ids_and_never_the_same() -> None:
    made = [process("a" * 16), process("b" * 16), replace(process("c" * 16), pid=7)]
    tracks = Tracks(made, 0)
    named = [
        event for one in made for event in tracks.line(one.key, "x", "x") if event["name"] == "process_name"
    ]
    assert [event["pid"] for event in named] == [1, 2, 7]
