"""Every span of a group as an object of its own, tokens too, for formats that write them one by one."""

from __future__ import annotations

from collections.abc import Iterator

from phasetrace.mapping import Attributes, ResourceSpans, Span, TokenSpans
from phasetrace.semconv import DERIVED_SPANS, Scope, SpanName
from phasetrace.semconv import Attribute as A


def each_span(group: ResourceSpans) -> Iterator[tuple[Scope, Span]]:
    """The spans with the scope that each belongs to."""
    for span in group.spans:
        yield (Scope.PHASES if span.name in DERIVED_SPANS else Scope.ALL), span
    for run in group.tokens:
        for span in _tokens(run):
            yield Scope.TOKENS, span


def _tokens(run: TokenSpans) -> Iterator[Span]:
    columns = (run.begin_ns, run.end_ns, run.index, run.count)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for number, (begin, end, index, count) in enumerate(rows):
        attributes: Attributes = {A.TOKEN_INDEX: index}
        if count != 1:
            attributes[A.TOKEN_COUNT] = count
        ident = f"{run.first_id + number:016x}"
        yield Span(run.trace_id, ident, run.parent_span_id, SpanName.TOKEN, begin, end, attributes=attributes)
