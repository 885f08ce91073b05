"""What a user does wrong gets one clear line on stderr and exit code 2."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.real import phasetrace

Make = Callable[[Path], list[str]]


def file(folder: Path, text: str) -> str:
    path = folder / "input.json"
    path.write_text(text)
    return str(path)


def span(**attributes: str) -> str:
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    times = {"startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000"}
    made = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "GET /", **times, "attributes": pairs}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [made]}]}]})


MISTAKES: dict[str, Make] = {
    "a missing file": lambda folder: ["diagnose", str(folder / "no.json")],
    "a folder": lambda folder: ["diagnose", str(folder)],
    "an empty file": lambda folder: ["diagnose", file(folder, "")],
    "blank lines": lambda folder: ["diagnose", file(folder, "\n\n")],
    "not JSON": lambda folder: ["diagnose", file(folder, "Traceback (most recent call last):\n")],
    "half a line of JSON": lambda folder: ["diagnose", file(folder, span()[:70])],
    "JSON of another kind": lambda folder: ["diagnose", file(folder, '{"hello": [1, 2]}')],
    "a number": lambda folder: ["diagnose", file(folder, "42\n")],
    "a trace without LLM spans": lambda folder: ["diagnose", file(folder, span(http="GET"))],
    "shown: a missing file": lambda folder: ["show", str(folder / "no.json")],
    "shown: a trace without LLM spans": lambda folder: ["show", file(folder, span())],
    "a command that does not exist": lambda folder: [
        *("run", "-o", str(folder / "t.json"), "--", "no-such-command"),
    ],
    "a command of ours that does not exist": lambda folder: ["dignose", "x"],
    "an option that does not exist": lambda folder: ["run", "--no-such-option", "--", "true"],
    "no command": lambda folder: ["run"],
    "an output in no folder": lambda folder: ["run", "-o", str(folder / "no" / "t.json"), "--", "true"],
    "an output that is a folder": lambda folder: ["run", "-o", str(folder), "--", "true"],
    "a goal that does not exist": lambda folder: ["diagnose", file(folder, span()), "--goal", "speed"],
    "an SLO that cannot be read": lambda folder: ["diagnose", file(folder, span()), "--slo", "ttft=soon"],
    "nothing to recover": lambda folder: ["recover", str(folder / "no")],
    "no such cause": lambda folder: ["explain", "no-such-cause"],
    "an endpoint that is none": lambda folder: [
        *("run", "-o", str(folder / "t.json"), "--otlp", "ftp://x", "--", "true"),
    ],
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_a_mistake_gets_one_line(tmp_path: Path, mistake: str) -> None:
    done = phasetrace(*MISTAKES[mistake](tmp_path), cwd=tmp_path)
    print(done.stderr)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("phasetrace: ")
