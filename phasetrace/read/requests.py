"""Spans of other tools -> requests."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from phasetrace.mapping import Attributes, Span, Value
from phasetrace.model import Defect, Request, RequestStatus, Sequence, Stage, recordable
from phasetrace.read.dialects import LOADING, Written, is_loading, tgi
from phasetrace.read.dialects.dialect import SECOND
from phasetrace.read.dialects.genai import MODEL
from phasetrace.read.doubts import Doubts
from phasetrace.read.families import Family, Place, families, place_of
from phasetrace.read.marks import Marks, marks, missing
from phasetrace.read.measured import Counts, counts, nanoseconds
from phasetrace.semconv import Attribute as A

_PROVIDERS = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
_OPERATION, _ERROR_TYPE = A.OPERATION.value, A.ERROR_TYPE.value
_REASONS = (A.FINISH_REASONS.value, "llm.finish_reason")
_IDS = (A.REQUEST_ID.value, "rid")
_SETTINGS = {"temperature": "gen_ai.request.temperature", "top_p": "gen_ai.request.top_p"}
_ABORTED = ("abort", "aborted", "cancelled")
_TOKENS_APART = 0.02  # from a whole number: durations are printed with as many digits


class Processes:
    """Keys that are the same for all spans of one process."""

    def __init__(self) -> None:
        self.resources: dict[str, Attributes] = {}
        self._known: dict[int, str] = {}

    def key(self, resource: Attributes) -> str:
        """The one of the process with these attributes."""
        ident = id(resource)
        if (found := self._known.get(ident)) is None:
            text = repr(sorted(resource.items()))
            found = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
            self._known[ident] = found
            self.resources[found] = resource
        return found


@dataclass(frozen=True, slots=True)
class Told:
    """What spans of other tools tell of."""

    requests: list[Request]
    sent: Mapping[Place, int]  # of phasetrace's own requests that a client's span lies around: its begin
    stages: tuple[Stage, ...]  # of engines' starts
    resources: Mapping[str, Attributes]  # by the key of the process
    defects: list[Defect]


def requests_of(written: Iterable[Written], own: Iterable[Span]) -> Told:
    """A request for each that the spans tell of, and what is wrong with their numbers."""
    doubts = Doubts()
    processes = Processes()
    stages: list[Stage] = []
    found, sent = families(_without_loading(written, stages, processes), own, doubts)
    cannot = {(f.dialect.writer, f.dialect.cannot, recordable(f.dialect.engine)) for f in found}
    found.reverse()
    made = []
    while found:  # and let go of: a span takes more memory than the request it becomes
        family = found.pop()
        made.append(
            _request(family, sent.get(place_of(family.head.span)) if sent else None, doubts, processes)
        )
    requests = _with_own_ids(made)
    unsaid = [
        Defect(f"spans of {writer} do not say: {what}{' (`phasetrace run` records it)' if ours else ''}")
        for writer, what, ours in sorted(cannot)
    ]
    return Told(requests, sent, tuple(stages), processes.resources, [*doubts.defects(len(requests)), *unsaid])


def _without_loading(
    written: Iterable[Written], stages: list[Stage], processes: Processes
) -> Iterator[Written]:
    """The spans that may tell of requests; those of an engine's start become its stages."""
    for w in written:
        if is_loading(w):
            process = processes.key(w.resource)
            stages.append(Stage(process, LOADING[w.span.name], w.span.start_ns, w.span.end_ns))
        else:
            yield w


def _request(family: Family, sent: int | None, doubts: Doubts, processes: Processes) -> Request:
    head, dialect = family.head, family.dialect
    span, attributes = head.span, head.span.attributes
    known = counts(head, dialect, doubts)
    told = known.output is not None
    if dialect is tgi.TGI and not told:
        known.output = _tokens(attributes)
    made = marks(head, dialect, family.stages, family.inside, known.output, doubts)
    if family.prefiller is not None and family.outer is not None:
        made = _over_both(made, family.prefiller, family.outer, doubts)
    if known.output is not None and not told:
        made.derived.append("sequences")
    moments: dict[str, Any] = made.known
    reason = _reason(_first(attributes, _REASONS))
    failed = span.error is not None or reason in _ABORTED
    if not failed and dialect.stages:
        missing(made, dialect, doubts)
    return Request(
        id=span.span_id,
        external_id=_text(_first(attributes, _IDS)),
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        process=processes.key(head.resource),
        engine=_engine(attributes, dialect.engine),
        operation=str(attributes.get(_OPERATION, "text_completion")),
        model=_text(_first(attributes, MODEL)),
        arrival_ns=made.arrival,
        sent_ns=sent if sent is not None and sent <= made.arrival else None,
        finished_ns=made.finished,
        status=RequestStatus.FAILED if failed else RequestStatus.OK,
        error_type=_text(attributes.get(_ERROR_TYPE)) or span.error or (reason if failed else None),
        finish_reason=reason,
        sequences=(Sequence(known.prompt, None, known.output, reason),),
        cached_tokens=known.cached,
        settings=_settings(attributes, known),
        preemptions=made.preemptions,
        derived=_names(tuple(made.derived)),
        **moments,
    )


def _over_both(decoding: Marks, prefiller: Family, outer: Written, doubts: Doubts) -> Marks:
    """The moments of a request that one server prefilled and another decoded."""
    reading = marks(prefiller.head, prefiller.dialect, prefiller.stages, prefiller.inside, None, Doubts())
    made = Marks(outer.span.start_ns, outer.span.end_ns)
    for source, names in (
        (reading, ("received_ns", "scheduled_ns")),
        (decoding, ("first_token_ns", "last_token_ns")),
    ):
        for name in names:
            if name in source.known:
                (made.derive if name in source.derived else made.observe)(name, source.known[name])
    doubts.say(
        "prefill and decode ran on two servers: prefill is counted until the decoding one's first token"
    )
    return made


def _with_own_ids(requests: list[Request]) -> list[Request]:
    """Where spans have one id, the trace tells them apart, and where that is one too, their order does."""
    used = Counter(request.id for request in requests)
    number: Counter[str] = Counter()
    made = []
    for request in requests:
        if used[request.id] > 1:
            ident = f"{request.trace_id}/{request.id}"
            number[ident] += 1
            request = replace(request, id=ident if number[ident] == 1 else f"{ident}/{number[ident]}")
        made.append(request)
    return made


def _tokens(attributes: Attributes) -> int | None:
    """How many tokens were generated, of the time for all and the mean for one."""
    whole = nanoseconds(attributes.get(tgi.INFERENCE), SECOND)
    each = nanoseconds(attributes.get(tgi.EACH), SECOND)
    if not whole or not each or whole <= 0 or each <= 0:
        return None
    tokens = round(whole / each)
    return tokens if tokens and abs(whole / each - tokens) <= _TOKENS_APART * tokens else None


def _engine(attributes: Attributes, engine: str) -> str:
    if engine != "unknown":
        return engine
    return _text(_first(attributes, _PROVIDERS)) or engine


def _settings(attributes: Attributes, known: Counts) -> dict[str, bool | int | float | str]:
    found: dict[str, bool | int | float | str] = {}
    for name, key in _SETTINGS.items():
        value = attributes.get(key)
        if isinstance(value, (int, float)):
            found[name] = value
    if known.max_tokens is not None:
        found["max_new_tokens"] = known.max_tokens
    if known.sequences is not None and known.sequences > 1:
        found["num_return_sequences"] = known.sequences
    return found


def _reason(value: Any) -> str | None:
    """The first of several reasons, which some write as JSON text."""
    if isinstance(value, list):
        return str(value[0]) if value else None
    return str(value).strip("[]\"' ").split('"')[0] or None if value is not None else None


@lru_cache(maxsize=64)
def _names(names: tuple[str, ...]) -> frozenset[str]:
    """There are few sets of them, so that requests share one."""
    return frozenset(names)


def _first(attributes: Attributes, keys: tuple[str, ...]) -> Value | None:
    """What the first of the keys holds that is there."""
    for key in keys:
        if key in attributes:
            return attributes[key]
    return None


def _text(value: object) -> str | None:
    return None if value is None else str(value)
