"""Spans by what stands in them, for what the dialects make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phasetrace.model import Recording, Request
from phasetrace.read import read

BEGIN, MS = 1_700_000_000_000_000_000, 1_000_000
LATENCY = "gen_ai.latency."


def span(name: str, begin: float = 0, end: float = 1000, **fields: Any) -> dict[str, Any]:
    """A span by its times in milliseconds; `parent` is the number of another one."""
    number = fields.pop("number", 1)
    parent = fields.pop("parent", None)
    attributes = [{"key": k, "value": value(v)} for k, v in fields.pop("attributes", {}).items()]
    found = {
        "traceId": f"{fields.pop('trace', 1):032x}",
        "spanId": f"{number:016x}",
        "name": name,
        "kind": 2,
        "startTimeUnixNano": str(BEGIN + int(begin * MS)),
        "endTimeUnixNano": str(BEGIN + int(end * MS)),
        "attributes": attributes,
    }
    if parent is not None:
        found["parentSpanId"] = f"{parent:016x}"
    if (events := fields.pop("events", None)) is not None:
        found["events"] = [{"name": n, "timeUnixNano": str(BEGIN + int(t * MS))} for n, t in events.items()]
    return found | fields


def value(plain: Any) -> dict[str, Any]:
    match plain:
        case bool():
            return {"boolValue": plain}
        case int():
            return {"intValue": str(plain)}
        case float():
            return {"doubleValue": plain}
        case list():
            return {"arrayValue": {"values": [value(item) for item in plain]}}
    return {"stringValue": plain}


@pytest.fixture
def reading(tmp_path: Path) -> Any:
    def one(*spans: dict[str, Any], scope: str = "", **resource: Any) -> Recording:
        attributes = [{"key": k.replace("__", "."), "value": value(v)} for k, v in resource.items()]
        group = {
            "resource": {"attributes": attributes},
            "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}],
        }
        (tmp_path / "trace.json").write_text(json.dumps({"resourceSpans": [group]}))
        return read(tmp_path / "trace.json")

    return one


def at(request: Request) -> dict[str, float]:
    """The known moments in milliseconds from the arrival."""
    names = ("received_ns", "scheduled_ns", "first_token_ns", "last_token_ns", "finished_ns")
    found = {name.removesuffix("_ns"): getattr(request, name) for name in names}
    return {name: (t - request.arrival_ns) / MS for name, t in found.items() if t is not None}


def said(found: Recording) -> str:
    return "\n".join(defect.defect for defect in found.defects)


VLLM = {
    LATENCY + "time_to_first_token": 0.5,
    LATENCY + "e2e": 1.0,
    LATENCY + "time_in_queue": 0.1,
    LATENCY + "time_in_model_prefill": 0.3,
    LATENCY + "time_in_model_decode": 0.45,
    "gen_ai.usage.prompt_tokens": 100,
    "gen_ai.usage.completion_tokens": 10,
}
