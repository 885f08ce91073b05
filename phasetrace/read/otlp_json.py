"""OTLP JSON, as lines or as one document, of phasetrace or of anyone else -> Recording."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import orjson

from phasetrace.errors import NothingRecordedError, TraceFormatError
from phasetrace.mapping import Attributes, Kind, ResourceSpans, Span, Value, from_spans
from phasetrace.model import Defect, Recording
from phasetrace.read.llm_spans import is_llm_span, requests_of
from phasetrace.read.source import LONGEST, Source
from phasetrace.semconv import DERIVED_SPANS, Scope
from phasetrace.semconv import Attribute as A

# Lines that hold only spans of phases or tokens: what they say is in the steps, and they are most of a file.
_PASSED_OVER = tuple(f'"scope":{{"name":"{scope}"'.encode() for scope in (Scope.PHASES, Scope.TOKENS))
_LOOK = 4096  # where in a line that stands
_TELLING = ("gen_ai.", str(A.ID))  # what keys of an LLM request's attributes begin with
_LATEST_NS = 1 << 62  # in the year 2116; differences and sums of two stay in 64 bits
_WRAPPED = 8  # times, at most
_ERROR = (2, "2", "STATUS_CODE_ERROR")


def read_otlp_json(source: Source) -> Recording:
    """One recording of all lines.

    Raises:
        TraceFormatError: no line of it is JSON.
        NothingRecordedError: there is no LLM request in it.
    """
    return _Reading(source).recording()


class _Reading:
    """One pass over a source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._broken: list[int] = []  # numbers of the lines that are no JSON
        self._documents = 0
        self._ours = False
        self._damaged = 0  # spans that lack what every span has
        self._foreign: list[tuple[Span, Attributes]] = []

    def recording(self) -> Recording:
        recorded = from_spans(self._groups())
        if not self._documents:
            raise TraceFormatError(f"{self._source.name} holds no complete JSON; was its writing cut short?")
        requests = requests_of(self._foreign)
        if not self._ours and not requests:
            damage = "; ".join(defect.defect for defect in self._defects())
            hint = damage or "record one with `phasetrace run -- COMMAND`"
            raise NothingRecordedError(f"{self._source.name} holds no LLM request; {hint}")
        found = replace(
            recorded,
            requests=recorded.requests + requests,
            defects=recorded.defects + self._defects(),
        )
        return found if self._ours else replace(found, source="otlp")

    def _defects(self) -> tuple[Defect, ...]:
        name = self._source.name
        defects = []
        broken = self._broken
        cut = self._open_end and broken[-1:] == [self._last_line]
        if cut:
            broken = broken[:-1]
        if cut or self._source.cut:
            defects.append(Defect(f"the last line of {name} is cut off: what was written last is missing"))
        if self._damaged:
            defects.append(Defect(f"{self._damaged} damaged spans of {name} were left out"))
        if broken:
            defects.append(
                Defect(f"{len(broken)} lines of {name} are not JSON (the first is line {broken[0]})")
            )
        return tuple(defects)

    def _groups(self) -> Iterator[ResourceSpans]:
        for document in self._parsed():
            self._documents += 1
            for resource in _resources(document):
                yield self._group(resource)

    def _parsed(self) -> Iterator[Any]:
        """Each line's value, or that of the whole where its first line is no value by itself."""
        self._last_line, self._open_end = 0, False
        lines = self._source.lines()
        for number, line in enumerate(lines, 1):
            self._last_line, self._open_end = number, not line.endswith(b"\n")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            head = line[:_LOOK]
            if any(scope in head for scope in _PASSED_OVER):
                if self._open_end:  # not worth reading, and yet cut
                    self._broken.append(number)
                self._documents += 1
                self._ours = True
                continue
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError:
                if number == 1 and not self._open_end and len(line) < _LOOK:
                    yield from self._one_document(line, lines)
                    return
                self._broken.append(number)

    def _one_document(self, first: bytes, rest: Iterable[bytes]) -> Iterator[Any]:
        whole = bytearray(first)  # pieces to be joined would be in memory twice
        for line in rest:
            whole += line
            if len(whole) > LONGEST:
                raise TraceFormatError(
                    f"{self._source.name} is one JSON value of more than {LONGEST:,} bytes"
                )
        try:
            document = orjson.loads(whole)
        except orjson.JSONDecodeError:  # lines after all, with a broken first one
            self._broken.append(1)
            for number, line in enumerate(BytesIO(whole[len(first) :]), 2):
                self._last_line, self._open_end = number, not line.endswith(b"\n")
                try:
                    if line.strip():
                        yield orjson.loads(line)
                except orjson.JSONDecodeError:
                    self._broken.append(number)
        else:
            del whole
            yield document

    def _group(self, resource: dict[str, Any]) -> ResourceSpans:
        attributes = _attributes(_dict(resource.get("resource")).get("attributes"))
        group = ResourceSpans(attributes, [])
        scopes = resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans")
        for scope in _list(scopes):
            ours = _dict(scope.get("scope")).get("name") in tuple(Scope)
            self._ours = self._ours or ours
            for raw in _list(scope.get("spans")):
                if (str(raw.get("name")) in DERIVED_SPANS) if ours else not _tells_of_llm(raw):
                    continue
                span = _span(raw)
                if span is None:
                    self._damaged += 1
                    continue
                if ours or span.get(A.ID) is not None:
                    self._ours = True
                    group.spans.append(span)
                elif is_llm_span(span):
                    self._foreign.append((span, attributes))
        return group


def _resources(document: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The ResourceSpans of a document, whatever they are wrapped in."""
    if depth > _WRAPPED:
        return
    if isinstance(document, list):
        for item in document:
            yield from _resources(item, depth + 1)
    elif isinstance(document, dict):
        if "resourceSpans" in document:
            yield from _list(document["resourceSpans"])
        elif "scopeSpans" in document:  # a bare one a line, as Java's logging exporter writes
            yield document
        else:
            for wrapper in ("result", "trace"):
                yield from _resources(document.get(wrapper), depth + 1)


def _tells_of_llm(raw: dict[str, Any]) -> bool:
    """Whether a span is worth decoding; most spans of an application are not."""
    pairs = raw.get("attributes")
    if not isinstance(pairs, list):
        return False
    return any(isinstance(p, dict) and str(p.get("key")).startswith(_TELLING) for p in pairs)


def _span(raw: dict[str, Any]) -> Span | None:
    """A span; None where it lacks what every span has."""
    try:
        start = int(raw["startTimeUnixNano"])
        end = int(raw.get("endTimeUnixNano") or start)
        if not (0 <= start < _LATEST_NS and 0 <= end < _LATEST_NS):
            return None
        status = _dict(raw.get("status"))
        failed = status.get("code") in _ERROR
        return Span(
            trace_id=str(raw["traceId"]).lower(),
            span_id=str(raw["spanId"]).lower(),
            parent_span_id=str(raw.get("parentSpanId") or "").lower() or None,
            name=str(raw.get("name", "")),
            start_ns=start,
            end_ns=end,
            kind=_kind(raw.get("kind")),
            attributes=_attributes(raw.get("attributes")),
            error=str(status.get("message") or "error") if failed else None,
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _kind(value: Any) -> Kind:
    try:
        return Kind(value)
    except ValueError:
        return Kind.UNSPECIFIED


def _attributes(pairs: Any) -> Attributes:
    found: Attributes = {}
    for pair in _list(pairs):
        value = _value(_dict(pair.get("value")))
        if value is not None:
            found[str(pair.get("key"))] = value
    return found


def _value(value: dict[str, Any]) -> Value | None:
    """An attribute's value; None for an empty one, or one that cannot be understood."""
    for kind, raw in value.items():
        try:
            match kind:
                case "stringValue":
                    return str(raw)
                case "intValue":
                    return int(raw)
                case "doubleValue":
                    return float(raw)
                case "boolValue":
                    return bool(raw)
                case "bytesValue":
                    return b64decode(raw)
                case "arrayValue":
                    items = [_value(item) for item in _list(_dict(raw).get("values")) if _is_plain(item)]
                    return [item for item in items if item is not None]  # type: ignore[return-value]
        except (TypeError, ValueError, OverflowError):
            return None
    return None


def _is_plain(value: dict[str, Any]) -> bool:
    return "arrayValue" not in value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
