"""Which spans belong together: a request, the spans of its stages, and those that saw it from outside.

One request may be a client's span, a gateway's, and the engine's. The engine's is the one that counts; the
others are found by their links, or, where a span in between is not in the file, by lying around it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from phasetrace.mapping import Kind, Span
from phasetrace.read.dialects import STAGES, Dialect, Stage, Written, dialect_of, llm_d
from phasetrace.read.doubts import Doubts
from phasetrace.semconv import Attribute as A

_DEEPEST = 64  # links from a span up to its request
_NEAREST = 64  # spans that may lie around another; more requests than that are rarely under way in one trace
_SKEW_NS = 1_000_000  # less is how precisely two services' clocks are usually kept together
_ANSWER = "gen_ai.response.id"
_FIRST_PROMPT = "-0"  # vLLM's id of a completion's only prompt ends so
Place = tuple[str, str]  # trace and span id


@dataclass(slots=True)
class Family:
    """A request: the span that tells of it best, and what belongs to it."""

    head: Written
    dialect: Dialect
    stages: list[tuple[Stage, Written]] = field(default_factory=list)
    inside: list[Span] = field(default_factory=list)  # spans under it whose events are its moments
    prefiller: Family | None = None  # another server's request that read the prompt for this one
    outer: Written | None = None  # the proxy's span around both


def place_of(span: Span) -> Place:
    """Where a span is."""
    return span.trace_id, span.span_id


def families(
    written: Iterable[Written], own: Iterable[Span], doubts: Doubts
) -> tuple[list[Family], dict[Place, int]]:
    """All requests, and when clients sent those that a client's span lies around.

    `own` are phasetrace's own, around which others may have made spans as well.
    """
    spans = _without_copies(written, doubts)
    heads = {
        place: Family(w, dialect) for place, w in spans.items() if (dialect := dialect_of(w)) is not None
    }
    by_trace: dict[str, list[Place]] = defaultdict(list)
    for place in heads:
        by_trace[place[0]].append(place)
    for place, w in spans.items():
        if place in heads:
            continue
        if (stage := STAGES.get(w.span.name)) is not None:
            _adopt(stage, w, spans, heads, by_trace)
        elif w.span.events and (above := _nearest(w.span, spans, heads)) is not None:
            heads[above].inside.append(w.span)
    engines = [place for place in heads if not _from_outside(heads[place])]
    joined = _disaggregated(engines, spans, heads)
    sent: dict[Place, int] = {}
    outside = _outside(engines, own, spans, heads, sent, doubts)
    kept = [family for place, family in heads.items() if place not in outside and place not in joined]
    return kept, sent


def _without_copies(written: Iterable[Written], doubts: Doubts) -> dict[Place, Written]:
    """By place. A server that shares its client's id, as Zipkin's may, gets a place of its own."""
    found: dict[Place, Written] = {}
    for w in written:
        place = (w.span.trace_id, w.span.span_id)
        known = found.get(place)
        if known is None:
            found[place] = w
        elif (known.span.start_ns, known.span.end_ns) == (w.span.start_ns, w.span.end_ns):
            doubts.say("a span is in the files more than once: counted once")
        elif {known.span.kind, w.span.kind} == {Kind.CLIENT, Kind.SERVER}:
            if w.span.kind is Kind.SERVER:
                found[place] = w
        else:
            doubts.say("a span id is used twice")
            found[place[0], f"{place[1]}/{len(found)}"] = w
    return found


def _up(span: Span, spans: Mapping[Place, Written]) -> Iterator[Place]:
    """The places above a span, the nearest first."""
    trace, parent = span.trace_id, span.parent_span_id
    for _ in range(_DEEPEST):
        if parent is None or (above := spans.get((trace, parent))) is None:
            return
        yield trace, parent
        parent = above.span.parent_span_id


def _nearest(span: Span, spans: Mapping[Place, Written], heads: Mapping[Place, Family]) -> Place | None:
    return next((place for place in _up(span, spans) if place in heads), None)


def _adopt(
    stage: Stage,
    written: Written,
    spans: Mapping[Place, Written],
    heads: Mapping[Place, Family],
    by_trace: Mapping[str, list[Place]],
) -> None:
    above = _nearest(written.span, spans, heads)
    if above is None:
        alone = by_trace.get(written.span.trace_id, [])
        above = alone[0] if len(alone) == 1 else None
    if above is not None:
        heads[above].stages.append((stage, written))


def _from_outside(family: Family) -> bool:
    return family.dialect.gateway or family.head.span.kind is Kind.CLIENT


def _disaggregated(
    engines: Iterable[Place], spans: Mapping[Place, Written], heads: Mapping[Place, Family]
) -> set[Place]:
    """Give each decoding server's request the prefilling server's, and say which ones were given away."""
    by_proxy: dict[Place, dict[str, Place]] = defaultdict(dict)
    if not any(w.span.name == llm_d.REQUEST for w in spans.values()):
        return set()
    for place in engines:
        way = list(_up(heads[place].head.span, spans))
        side = next(
            (spans[p].span.name for p in way if spans[p].span.name in (llm_d.PREFILL, llm_d.DECODE)), None
        )
        proxy = next((p for p in way if spans[p].span.name == llm_d.REQUEST), None)
        if side is not None and proxy is not None:
            by_proxy[proxy][side] = place
    given = set()
    for proxy, sides in by_proxy.items():
        if len(sides) == 2:
            decoder = heads[sides[llm_d.DECODE]]
            decoder.prefiller, decoder.outer = heads[sides[llm_d.PREFILL]], spans[proxy]
            given.add(sides[llm_d.PREFILL])
    return given


def _outside(
    engines: Iterable[Place],
    own: Iterable[Span],
    spans: Mapping[Place, Written],
    heads: Mapping[Place, Family],
    sent: dict[Place, int],
    doubts: Doubts,
) -> set[Place]:
    """Heads that saw a request from outside whose own span is there too; clients' begins go to `sent`."""
    found: set[Place] = set()
    seen = {place: family.head.span for place, family in heads.items() if _from_outside(family)}
    if seen:
        _find_around(seen, (*(heads[place].head.span for place in engines), *own), found, spans, sent, doubts)
    for client, place in _by_answer(engines, heads):
        found.add(client)
        _note_sent(sent, heads[place].head.span, [heads[client].head.span])
    linked = [
        place for place, family in heads.items() if (place[0], family.head.span.parent_span_id) in spans
    ]
    circular = {place for place in linked if place in _up(heads[place].head.span, spans)}
    for _ in circular:
        doubts.say("a span is above itself by its links to parents: which one holds the others is unknown")
    inner = [place for place, family in heads.items() if family.dialect.gateway and place not in found]
    for place in inner:  # a gateway's gateway
        if place not in circular:
            found.update(p for p in _up(heads[place].head.span, spans) if p in seen)
    return found


def _find_around(
    seen: Mapping[Place, Span],
    inner: Iterable[Span],
    found: set[Place],
    spans: Mapping[Place, Written],
    sent: dict[Place, int],
    doubts: Doubts,
) -> None:
    """Those of `seen` that are above each inner span by their links, or else lie around it."""
    outer = _Outer(seen)
    for span in inner:
        above = [place for place in _up(span, spans) if place in seen]
        if above:
            if not _around(seen[above[0]], span):
                doubts.say("a server's span lies outside its client's: their clocks disagree")
            found.update(above)
        elif (around := outer.around(span, found)) is not None:
            found.add(around)
            above = [around]
        _note_sent(sent, span, (seen[place] for place in above))


def _note_sent(sent: dict[Place, int], span: Span, above: Iterable[Span]) -> None:
    clients = [outer for outer in above if outer.kind is Kind.CLIENT]
    if clients and _around(clients[-1], span):
        sent[place_of(span)] = clients[-1].start_ns


def _by_answer(engines: Iterable[Place], heads: Mapping[Place, Family]) -> Iterator[tuple[Place, Place]]:
    """Clients in traces of their own whose answer had the id by which the server calls the request."""
    answers = {client: family.head.span.attributes.get(_ANSWER) for client, family in heads.items()}
    answers = {client: answer for client, answer in answers.items() if answer is not None}
    if not answers:
        return
    served = {str(heads[place].head.span.attributes.get(A.REQUEST_ID, "")): place for place in engines}
    served |= {name.removesuffix(_FIRST_PROMPT): place for name, place in served.items()}
    for client, answer in answers.items():
        if A.REQUEST_ID not in heads[client].head.span.attributes and str(answer) in served:
            yield client, served[str(answer)]


class _Outer:
    """Spans that saw requests from outside, by trace and in order of time."""

    def __init__(self, spans: Mapping[Place, Span]) -> None:
        self._places: dict[str, list[Place]] = defaultdict(list)
        self._spans: dict[str, list[Span]] = defaultdict(list)
        for place, span in sorted(spans.items(), key=lambda item: item[1].start_ns):
            self._places[place[0]].append(place)
            self._spans[place[0]].append(span)

    def around(self, inner: Span, taken: set[Place]) -> Place | None:
        """The shortest that lies around a span and is not taken, of those that began last before it."""
        if (spans := self._spans.get(inner.trace_id)) is None:
            return None
        places = self._places[inner.trace_id]
        end = bisect_right(spans, inner.start_ns + _SKEW_NS, key=lambda span: span.start_ns)
        near = range(max(0, end - _NEAREST), end)
        fitting = [n for n in near if places[n] not in taken and _around(spans[n], inner)]
        return places[min(fitting, key=lambda n: spans[n].end_ns - spans[n].start_ns)] if fitting else None


def _around(outer: Span, inner: Span) -> bool:
    return outer.start_ns - _SKEW_NS <= inner.start_ns and inner.end_ns <= outer.end_ns + _SKEW_NS
