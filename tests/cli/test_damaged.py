"""Whatever stands in a trace: an answer or one line that refuses it, never a traceback."""

from __future__ import annotations

import base64
import copy
import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from phasetrace.cli import main
from phasetrace.mapping.columns import pack

Captured = pytest.CaptureFixture[str]
COMMANDS = (
    ["diagnose"],
    ["diagnose", "--format", "json"],
    ["diagnose", "--format", "markdown"],
    ["diagnose", "--goal", "ttft", "--slo", "chat"],
    ["show"],
    ["show", "--list"],
)


def packed(*values: int) -> dict[str, str]:
    return {"bytesValue": base64.b64encode(pack(values)).decode()}


BOMB = {"bytesValue": base64.b64encode(zlib.compress(bytes(80 << 20))).decode()}
PLAIN = [None, True, 0, -1, 1.5, 1e308, 2**63, -(2**63), 2**70, "", "x", "NaN", "9" * 5000, [], {}, [[]], [5]]
VALUES: list[Any] = [
    {"stringValue": "x"},
    {"stringValue": "²"},
    {"stringValue": "9" * 5000},
    {"intValue": "-5"},
    {"intValue": str(2**63)},
    {"intValue": 0},
    {"doubleValue": "NaN"},
    {"doubleValue": 1e308},
    {"boolValue": True},
    {"bytesValue": "!"},
    {"arrayValue": {}},
    {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "a"}]}},
    {"arrayValue": {"values": [{"intValue": str(2**70)}]}},
    {"arrayValue": {"values": [{"arrayValue": {"values": []}}]}},
    {"kvlistValue": {"values": [{"key": "a", "value": {"intValue": 1}}]}},
    packed(),
    packed(1, 2, 3),
    packed(-(2**63), 2**63 - 1),
    packed(*[-5] * 40),
    packed(*[2**62] * 40),
    BOMB,
]


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where each value of a document stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, item in items for path in paths(item, (*at, key)))]


def damaged(documents: list[Any], seed: int) -> list[Any]:
    """One to three values replaced, doubled or taken out; attributes more often than others."""
    chance = random.Random(seed)
    row = chance.randrange(len(documents))
    changed = copy.deepcopy(documents[row])
    for _ in range(chance.choice([1, 1, 2, 3])):
        everywhere = [path for path in paths(changed) if path]
        attributes = [path for path in everywhere if path[-1] == "value"]
        *way, last = chance.choice(attributes if attributes and chance.random() < 0.7 else everywhere)
        holder = changed
        for key in way:
            holder = holder[key]
        what = chance.random()
        if what < 0.1:
            del holder[last]
        elif what < 0.2 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        else:
            holder[last] = chance.choice(VALUES if last == "value" and what < 0.9 else PLAIN)
    return [*documents[:row], changed, *documents[row + 1 :]]


def check(path: Path, arguments: list[str], capsys: Captured) -> None:
    code = main([*arguments, str(path)])
    out, err = capsys.readouterr()
    assert code in (0, 2)
    assert out if code == 0 else err.count("\n") == 1


@pytest.mark.parametrize("seed", range(120))
def test_a_value_of_another_kind(trace: Path, seed: int, capsys: Captured) -> None:
    lines = [line for line in trace.read_bytes().splitlines() if b"phasetrace.tokens" not in line[:4096]]
    documents = damaged([json.loads(line) for line in lines], seed)
    trace.write_text("\n".join(json.dumps(document) for document in documents) + "\n")
    check(trace, COMMANDS[seed % len(COMMANDS)], capsys)


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_what_is_damaged_is_compared_or_refused(trace: Path, seed: int, capsys: Captured) -> None:
    lines = [line for line in trace.read_bytes().splitlines() if b"phasetrace.tokens" not in line[:4096]]
    documents = damaged([json.loads(line) for line in lines], seed)
    after = trace.with_name("after.json")
    after.write_text("\n".join(json.dumps(document) for document in documents) + "\n")
    form = ("text", "json", "markdown")[seed % 3]
    check(after, ["compare", "--format", form, str(trace)], capsys)


def foreign(**fields: Any) -> bytes:
    """A trace with one span of another tool."""
    attributes = {
        "gen_ai.operation.name": {"stringValue": "chat"},
        "gen_ai.request.model": {"stringValue": "m"},
        "gen_ai.usage.output_tokens": {"intValue": "10"},
        "gen_ai.latency.time_to_first_token": {"doubleValue": 0.2},
    } | fields.pop("attributes", {})
    span = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span | fields]}]}]}).encode() + b"\n"


@pytest.mark.parametrize("field", ["startTimeUnixNano", "endTimeUnixNano", "name", "spanId", "parentSpanId"])
@pytest.mark.parametrize("value", PLAIN, ids=lambda value: repr(value)[:20])
def test_a_foreign_span_with_an_impossible_field(
    tmp_path: Path, field: str, value: Any, capsys: Captured
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(foreign(**{field: value}))
    for arguments in COMMANDS:
        if main([*arguments, str(path)]) == 0:
            out = capsys.readouterr().out
            assert not field.endswith("Nano") or "healthy" not in out
        else:
            assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "key",
    [
        "gen_ai.operation.name",
        "gen_ai.request.model",
        "gen_ai.usage.output_tokens",
        "gen_ai.latency.time_to_first_token",
    ],
)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:40])
def test_a_foreign_attribute_of_another_kind(tmp_path: Path, key: str, value: Any, capsys: Captured) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(foreign(attributes={key: value}))
    check(path, COMMANDS[0], capsys)
    check(path, COMMANDS[1], capsys)


@pytest.mark.parametrize("depth", [500, 1000, 1020, 100_000])
@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"result":', b"}")])
def test_deep_nesting(trace: Path, depth: int, begin: bytes, end: bytes, capsys: Captured) -> None:
    trace.write_bytes(trace.read_bytes() + begin * depth + b"[]" + end * depth + b"\n")
    check(trace, COMMANDS[0], capsys)


def test_a_cut_at_any_byte_is_said(trace: Path, capsys: Captured) -> None:
    whole = trace.read_bytes()
    for length in range(1, len(whole), 997):
        trace.write_bytes(whole[:length])
        code = main(["diagnose", str(trace)])
        out, err = capsys.readouterr()
        assert "cut" in out + err
        assert code in (0, 2)
