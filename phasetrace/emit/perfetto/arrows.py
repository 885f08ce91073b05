"""Arrows from the reading of a prompt to the tokens of others that had to wait for it."""

from __future__ import annotations

from collections.abc import Iterator

from phasetrace.emit.perfetto.tracks import Event, Line, Tracks
from phasetrace.model import Breakdown, Request

_NAME = "delayed"


def arrows(breakdown: Breakdown, tracks: Tracks) -> Iterator[Event]:
    """Two events an arrow; each lies in the middle of what it leads from or to, and so inside its slice."""
    known = {request.id: request for request in breakdown.recording.requests}
    number = 0
    for stall in breakdown.stalls:
        late = _place(known.get(stall.request), tracks)
        for by in stall.by:
            reader = known.get(by)
            source = _place(reader, tracks)
            during = _reading(reader, stall.begin_ns, stall.end_ns)
            if late is None or source is None or during is None:
                continue
            number += 1
            middle = (stall.begin_ns + stall.end_ns) // 2
            same = {"cat": _NAME, "id": number}
            yield tracks.at(source, "s", _NAME, during) | same
            yield tracks.at(late, "f", _NAME, max(middle, during)) | same | {"bp": "e"}


def _place(request: Request | None, tracks: Tracks) -> Line | None:
    return None if request is None else tracks.find(request.process, request.id)


def _reading(request: Request | None, begin_ns: int, end_ns: int) -> int | None:
    """A moment of the stretch at which the request's prompt was read."""
    if request is None or request.scheduled_ns is None or request.first_token_ns is None:
        return None
    begin, end = max(begin_ns, request.scheduled_ns), min(end_ns, request.first_token_ns)
    return (begin + end) // 2 if begin < end else None
