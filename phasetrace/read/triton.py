"""Triton's own trace file: an array of moments and facts, each with the id of the inference it belongs to.

Its clock counts from the start of the machine. A model in an ensemble names the one around it as `parent_id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phasetrace.mapping import Event, Kind, ResourceSpans, Span, derived_id
from phasetrace.read import ids
from phasetrace.read.dialects import triton
from phasetrace.read.json_text import ANYTHING, values
from phasetrace.read.notes import Notes
from phasetrace.read.otlp_json import as_dict, dicts
from phasetrace.read.source import Source
from phasetrace.semconv import Attribute as A

_DEEPEST = 64  # ensembles in one another


class _Inference:
    """What the file says of one id."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.events: list[Event] = []


def triton_file(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """A span for each request, with the moments of all models that worked for it."""
    found: dict[Any, _Inference] = {}
    for item in values(source, notes, ANYTHING):
        raw = as_dict(item)
        ident = raw.get("id")
        if not isinstance(ident, (int, str)):
            continue
        one = found.setdefault(ident, _Inference())
        for moment in dicts(raw.get("timestamps")):
            try:
                one.events.append(Event(str(moment["name"]), ids.nanoseconds(moment["ns"])))
            except (KeyError, TypeError, ValueError, OverflowError):
                notes.damaged += 1
        one.facts |= {key: raw[key] for key in ("model_name", "parent_id", "request_id") if raw.get(key)}
    for ident, one in found.items():
        if (outer := _outermost(ident, found)) != ident:
            found[outer].events += one.events
    notes.say(
        f"times in {notes.name} count from the start of the machine: no other file's can be beside them"
    )
    for number, (ident, one) in enumerate(found.items()):
        if _outermost(ident, found) == ident and one.events:
            notes.spans(triton.REQUEST)
            yield ResourceSpans({A.SERVICE_NAME: "triton"}, [_span(number, ident, one)])


def _outermost(ident: Any, found: dict[Any, _Inference]) -> Any:
    for _ in range(_DEEPEST):
        parent = found[ident].facts.get("parent_id")
        if not isinstance(parent, (int, str)) or parent not in found or parent == ident:
            break
        ident = parent
    return ident


def _span(number: int, ident: int | str, one: _Inference) -> Span:
    facts = (
        (A.REQUEST_MODEL, one.facts.get("model_name")),
        (A.REQUEST_ID, one.facts.get("request_id", ident)),
    )
    return Span(
        trace_id=derived_id(16, "triton", number, ident),
        span_id=derived_id(8, "triton", number, ident),
        parent_span_id=None,
        name=triton.REQUEST,
        start_ns=min(event.time_ns for event in one.events),
        end_ns=max(event.time_ns for event in one.events),
        kind=Kind.SERVER,
        attributes={key: str(value) for key, value in facts if value is not None},
        events=tuple(one.events),
    )
