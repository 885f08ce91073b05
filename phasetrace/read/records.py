"""Records of requests, one JSON object each: what engines put into answers and logs where nobody traces.

llama.cpp's `timings`, TensorRT-LLM's `timing_metrics`, SGLang's `meta_info`, Dynamo's `request_end` lines,
and the `metrics` of vLLM's offline outputs. Each becomes a span with the durations between its times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from phasetrace.mapping import Attributes, Kind, ResourceSpans, Span, derived_id
from phasetrace.read.dialects.dialect import Count, Dialect, Duration
from phasetrace.read.dialects.records import (
    LLAMA_CPP,
    META_INFO,
    PERF_METRICS,
    REQUEST_END,
    REQUEST_METRICS,
    SCOPE,
)
from phasetrace.read.ids import LATEST_NS
from phasetrace.read.json_text import ANYTHING, values
from phasetrace.read.notes import Notes
from phasetrace.read.otlp_json import as_dict, dicts
from phasetrace.read.source import Source
from phasetrace.semconv import Attribute as A

DYNAMO = "dynamo.request.trace.v1"
_SECOND, _MS = 10**9, 10**6
_LONGEST_NS = 30 * 86_400 * _SECOND  # two times of one request that are further apart come from two clocks


class Record:
    """What a record says: when it was, the durations in it, and what was counted."""

    def __init__(self, dialect: Dialect, ident: Any, model: Any, begin: int | None, end: int | None) -> None:
        self.dialect = dialect
        self.ident = ident
        self.model = model
        self.begin = begin
        self.end = end
        self.numbers: Attributes = {}
        self.reason: Any = None

    def lasts(self, duration: Duration, ns: float | None) -> None:
        """A duration, where it is known."""
        if ns is not None:
            self.numbers[duration.value] = ns

    def between(self, duration: Duration, begin: int | None, end: int | None) -> None:
        """A duration from one time to another, where both are known."""
        if begin is not None and end is not None:
            self.numbers[duration.value] = end - begin

    def counts(self, count: Count, number: Any) -> None:
        """A number of tokens, where it is known."""
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            self.numbers[count.value] = number


def records(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """A span for each record; objects that are none are passed over."""
    last = 0
    number = 0
    for item in values(source, notes, ANYTHING):
        for record in _records(as_dict(item)):
            number += 1
            notes.spans(record.dialect.writer)
            span = _span(record, number, last, notes)
            if span is not None:
                last = span.end_ns
                yield ResourceSpans({A.SERVICE_NAME: record.dialect.engine}, [span], scope=SCOPE)


def _records(item: dict[str, Any]) -> Iterator[Record]:
    for place, read in _READERS.items():
        for holder in (item, as_dict(item.get("perf_metrics")), as_dict(item.get("event"))):
            if isinstance(holder.get(place), dict) and (found := read(holder[place], {**item, **holder})):
                yield found
                return
    for choice in dicts(item.get("choices")):
        if isinstance(choice.get("meta_info"), dict) and (found := _meta_info(choice["meta_info"], item)):
            yield found


def _timings(timings: dict[str, Any], item: dict[str, Any]) -> Record | None:
    prompt, predicted = _ns(timings, "prompt_ms", _MS), _ns(timings, "predicted_ms", _MS)
    if prompt is None or predicted is None:
        return None
    created = _ns(item, "created", _SECOND)
    total = prompt + predicted
    begin = created - total if created is not None and created > total else None
    found = Record(LLAMA_CPP, item.get("id"), item.get("model"), begin, created)
    found.lasts(Duration.E2E, total)
    found.lasts(Duration.QUEUE, 0)
    found.lasts(Duration.PREFILL, prompt)
    found.lasts(Duration.DECODE, predicted)
    cached = _number(timings, "cache_n")
    usage = as_dict(item.get("usage"))
    whole = _number(usage, "prompt_tokens")
    computed = _number(timings, "prompt_n")
    if whole is None and computed is not None:
        whole = computed + (cached or 0)
    elif whole is not None and cached is None and computed is not None:
        cached = max(0, whole - computed)  # versions that count no cached tokens leave them out of prompt_n
    found.counts(Count.PROMPT, whole)
    found.counts(Count.CACHED, cached)
    found.counts(Count.OUTPUT, _number(timings, "predicted_n"))
    return found


def _timing_metrics(metrics: dict[str, Any], item: dict[str, Any]) -> Record | None:
    arrived = _ns(metrics, "server_arrival_time", _SECOND)
    engine = _ns(metrics, "arrival_time", _SECOND)
    begin = engine if arrived is None else arrived
    scheduled, first = (
        _ns(metrics, "first_scheduled_time", _SECOND),
        _ns(metrics, "first_token_time", _SECOND),
    )
    last = _ns(metrics, "last_token_time", _SECOND)
    told = _ns(metrics, "server_first_token_time", _SECOND)
    found = Record(PERF_METRICS, item.get("request_id"), item.get("model"), begin, last or told or first)
    found.between(Duration.FRONTEND, arrived, engine)
    found.between(Duration.QUEUE, engine, scheduled)
    found.between(Duration.PREFILL, scheduled, first)
    found.between(Duration.TTFT, begin, first)
    found.between(Duration.DECODE, first, last)
    return found


def _meta_info(info: dict[str, Any], item: dict[str, Any]) -> Record | None:
    e2e = _ns(info, "e2e_latency", _SECOND)
    received, finished = _ns(info, "request_received_ts", _SECOND), _ns(info, "request_finished_ts", _SECOND)
    if e2e is None and (received is None or finished is None):
        return None
    found = Record(META_INFO, info.get("id"), item.get("model"), received, finished)
    found.lasts(Duration.E2E, e2e)
    found.between(Duration.FRONTEND, received, _ns(info, "api_server_dispatch_finish_ts", _SECOND))
    found.lasts(Duration.QUEUE, _ns(info, "queue_time", _SECOND))
    found.between(Duration.TTFT, received, _ns(info, "response_sent_to_client_ts", _SECOND))
    # These two are of another clock in some versions; as an interval they hold in all.
    entered, prefilled = _ns(info, "forward_entry_time", _SECOND), _ns(info, "prefill_finished_time", _SECOND)
    found.between(Duration.PREFILL, entered, prefilled)
    found.counts(Count.PROMPT, info.get("prompt_tokens"))
    found.counts(Count.OUTPUT, info.get("completion_tokens"))
    found.counts(Count.CACHED, info.get("cached_tokens"))
    reason = info.get("finish_reason")
    found.reason = as_dict(reason).get("type") if isinstance(reason, dict) else reason
    return found


def _request_end(request: dict[str, Any], item: dict[str, Any]) -> Record | None:
    if item.get("schema") != DYNAMO or item.get("event_type") != "request_end":
        return None
    begin, total = _ns(request, "request_received_ms", _MS), _ns(request, "total_time_ms", _MS)
    end = _ns(item, "event_time_unix_ms", _MS)
    if total is not None:
        begin = end - total if begin is None and end is not None else begin
        end = begin + total if begin is not None else end
    found = Record(REQUEST_END, request.get("request_id"), request.get("model"), begin, end)
    found.lasts(Duration.E2E, total)
    found.lasts(Duration.TTFT, _ns(request, "ttft_ms", _MS))
    found.lasts(Duration.QUEUE, _ns(request, "prefill_wait_time_ms", _MS))
    found.lasts(Duration.PREFILL, _ns(request, "prefill_time_ms", _MS))
    found.lasts(Duration.TPOT, _ns(request, "avg_itl_ms", _MS))
    replay = as_dict(request.get("replay"))
    found.counts(Count.PROMPT, request.get("input_tokens", replay.get("input_length")))
    found.counts(Count.OUTPUT, request.get("output_tokens"))
    found.counts(Count.CACHED, request.get("cached_tokens"))
    return found


def _request_metrics(metrics: dict[str, Any], item: dict[str, Any]) -> Record | None:
    """vLLM's; since its version 1 arrival is of the wall clock and the rest of the engine core's own."""
    if "first_token_ts" in metrics:
        return _request_state(metrics, item)
    begin, first = _ns(metrics, "arrival_time", _SECOND), _ns(metrics, "first_token_time", _SECOND)
    scheduled = _ns(metrics, "first_scheduled_time", _SECOND)
    finished = _ns(metrics, "finished_time", _SECOND) or _ns(metrics, "last_token_time", _SECOND)
    if begin is None or first is None:
        return None
    found = Record(REQUEST_METRICS, item.get("request_id"), item.get("model"), begin, finished)
    found.between(Duration.TTFT, begin, first)
    found.between(Duration.QUEUE, begin, scheduled)
    found.between(Duration.PREFILL, scheduled, first)
    found.between(Duration.DECODE, first, _ns(metrics, "last_token_time", _SECOND))
    _count_offline(found, item)
    return found


def _request_state(metrics: dict[str, Any], item: dict[str, Any]) -> Record | None:
    begin, ttft = _ns(metrics, "arrival_time", _SECOND), _ns(metrics, "first_token_latency", _SECOND)
    queued, scheduled, first, last = (
        _ns(metrics, f"{name}_ts", _SECOND) for name in ("queued", "scheduled", "first_token", "last_token")
    )
    if begin is None or ttft is None or first is None or last is None:
        return None
    end = begin + ttft + max(0, last - first)
    found = Record(REQUEST_METRICS, item.get("request_id"), item.get("model"), begin, end)
    found.lasts(Duration.TTFT, ttft)
    found.between(Duration.QUEUE, queued, scheduled)
    found.between(Duration.PREFILL, scheduled, first)
    found.between(Duration.DECODE, first, last)
    _count_offline(found, item)
    found.counts(Count.OUTPUT, metrics.get("num_generation_tokens"))
    return found


def _count_offline(found: Record, item: dict[str, Any]) -> None:
    found.counts(Count.PROMPT, item.get("num_input_tokens", item.get("prompt_tokens")))
    found.counts(Count.OUTPUT, item.get("num_generated_tokens", item.get("generated_tokens")))
    found.counts(Count.CACHED, item.get("num_cached_tokens"))


_READERS: Mapping[str, Callable[[dict[str, Any], dict[str, Any]], Record | None]] = {
    "timings": _timings,
    "timing_metrics": _timing_metrics,
    "meta_info": _meta_info,
    "request": _request_end,
    "metrics": _request_metrics,
}


def _span(record: Record, number: int, last: int, notes: Notes) -> Span | None:
    begin, end = record.begin, record.end
    e2e = record.numbers.get(Duration.E2E.value)
    lasts = int(e2e) if isinstance(e2e, (int, float)) and 0 <= e2e < _LONGEST_NS else 0
    if begin is None:
        begin = end - lasts if end is not None and end >= lasts else last + _SECOND
        notes.say(f"records in {notes.name} do not say when requests came: their load cannot be judged")
    if end is None:
        end = begin + lasts
    if abs(end - begin) > _LONGEST_NS:
        notes.say(f"records in {notes.name} mix times of two clocks: left out")
        return None
    if not (0 <= begin < LATEST_NS and 0 <= end < LATEST_NS):
        notes.damaged += 1
        return None
    attributes = dict(record.numbers)
    for key, value in ((A.REQUEST_ID, record.ident), (A.REQUEST_MODEL, record.model)):
        if value is not None:
            attributes[key] = str(value)
    if record.reason is not None:
        attributes[A.FINISH_REASONS] = [str(record.reason)]
    return Span(
        trace_id=derived_id(16, "record", number, record.ident),
        span_id=derived_id(8, "record", number, record.ident),
        parent_span_id=None,
        name=record.dialect.writer,
        start_ns=begin,
        end_ns=end,
        kind=Kind.SERVER,
        attributes=attributes,
    )


def _ns(holder: dict[str, Any], key: str, unit: int) -> int | None:
    value = _number(holder, key)
    return round(value * unit) if value is not None and value >= 0 and value * unit < LATEST_NS else None


def _number(holder: dict[str, Any], key: str) -> float | None:
    value = holder.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return value
