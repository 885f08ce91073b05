"""A request -> its span and the spans of its phases under it, within the budget of its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from phasetrace.mapping.budget import Allowance, SpanBudget
from phasetrace.mapping.request_attributes import kept_attributes, model_name, request_attributes
from phasetrace.mapping.span import Attributes, Kind, Link, Span, TokenSpans, derived_id
from phasetrace.mapping.token_spans import MOST_VALUES, TokenTimes, to_token_spans, token_times
from phasetrace.model import Ints, ModelFacts, Request, RequestStatus, Stall
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName

_IN_PROCESS = {"transformers"}  # engines that a program calls as a function; the others serve


@dataclass(slots=True)
class RequestSpans:
    """What one request becomes."""

    spans: list[Span]
    tokens: list[TokenSpans] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.spans) + sum(map(len, self.tokens))


def request_to_spans(
    request: Request,
    models: Mapping[str, ModelFacts],
    times: tuple[Ints, Ints] | None,
    budget: SpanBudget,
    stalls: Sequence[Stall] = (),
    places: Mapping[str, Link] = {},
) -> RequestSpans:
    """The request's span, and what there is room for of its phases, prompt chunks and tokens.

    Args:
        request: what to show.
        models: for its model's name.
        times: begin and end of each of its steps, where known.
        budget: counts the spans of each trace.
        stalls: its late tokens that are explained.
        places: the spans of the requests that may have caused them.
    """
    tokens = token_times(request, times)
    waits = tokens.waits_us() if tokens is not None else np.zeros(0, np.int64)
    pieces = -(-len(waits) // MOST_VALUES) if len(waits) > MOST_VALUES else 0
    alone = request.parent_span_id is None
    allowance = budget.ask(request.trace_id, alone, required=1 + pieces)
    root = _root(request, models, allowance)
    made = RequestSpans([root])

    phases = _phases(request, root)
    room = allowance.spans - 1 - pieces
    shown = sorted(phases, key=lambda s: s.start_ns - s.end_ns)[: max(room, 0)]
    made.spans += sorted(shown, key=lambda s: s.start_ns)
    left_out = len(phases) - len(shown)
    decode = next((span for span in shown if span.name == SpanName.DECODE), root)
    if tokens is not None:
        made.spans += _with_waits(decode, request, tokens, waits)

    chunks = _prefill_chunks(request, times, made.spans)
    if len(chunks) <= allowance.spans - len(made):
        made.spans += chunks
    else:
        left_out += len(chunks)
    most = min(allowance.tokens, allowance.spans - len(made))
    if tokens is not None and most > 0:
        parent = (root.trace_id, decode.span_id)
        runs, late = to_token_spans(request, parent, tokens, most, stalls, places)
        made.tokens.append(runs)
        made.spans += late
    elif tokens is not None and allowance.short:
        left_out += len(tokens)
    if left_out:
        root.attributes[A.SPANS_LEFT_OUT] = left_out
    budget.spend(allowance, len(made), alone)
    return made


def _root(request: Request, models: Mapping[str, ModelFacts], allowance: Allowance) -> Span:
    name = model_name(request, models)
    marks = [request.received_ns, request.scheduled_ns, request.first_token_ns, request.last_token_ns]
    latest = max([request.arrival_ns] + [mark for mark in marks if mark is not None])
    span = Span(
        trace_id=allowance.trace_id,
        span_id=request.span_id,
        parent_span_id=request.parent_span_id,
        name=f"{request.operation} {name}" if name else request.operation,
        start_ns=request.arrival_ns,
        end_ns=latest if request.finished_ns is None else request.finished_ns,
        kind=Kind.INTERNAL if request.engine in _IN_PROCESS else Kind.SERVER,
        attributes=request_attributes(request, models),
        kept=kept_attributes(request),
        error=(request.error_type or "error") if request.status is RequestStatus.FAILED else None,
    )
    if allowance.trace_id != request.trace_id and request.parent_span_id is not None:
        span.links = ((request.trace_id, request.parent_span_id),)
        span.parent_span_id = None
        span.attributes[A.TRACE_ID] = request.trace_id
        span.attributes[A.PARENT_SPAN_ID] = request.parent_span_id
    return span


def _phases(request: Request, root: Span) -> list[Span]:
    """The phases that took any time, in order."""
    scheduled = request.scheduled_ns if request.scheduled_ns is not None else request.received_ns
    bounds = [
        (SpanName.FRONTEND, request.arrival_ns, request.received_ns),
        (SpanName.QUEUE, request.received_ns, request.scheduled_ns),
        (SpanName.PREFILL, scheduled, request.first_token_ns),
        (SpanName.DECODE, request.first_token_ns, request.last_token_ns),
        *((SpanName.PREEMPTED, p.begin_ns, p.end_ns) for p in request.preemptions),
        (SpanName.DELIVERY, request.last_token_ns, request.finished_ns),
    ]
    return [
        _child(request, root, name, begin, end, number, _phase_attributes(name, request))
        for number, (name, begin, end) in enumerate(bounds)
        if begin is not None and end is not None and begin < end
    ]


def _phase_attributes(name: SpanName, request: Request) -> Attributes:
    values: dict[str, int | None] = {}
    if name is SpanName.FRONTEND:
        values = {A.TOKENIZE: request.tokenize_ns}
    elif name is SpanName.PREFILL and request.prefill_chunks:
        values = {
            A.CHUNK_COUNT: len(request.prefill_chunks),
            A.CHUNK_TOKENS: sum(chunk.tokens for chunk in request.prefill_chunks),
            A.CACHE_READ: request.cached_tokens,
        }
    elif name is SpanName.DELIVERY:
        values = {A.DETOKENIZE: request.detokenize_ns, A.STREAMED: request.streamed_ns}
    return {key: value for key, value in values.items() if value is not None}


def _with_waits(decode: Span, request: Request, tokens: TokenTimes, waits: Ints) -> list[Span]:
    """Put the wait for each token on the span of the decode, or on pieces of it where they are too many."""
    durations = (tokens.end_ns - tokens.begin_ns) // 1000
    p50, p99 = np.percentile(durations, (50, 99))
    decode.attributes |= {
        A.ITL_P50: int(p50),
        A.ITL_P99: int(p99),
        A.ITL_MAX: int(durations.max()),
        A.STALLS: int(tokens.stalls.sum()),
    }
    if len(waits) <= MOST_VALUES:
        decode.attributes[A.ITL] = waits.tolist()
        return []
    arrivals = int(tokens.begin_ns[0]) + np.cumsum(np.insert(waits, 0, 0)) * 1000
    pieces = []
    for at in range(0, len(waits), MOST_VALUES):
        values = waits[at : at + MOST_VALUES].tolist()
        begin, end = int(arrivals[at]), int(arrivals[at + len(values)])
        attributes: Attributes = {A.TOKEN_INDEX: at + int(tokens.index[0]), A.ITL: values}
        pieces.append(_child(request, decode, SpanName.DECODE_CHUNK, begin, end, at, attributes))
    return pieces


def _prefill_chunks(request: Request, times: tuple[Ints, Ints] | None, spans: list[Span]) -> list[Span]:
    prefill = next((span for span in spans if span.name == SpanName.PREFILL), None)
    if prefill is None or times is None or request.first_step is None or len(request.prefill_chunks) < 2:
        return []
    made = []
    for chunk in request.prefill_chunks:
        row = chunk.step - request.first_step
        if 0 <= row < len(times[0]):
            begin, end = int(times[0][row]), int(times[1][row])
            tokens: Attributes = {A.CHUNK_TOKENS: chunk.tokens}
            made.append(_child(request, prefill, SpanName.PREFILL_CHUNK, begin, end, chunk.step, tokens))
    return made


def _child(
    request: Request, parent: Span, name: SpanName, begin: int, end: int, number: int, attributes: Attributes
) -> Span:
    ident = derived_id(8, request.id, name, number)
    return Span(parent.trace_id, ident, parent.span_id, name, begin, end, attributes=attributes)
