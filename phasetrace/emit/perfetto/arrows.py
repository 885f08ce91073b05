"""Arrows from the reading of prompts to the tokens of others that had to wait for it.

Perfetto lets an arrow lead only to a slice that began no earlier than the one it comes from, else it turns it
around. The wait for a token begins before the prompt that prolongs it, so what is led to is a slice inside of
the wait: the part of it in which the prompts were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from phasetrace.emit.perfetto.tracks import Event, Line, Tracks
from phasetrace.model import Breakdown, Request, Stall

_NAME = "delayed"
_INSIDE = "others' prompts"


def arrows(breakdown: Breakdown, tracks: Tracks) -> Iterator[Event]:
    """A slice for each stall that others' prompts caused, and two events for each arrow to it."""
    known = {request.id: request for request in breakdown.recording.requests}
    numbers = count(1)
    for stall in breakdown.stalls:
        late = _line(known.get(stall.request), tracks)
        readers = [known[by] for by in stall.by if by in known and _reads(known[by], stall)]
        if late is None or not readers:
            continue
        begins = [max(stall.begin_ns, reader.scheduled_ns or 0) for reader in readers]
        begin = max(begins)
        yield tracks.slice(late, "stall", _INSIDE, begin, stall.end_ns, {"usual ns": stall.usual_ns})
        for reader, from_ns in zip(readers, begins, strict=True):
            source = _line(reader, tracks)
            if source is not None:
                same = {"cat": _NAME, "id": next(numbers)}
                yield tracks.at(source, "s", _NAME, from_ns) | same
                yield tracks.at(late, "f", _NAME, begin) | same | {"bp": "e"}


def _line(request: Request | None, tracks: Tracks) -> Line | None:
    return None if request is None else tracks.find(request.process, request.id)


def _reads(request: Request, stall: Stall) -> bool:
    """Whether a part of its prefill lies in the stall."""
    if request.scheduled_ns is None or request.first_token_ns is None:
        return False
    return max(stall.begin_ns, request.scheduled_ns) < min(stall.end_ns, request.first_token_ns)
