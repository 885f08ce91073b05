"""Tempo: a search for the ids of traces, then each trace by its id. There is no other way to have many."""

from __future__ import annotations

import json
from collections.abc import Iterator

from phasetrace.read.otlp_json import dicts
from phasetrace.read.servers.question import Question
from phasetrace.read.servers.web import Web

_SECOND = 10**9
_ID_DIGITS = 32  # zeros in front are not printed


def tempo(wanted: Question, web: Web) -> Iterator[bytes] | None:
    """The traces of a service; None where the server is no Tempo."""
    service = json.dumps(wanted.service, ensure_ascii=False) if wanted.service is not None else None
    query: dict[str, str | int] = {
        "q": f"{{ resource.service.name = {service} }}" if service is not None else "{}",
        "start": wanted.begin_ns // _SECOND,
        "end": -(-wanted.end_ns // _SECOND),
        "limit": wanted.limit,
        "spss": 1,
    }
    progress, web.progress = web.progress, None  # what is counted is traces
    answer = web.get_object("/api/search", query)
    if answer is None:
        return None
    traces = [str(trace.get("traceID")).zfill(_ID_DIGITS) for trace in dicts(answer.get("traces"))]

    def documents() -> Iterator[bytes]:
        for number, trace in enumerate(dict.fromkeys(traces[: wanted.limit])):
            one = web.get(f"/api/v2/traces/{trace}")
            if one is None:
                one = web.get(f"/api/traces/{trace}")  # before 2.6
            if one is not None:  # else it was deleted meanwhile
                yield one
            if progress is not None:
                progress(number + 1, len(traces))

    return documents()
