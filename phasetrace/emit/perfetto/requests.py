"""A line a request: its span with its phases, prompt chunks and tokens inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from phasetrace.emit.each_span import each_span
from phasetrace.emit.perfetto.tracks import Event, Line, Tracks
from phasetrace.mapping import Span, SpanBudget, SpanMaker
from phasetrace.model import Breakdown, Request
from phasetrace.semconv import Attribute as A

DIAGNOSED, WARM_UP, FAILED, REFUSED = "diagnosed", "warm-up", "failed", "refused"
_ROOM = 1 << 40  # spans: this viewer has no limit of its own


def requests(breakdown: Breakdown, tracks: Tracks) -> Iterator[Event]:
    """The slices of all requests, in the order of their arrival."""
    recording = breakdown.recording
    kinds = {r.request.id: DIAGNOSED for r in breakdown.requests}
    kinds |= {r.request.id: WARM_UP for r in breakdown.warm_up}
    kinds |= {r.id: FAILED for r in breakdown.failed}
    processes = {request.span_id: request for request in recording.requests}
    ordered = sorted(recording.requests, key=lambda r: (r.arrival_ns, r.id))
    alone = replace(recording, requests=tuple(ordered), stages=())
    maker = SpanMaker(budget=SpanBudget(limit=_ROOM), for_file=False)
    for group in maker.spans(alone, breakdown.stalls):
        lines: dict[str, tuple[Line, str]] = {}  # span id -> its line and category
        for _, span in each_span(group):
            if span.get(A.ID) is not None:
                request = processes[span.span_id]
                yield from tracks.line(request.process, request.id, _name(request, span))
                line = tracks.find(request.process, request.id)
                assert line is not None
                lines[span.span_id] = line, kinds.get(request.id, REFUSED)
            else:
                lines[span.span_id] = lines[span.parent_span_id or ""]
            line, kind = lines[span.span_id]
            yield tracks.slice(line, kind, span.name, span.start_ns, span.end_ns, span.attributes)


def _name(request: Request, span: Span) -> str:
    return f"{span.name} {request.external_id or request.id}"
