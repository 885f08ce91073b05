"""Spans of other tools that tell of an LLM request -> Request, as far as the shared attributes reach."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from phasetrace.mapping import Attributes, Kind, Span
from phasetrace.model import Request, RequestStatus, Sequence
from phasetrace.semconv import Attribute as A

_OPERATIONS = {"chat", "text_completion", "generate_content"}
_LATENCY = "gen_ai.latency."
_SINCE_RENAMED = {  # today's name -> older ones that traces still carry
    A.PROVIDER: ("gen_ai.system",),
    A.INPUT_TOKENS: ("gen_ai.usage.prompt_tokens",),
    A.OUTPUT_TOKENS: ("gen_ai.usage.completion_tokens",),
    A.REQUEST_MODEL: ("gen_ai.response.model",),
}
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{0,18})?", re.ASCII)
_MOST_TOKENS = 1 << 48
_VLLM = "llm_request"  # the name of its one span


def is_llm_span(span: Span) -> bool:
    """Whether the span is one request to a model, and not an agent, a tool or a part of one."""
    if any(key.startswith(_LATENCY) for key in span.attributes):
        return True
    operation = span.attributes.get(A.OPERATION)
    if operation is not None:
        return str(operation) in _OPERATIONS
    return _get(span, A.REQUEST_MODEL) is not None and _get(span, A.OUTPUT_TOKENS) is not None


def requests_of(spans: Iterable[tuple[Span, Attributes]]) -> tuple[Request, ...]:
    """A request for each span; where a client's span has the server's own under it, the server's."""
    found = list({(s.trace_id, s.span_id, s.start_ns, s.end_ns): (s, r) for s, r in spans}.values())
    parents = {(s.trace_id, s.parent_span_id) for s, _ in found if s.parent_span_id != s.span_id}
    return tuple(
        _request(span, resource)
        for span, resource in found
        if span.kind is not Kind.CLIENT or (span.trace_id, span.span_id) not in parents
    )


def _request(span: Span, resource: Attributes) -> Request:
    marks = _marks(span)
    model = _get(span, A.REQUEST_MODEL)
    reasons = span.attributes.get(A.FINISH_REASONS)
    reason = str(reasons[0]) if isinstance(reasons, list) and reasons else None
    provider = _get(span, A.PROVIDER) or ("vllm" if span.name == _VLLM else "unknown")
    return Request(
        id=span.span_id,
        external_id=_text(span.attributes.get(A.REQUEST_ID)),
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        process=_process(resource),
        engine=str(provider),
        operation=str(span.attributes.get(A.OPERATION, "text_completion")),
        model=_text(model),
        arrival_ns=span.start_ns,
        finished_ns=span.end_ns,
        status=RequestStatus.OK if span.error is None else RequestStatus.FAILED,
        error_type=_text(span.attributes.get(A.ERROR_TYPE)) or span.error,
        finish_reason=reason,
        sequences=(
            Sequence(
                prompt_tokens=_count(_get(span, A.INPUT_TOKENS)),
                output_tokens=_count(_get(span, A.OUTPUT_TOKENS)),
                finish_reason=reason,
            ),
        ),
        cached_tokens=_count(span.attributes.get(A.CACHE_READ)),
        derived=frozenset(marks),
        **marks,
    )


def _marks(span: Span) -> dict[str, Any]:
    """Moments worked out from durations, counted from the first token in both directions."""
    ttft = _ns(span, A.LATENCY_TTFT)
    if ttft is None:
        return {}
    first = span.start_ns + ttft
    marks = {"first_token_ns": first}
    if (decode := _ns(span, A.LATENCY_DECODE)) is not None:
        marks["last_token_ns"] = min(first + decode, span.end_ns)
    if (prefill := _ns(span, A.LATENCY_PREFILL)) is not None:
        marks["scheduled_ns"] = max(first - prefill, span.start_ns)
        if (queue := _ns(span, A.LATENCY_QUEUE)) is not None:
            marks["received_ns"] = max(marks["scheduled_ns"] - queue, span.start_ns)
    return marks if first <= span.end_ns else {}


def _ns(span: Span, key: A) -> int | None:
    value = span.attributes.get(key)
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value) else None
    return round(value * 1e9) if isinstance(value, (int, float)) and 0 <= value < 1e9 else None


def _get(span: Span, key: A) -> object:
    for name in (key, *_SINCE_RENAMED.get(key, ())):
        if (value := span.attributes.get(name)) is not None:
            return value
    return None


def _count(value: object) -> int | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value) and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _MOST_TOKENS else None


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _process(resource: Attributes) -> str:
    """A key that is the same for all spans of one process."""
    return hashlib.blake2b(repr(sorted(resource.items())).encode(), digest_size=8).hexdigest()
