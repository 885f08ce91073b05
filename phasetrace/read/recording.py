"""Plain spans of any format -> one recording: phasetrace's own by what they hold, others by their dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain

from phasetrace.errors import NothingRecordedError, TraceFormatError
from phasetrace.mapping import ResourceSpans, Span, from_spans
from phasetrace.model import Recording, Request
from phasetrace.read.dialects import Written
from phasetrace.read.families import Place
from phasetrace.read.notes import Notes
from phasetrace.read.requests import requests_of
from phasetrace.read.resources import with_stated
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Scope

Merge = Callable[[Recording, Recording], Recording]
_ID, _OURS = A.ID.value, frozenset(Scope)
NEEDED = (
    "needed are spans of requests to a model: of vLLM, SGLang, TGI, TensorRT-LLM or by the GenAI conventions,"
    " or record with `phasetrace run -- COMMAND`"
)


@dataclass(frozen=True, slots=True)
class Part:
    """What one source holds. Of other tools' spans a request may reach over several sources."""

    recorded: Recording  # by phasetrace
    ours: bool  # phasetrace wrote in it
    foreign: list[Written]
    own_requests: list[Span]
    notes: Notes


def part(groups: Iterable[ResourceSpans], notes: Notes) -> Part:
    """Read all spans of a source.

    Raises:
        TraceFormatError: nothing of it can be understood.
    """
    sorting = _Sorting()
    recorded = from_spans(sorting.ours(groups))
    if not notes.documents and not sorting.foreign and not sorting.met_ours:
        why = f" ({notes.refused})" if notes.refused else ""
        raise TraceFormatError(
            f"{notes.name} holds no complete span that can be read{why}; was its writing cut short?"
        )
    recorded = replace(recorded, defects=(*recorded.defects, *notes.defects()))
    return Part(recorded, sorting.met_ours, sorting.foreign, sorting.own_requests, notes)


def recording(parts: Sequence[Part], merge: Merge) -> Recording:
    """All that the parts tell; `merge` makes one of two recordings of phasetrace's own.

    Raises:
        NothingRecordedError: there is no LLM request in it, and phasetrace wrote none of it.
    """
    recorded = reduce(merge, (one.recorded for one in parts))
    told = requests_of(
        chain.from_iterable(_taken(one.foreign) for one in parts),
        chain.from_iterable(one.own_requests for one in parts),
    )
    ours = any(one.ours for one in parts)
    if not ours and not told.requests:
        said = "; ".join(f"{one.notes.name} {one.notes.holds()}" for one in parts)
        raise NothingRecordedError(f"{said} and no LLM request: {NEEDED}")
    whole = replace(
        recorded,
        requests=(*_sent(recorded.requests, told.sent), *told.requests),
        stages=(*recorded.stages, *told.stages),
        defects=(*recorded.defects, *told.defects),
        source=recorded.source if ours else "otlp",
    )
    return with_stated(whole, told.resources)


def _sent(requests: Iterable[Request], sent: Mapping[Place, int]) -> Iterator[Request]:
    """Those that clients' spans lie around with when they were sent."""
    for request in requests:
        begin = sent.get((request.trace_id, request.span_id))
        known = begin is not None and begin <= request.arrival_ns
        yield replace(request, sent_ns=begin) if known else request


def _taken(spans: list[Written]) -> Iterator[Written]:
    """All of them, kept by nobody else afterwards: a span takes more memory than the request it becomes."""
    spans.reverse()
    while spans:
        yield spans.pop()


class _Sorting:
    """Hands on what phasetrace wrote, and keeps the rest."""

    def __init__(self) -> None:
        self.met_ours = False
        self.foreign: list[Written] = []
        self.own_requests: list[Span] = []

    def ours(self, groups: Iterable[ResourceSpans]) -> Iterator[ResourceSpans]:
        for group in groups:
            ours = group.scope in _OURS
            self.met_ours = self.met_ours or ours
            kept = ResourceSpans(group.resource, [])
            for span in group.spans:
                request = _ID in span.attributes
                if ours or request:
                    self.met_ours = True
                    kept.spans.append(span)
                    if request:
                        self.own_requests.append(_bare(span))
                else:
                    self.foreign.append(Written(span, group.resource, group.scope))
            yield kept


def _bare(span: Span) -> Span:
    """Where and when it was: what it says, which takes more memory than its request, is read already."""
    return Span(span.trace_id, span.span_id, span.parent_span_id, span.name, span.start_ns, span.end_ns)
