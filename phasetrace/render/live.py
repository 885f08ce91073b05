"""One line of what happens now: `3 running, 1 waiting  42.1 tok/s  TTFT 0.41 s  ITL 18 ms  decode 80 %`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from phasetrace.model import Phase
from phasetrace.render import units
from phasetrace.render.ink import Ink

SMALL = 0.01  # shares below it say nothing


@dataclass(frozen=True, slots=True)
class Now:
    """Numbers over the last seconds; None is unknown."""

    running: int | None = None
    waiting: int | None = None
    under_way: int = 0  # requests that have not ended
    requests: int = 0  # that have ended since the start
    tokens_s: float | None = None
    ttft_ns: float | None = None  # median
    itl_ns: float | None = None  # median
    phases: Mapping[Phase, int] = field(default_factory=dict)  # of the requests that ended


def live_line(now: Now, ink: Ink) -> str:
    """The line, as long as `ink.width` allows: what does not fit is left out from the end."""
    line, used = "phasetrace:", len("phasetrace:")
    for piece, phase in _pieces(now):
        used += 2 + len(piece)
        if used > ink.width:
            break
        line += "  " + (piece if phase is None else ink.phase(phase, piece))
    return line


def _pieces(now: Now) -> Iterator[tuple[str, Phase | None]]:
    busy = [f"{units.count(now.running)} running"] if now.running is not None else []
    busy += [f"{units.count(now.waiting)} waiting"] if now.waiting is not None else []
    yield ", ".join(busy) or f"{units.count(now.under_way)} under way", None
    yield f"{units.counted(now.requests, 'request')} done", None
    if now.tokens_s is not None:
        yield units.rate(now.tokens_s), None
    if now.ttft_ns is not None:
        yield f"TTFT {units.duration(now.ttft_ns)}", None
    if now.itl_ns is not None:
        yield f"ITL {units.duration(now.itl_ns)}", None
    total = sum(now.phases.values())
    for phase, ns in now.phases.items():
        if total and ns / total >= SMALL:
            yield f"{phase.value} {units.share(ns / total)}", phase
