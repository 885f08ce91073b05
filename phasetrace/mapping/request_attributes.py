"""A request's own span: its fields <-> attributes, both directions side by side."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import numpy as np

from phasetrace.mapping.columns import pack, unpack
from phasetrace.mapping.span import Attributes, Span, Value, prefixed, under
from phasetrace.mapping.typed import checked, counts, integers, moments, scalars, texts, whole_numbers
from phasetrace.model import (
    Interval,
    ModelFacts,
    PrefixChunk,
    Request,
    RequestStatus,
    Sequence,
    StepCount,
)
from phasetrace.semconv import Attribute as A

_PLAIN = {
    "id": A.ID,
    "external_id": A.EXTERNAL_ID,
    "process": A.PROCESS_KEY,
    "engine": A.PROVIDER,
    "operation": A.OPERATION,
    "model": A.MODEL_KEY,
    "sent_ns": A.SENT,
    "received_ns": A.RECEIVED,
    "queued_ns": A.QUEUED,
    "scheduled_ns": A.SCHEDULED,
    "first_token_ns": A.FIRST_TOKEN,
    "last_token_ns": A.LAST_TOKEN,
    "finished_ns": A.FINISHED,
    "first_output_ns": A.FIRST_OUTPUT,
    "error_type": A.ERROR_TYPE,
    "finish_reason": A.FINISH_REASON,
    "cached_tokens": A.CACHED_TOKENS,
    "external_cached_tokens": A.EXTERNAL_CACHED_TOKENS,
    "grammar_ns": A.GRAMMAR,
    "tokenize_ns": A.TOKENIZE,
    "detokenize_ns": A.DETOKENIZE,
    "streamed_ns": A.STREAMED,
    "mode": A.MODE,
    "stream": A.STREAM,
    "first_step": A.FIRST_STEP,
    "last_step": A.LAST_STEP,
}
_SEQUENCE_COUNTS = {
    "prompt_tokens": A.PROMPT_TOKENS,
    "padding_tokens": A.PADDING_TOKENS,
    "output_tokens": A.SEQUENCE_TOKENS,
}
_STEP_COUNTS = {
    "prefill_chunks": A.PREFILL_CHUNKS,
    "yields": A.YIELDS,
    "recomputed": A.RECOMPUTED,
}
_UNKNOWN = -1  # of a sequence
_FEW = ("process", "engine", "operation", "model", "mode", "finish_reason")  # of millions of requests
_kept_once = lru_cache(1024)(str)


def request_attributes(request: Request, models: Mapping[str, ModelFacts]) -> Attributes:
    """What anyone who reads the span can use."""
    attributes: Attributes = {}
    for name, key in _PLAIN.items():
        if (value := getattr(request, name)) is not None:
            attributes[key] = value
    attributes[A.STATUS] = request.status.value
    attributes |= prefixed(A.SETTING, request.settings)
    attributes |= prefixed(A.DISCARDED, request.discarded_tokens)
    if request.derived:
        attributes[A.DERIVED] = sorted(request.derived)
    for name, key in _SEQUENCE_COUNTS.items():
        if request.sequences:
            counts = [getattr(s, name) for s in request.sequences]
            attributes[key] = [_UNKNOWN if n is None else n for n in counts]
    if any(s.finish_reason for s in request.sequences):
        attributes[A.SEQUENCE_REASONS] = [s.finish_reason or "" for s in request.sequences]
    return attributes | _conventional(request, models) | _latencies(request)


def kept_attributes(request: Request) -> Attributes:
    """What makes the span lossless, and is of no use to anyone else."""
    kept: Attributes = {}
    for name, key in _STEP_COUNTS.items():
        if column := getattr(request, name):
            kept[key] = pack([c.step for c in column] + [c.tokens for c in column])
    if request.preemptions:
        kept[A.PREEMPTIONS] = pack([t for p in request.preemptions for t in (p.begin_ns, p.end_ns)])
    if request.prefixes:
        kept[A.PREFIXES] = _pack_prefixes(request.prefixes)
    return kept


def request_from_span(span: Span) -> Request:
    """The request whose span this is."""
    attributes = span.attributes | span.kept
    known: dict[str, Any] = {name: attributes[key] for name, key in _PLAIN.items() if key in attributes}
    known |= {name: _kept_once(value) for name in _FEW if isinstance(value := known.get(name), str)}
    known |= {name: _step_counts(attributes.get(key)) for name, key in _STEP_COUNTS.items()}
    return checked(
        Request(
            trace_id=str(attributes.get(A.TRACE_ID, span.trace_id)),
            span_id=span.span_id,
            parent_span_id=cast(str | None, attributes.get(A.PARENT_SPAN_ID, span.parent_span_id)),
            arrival_ns=span.start_ns,
            status=RequestStatus(str(attributes.get(A.STATUS, "ok"))),
            sequences=_sequences(attributes),
            settings=scalars(under(A.SETTING, attributes)),
            discarded_tokens=whole_numbers(under(A.DISCARDED, attributes)),
            preemptions=_intervals(attributes.get(A.PREEMPTIONS)),
            prefixes=_unpack_prefixes(attributes.get(A.PREFIXES)),
            derived=frozenset(texts(attributes.get(A.DERIVED, []))),
            **{"model": None, **known},
        )
    )


def model_name(request: Request, models: Mapping[str, ModelFacts]) -> str | None:
    """The name to show for a request's model."""
    facts = models.get(request.model or "")
    return request.model if facts is None else facts.name or facts.architecture


def _conventional(request: Request, models: Mapping[str, ModelFacts]) -> Attributes:
    reasons = [s.finish_reason for s in request.sequences if s.finish_reason]
    values: dict[str, Value | None] = {
        A.REQUEST_ID: request.external_id or request.id,
        A.REQUEST_MODEL: model_name(request, models),
        A.REQUEST_MAX_TOKENS: request.settings.get("max_new_tokens"),
        A.REQUEST_STREAM: request.settings.get("streamer"),
        A.INPUT_TOKENS: request.prompt_tokens,
        A.OUTPUT_TOKENS: request.output_tokens,
        A.CACHE_READ: request.cached_tokens,
        A.FINISH_REASONS: reasons or None,
    }
    if len(request.sequences) > 1:
        values[A.REQUEST_CHOICES] = values[A.NUM_SEQUENCES] = len(request.sequences)
    return {key: value for key, value in values.items() if value is not None}


def _latencies(request: Request) -> Attributes:
    """The durations that dashboards made for vLLM look for, in seconds."""
    spans = {
        A.LATENCY_QUEUE: (request.received_ns, request.scheduled_ns),
        A.LATENCY_TTFT: (request.arrival_ns, request.first_token_ns),
        A.LATENCY_E2E: (request.arrival_ns, request.finished_ns),
        A.LATENCY_PREFILL: (request.scheduled_ns, request.first_token_ns),
        A.LATENCY_DECODE: (request.first_token_ns, request.last_token_ns),
        A.LATENCY_INFERENCE: (request.scheduled_ns, request.last_token_ns),
    }
    return {
        k: (end - begin) / 1e9 for k, (begin, end) in spans.items() if begin is not None and end is not None
    }


def _sequences(attributes: Attributes) -> tuple[Sequence, ...]:
    columns = {n: integers(attributes.get(key, [])) for n, key in _SEQUENCE_COUNTS.items()}
    reasons = texts(attributes.get(A.SEQUENCE_REASONS, []))
    size = max([len(column) for column in columns.values()] + [len(reasons)])
    rows = []
    for row in range(size):
        counts = {n: c[row] for n, c in columns.items() if row < len(c) and c[row] != _UNKNOWN}
        reason = reasons[row] if row < len(reasons) else ""
        rows.append(Sequence(**counts, finish_reason=reason or None))
    return tuple(rows)


def _step_counts(data: Value | None) -> tuple[StepCount, ...]:
    return _counted(data) if isinstance(data, bytes) else ()


@lru_cache(1024)
def _counted(data: bytes) -> tuple[StepCount, ...]:
    """A prompt that is read in a first step is in many requests, in the same few bytes."""
    values = unpack(data).tolist()
    counts(values)
    half = len(values) // 2
    return tuple(StepCount(step, tokens) for step, tokens in zip(values[:half], values[half:], strict=True))


def _intervals(data: Value | None) -> tuple[Interval, ...]:
    if not isinstance(data, bytes):
        return ()
    values = moments(unpack(data)).tolist()
    return tuple(Interval(b, e) for b, e in zip(values[::2], values[1::2], strict=True))


def _pack_prefixes(prefixes: tuple[tuple[PrefixChunk, ...], ...]) -> bytes:
    """Chunks in each row, then the tokens of every chunk, then every hash as a signed number."""
    lengths = [len(row) for row in prefixes]
    chunks = [chunk for row in prefixes for chunk in row]
    hashes = np.array([chunk.hash for chunk in chunks], np.uint64).view(np.int64).tolist()
    return pack([len(prefixes), *lengths, *(chunk.tokens for chunk in chunks), *hashes])


def _unpack_prefixes(data: Value | None) -> tuple[tuple[PrefixChunk, ...], ...]:
    if not isinstance(data, bytes):
        return ()
    values = unpack(data)
    rows = int(values[0])
    lengths = values[1 : rows + 1].tolist()
    total = sum(lengths)
    tokens = values[rows + 1 : rows + 1 + total].tolist()
    hashes = values[rows + 1 + total :].view(np.uint64).tolist()
    chunks = [PrefixChunk(h, n) for h, n in zip(hashes, tokens, strict=True)]
    ends = np.cumsum([0, *lengths]).tolist()
    return tuple(tuple(chunks[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True))
