"""A table's numbers as a Breakdown, so that they are shown like those of a recording."""

from __future__ import annotations

import math

from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.model import Breakdown, Defect, Percentiles, Phase, PhaseTime, Recording


def breakdown(view: View, defects: tuple[str, ...] = ()) -> Breakdown:
    """Phases and metrics of the group in question; percentiles that the table lacks are unknown."""
    s, g = view.subject, view.subject.group
    found = {
        "ttft_ns": _percentiles(s.ttft, g.ttft_p95_s, g.ttft_p99_s),
        "tpot_ns": _percentiles(s.tpot, None, None),
        "itl_ns": _percentiles(g.itl_p50_s, g.itl_p95_s, g.itl_p99_s),
        "e2e_ns": _percentiles(s.e2e, g.e2e_p95_s, g.e2e_p99_s),
    }
    return Breakdown(
        recording=Recording(source=view.table.source),
        requests=(),
        phases=() if defects else _phases(s),
        metrics={name: value for name, value in found.items() if value is not None},
        throughput_tok_s=g.throughput_tok_s,
        defects=tuple(map(Defect, defects)),
        of_table=view.table,
    )


def _percentiles(middle: float | None, p95: float | None, p99: float | None) -> Percentiles | None:
    if middle is None and p95 is None and p99 is None:
        return None
    return Percentiles(*(math.nan if v is None else v * 1e9 for v in (middle, p95, p99)))


def _phases(s: Setting) -> tuple[PhaseTime, ...]:
    g = s.group
    known = {
        Phase.CLIENT: g.client_wait_s,
        Phase.FRONTEND: g.frontend_s if g.frontend_s is not None else g.tokenize_s,
        Phase.QUEUE: g.queue_s,
        Phase.PREFILL: s.prefill,
        Phase.DECODE: s.decode,
    }
    times = {phase: round(v * 1e9) for phase, v in known.items() if v is not None and v >= 0}
    whole = s.e2e or 0.0
    left = round(whole * 1e9) - sum(times.values())
    if left > 0:
        times[Phase.UNATTRIBUTED] = left
    return tuple(PhaseTime(phase, ns) for phase, ns in times.items())
