"""Jaeger's query service: API v3, and the interface before it.

Neither gives out pages, so what is more than a page is asked for again, up to the begin of the oldest trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from phasetrace.errors import UsageError
from phasetrace.read.otlp_json import RESOURCES, SCOPES, as_dict, dicts
from phasetrace.read.servers.question import Question
from phasetrace.read.servers.web import Web, as_object

PAGE = 200  # traces
_US = 1000
Ask = Callable[[int, int], bytes | None]  # with the end of the time in nanoseconds, and the number of traces
Seen = dict[str, int]  # trace -> its begin in nanoseconds


def newer(wanted: Question, web: Web) -> Iterator[bytes] | None:
    """API v3; None where the server does not speak it."""
    if "services" not in (web.get_object("/api/v3/services") or {}):
        return None

    def ask(end_ns: int, traces: int) -> bytes | None:
        query: dict[str, str | int] = {
            "query.startTimeMin": _rfc3339(wanted.begin_ns),
            "query.startTimeMax": _rfc3339(end_ns),
            "query.searchDepth": traces,
        }
        if wanted.service is not None:
            query["query.serviceName"] = wanted.service
        return web.get("/api/v3/traces", query)  # 404 where it finds none

    return _pages(ask, _begins_of_otlp, wanted)


def older(wanted: Question, web: Web) -> Iterator[bytes] | None:
    """The interface that Jaeger's pages used; it needs a service."""
    services = web.get_object("/api/services")
    if services is None or "data" not in services:
        return None
    known = services["data"]
    service = wanted.service
    if service is None:
        if not isinstance(known, list) or len(known) != 1:
            named = ", ".join(map(str, known[:5])) if isinstance(known, list) else "none"
            raise UsageError(f"{wanted.base} has several services; choose one with `service`: {named}")
        service = str(known[0])

    def ask(end_ns: int, traces: int) -> bytes | None:
        times = {"start": wanted.begin_ns // _US, "end": end_ns // _US}
        return web.get("/api/traces", {"service": service, **times, "limit": traces, "raw": "true"})

    return _pages(ask, _begins_of_jaeger, wanted)


def _pages(ask: Ask, begins: Callable[[Any], Seen], wanted: Question) -> Iterator[bytes]:
    """Documents until a page is not full, or brings nothing new."""
    seen: Seen = {}
    end = wanted.end_ns
    while len(seen) < wanted.limit and end > wanted.begin_ns:
        size = min(PAGE, wanted.limit - len(seen))
        page = ask(end, size)
        if page is None:
            return
        document = as_object(page)  # none where it is lines: then there are no more pages
        found = begins(document)
        if document is not None and not found.keys() - seen.keys():
            return
        yield page
        seen |= found
        if len(found) < size:
            return
        end = min(found.values())


def _begins_of_otlp(document: Any) -> Seen:
    begins: Seen = {}
    whole = as_dict(as_dict(document).get("result", document))
    for resource in (r for key in RESOURCES for r in dicts(whole.get(key))):
        for span in (
            s for key in SCOPES for scope in dicts(resource.get(key)) for s in dicts(scope.get("spans"))
        ):
            _note(begins, span.get("traceId"), span.get("startTimeUnixNano"), 1)
    return begins


def _begins_of_jaeger(document: Any) -> Seen:
    begins: Seen = {}
    for trace in dicts(as_dict(document).get("data")):
        for span in dicts(trace.get("spans")):
            _note(begins, trace.get("traceID"), span.get("startTime"), _US)
    return begins


def _note(begins: Seen, trace: object, begin: Any, unit: int) -> None:
    try:
        time = int(begin) * unit
    except (TypeError, ValueError):
        return
    begins[str(trace)] = min(time, begins.get(str(trace), time))


def _rfc3339(time_ns: int) -> str:
    seconds, rest = divmod(time_ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
