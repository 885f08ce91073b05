"""Where the difference of the mean e2e lies: phase by phase and part by part, nanoseconds a request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from phasetrace.analyze.compare.alike import Alike
from phasetrace.analyze.token_gaps import Floats
from phasetrace.model import Part, PartChange, Phase, PhaseChange, RequestBreakdown

Times = dict[tuple[Phase, Part], float]


def phase_changes(alike: Alike) -> tuple[PhaseChange, ...]:
    """The largest difference first, in phases and in their parts; what could not be split is in `other`."""
    before, after = (
        _times(side, weights)
        for side, weights in zip((alike.before, alike.after), alike.weights, strict=True)
    )
    found = [_phase(phase, before, after) for phase in Phase]
    return tuple(sorted((f for f in found if f.before_ns or f.after_ns), key=lambda f: -abs(f.difference_ns)))


def _phase(phase: Phase, before: Times, after: Times) -> PhaseChange:
    keys = [(phase, part) for part in Part if (phase, part) in before or (phase, part) in after]
    parts = [PartChange(key[1], before.get(key, 0.0), after.get(key, 0.0)) for key in keys]
    parts.sort(key=lambda part: -abs(part.difference_ns))
    split = [part for part in parts if part.part is not Part.OTHER]
    return PhaseChange(
        phase, sum(p.before_ns for p in parts), sum(p.after_ns for p in parts), tuple(parts if split else ())
    )


def _times(requests: Sequence[RequestBreakdown], weights: Floats) -> Times:
    found: Times = defaultdict(float)
    for request, weight in zip(requests, weights.tolist(), strict=True):
        for time in request.phases:
            for part in time.parts:
                found[time.phase, part.part] += part.ns * weight
            if not time.parts and time.ns:
                found[time.phase, Part.OTHER] += time.ns * weight
    return found
