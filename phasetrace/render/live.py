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
    """The line, as long as `ink.width` allows: left out is what comes last, and the smallest phases first."""
    plain = "phasetrace:"
    for piece in _numbers(now):
        if len(plain) + 2 + len(piece) > ink.width:
            return plain
        plain += "  " + piece
    room = ink.width - len(plain)
    shown: set[Phase] = set()
    pieces = _phases(now)
    for phase in sorted(pieces, key=lambda phase: -now.phases[phase]):
        room -= 2 + len(pieces[phase])
        if room < 0:
            break
        shown.add(phase)
    return plain + "".join("  " + ink.phase(phase, pieces[phase]) for phase in pieces if phase in shown)


def _phases(now: Now) -> dict[Phase, str]:
    total = sum(now.phases.values())
    return {
        phase: f"{phase.value} {units.share(ns / total)}"
        for phase, ns in now.phases.items()
        if total and ns / total >= SMALL
    }


def _numbers(now: Now) -> Iterator[str]:
    busy = [f"{units.count(now.running)} running"] if now.running is not None else []
    busy += [f"{units.count(now.waiting)} waiting"] if now.waiting is not None else []
    yield ", ".join(busy) or f"{units.count(now.under_way)} under way"
    yield f"{units.counted(now.requests, 'request')} done"
    if now.tokens_s is not None:
        yield units.rate(now.tokens_s)
    if now.ttft_ns is not None:
        yield f"TTFT {units.duration(now.ttft_ns)}"
    if now.itl_ns is not None:
        yield f"ITL {units.duration(now.itl_ns)}"
