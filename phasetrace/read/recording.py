"""Plain spans of any format -> one recording: phasetrace's own by what they hold, others by their dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from phasetrace.errors import NothingRecordedError, TraceFormatError
from phasetrace.mapping import ResourceSpans, Span, from_spans
from phasetrace.model import Recording
from phasetrace.read.dialects import Written
from phasetrace.read.notes import Notes
from phasetrace.read.requests import requests_of
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Scope

NEEDED = (
    "needed are spans of requests to a model: of vLLM, SGLang, TGI, TensorRT-LLM or by the GenAI conventions,"
    " or record with `phasetrace run -- COMMAND`"
)


def recording(groups: Iterable[ResourceSpans], notes: Notes) -> Recording:
    """All that the spans tell.

    Raises:
        TraceFormatError: nothing of the file can be understood.
        NothingRecordedError: there is no LLM request in it, and phasetrace did not write it.
    """
    sorting = _Sorting()
    recorded = from_spans(sorting.ours(groups))
    requests, defects = requests_of(sorting.foreign, sorting.own_requests)
    if not notes.documents and not requests and not sorting.met_ours:
        raise TraceFormatError(
            f"{notes.name} holds no complete span that can be read; was its writing cut short?"
        )
    if not sorting.met_ours and not requests:
        raise NothingRecordedError(f"{notes.name} {notes.holds()} and no LLM request: {NEEDED}")
    return replace(
        recorded,
        requests=(*recorded.requests, *requests),
        defects=(*recorded.defects, *notes.defects(), *defects),
        source=recorded.source if sorting.met_ours else "otlp",
    )


class _Sorting:
    """Hands on what phasetrace wrote, and keeps the rest."""

    def __init__(self) -> None:
        self.met_ours = False
        self.foreign: list[Written] = []
        self.own_requests: list[Span] = []

    def ours(self, groups: Iterable[ResourceSpans]) -> Iterator[ResourceSpans]:
        for group in groups:
            ours = group.scope in frozenset(Scope)
            self.met_ours = self.met_ours or ours
            kept = ResourceSpans(group.resource, [])
            for span in group.spans:
                request = A.ID in span.attributes
                if ours or request:
                    self.met_ours = True
                    kept.spans.append(span)
                    if request:
                        self.own_requests.append(span)
                else:
                    self.foreign.append(Written(span, group.resource, group.scope))
            yield kept
