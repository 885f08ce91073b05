"""A decode step of a table: which one is known, and whether its time grows with the batch."""

from __future__ import annotations

from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View

NEAR = 1.7  # times a well set-up engine's step: engines and their versions differ by about that much
FAR = 2.2  # times: beyond, something other than reading takes most of the step
FLAT = 1.25  # times the step, while the batch grows: measuring error alone makes that
MORE_ROWS = 4.0  # times the batch: less shows nothing about what a sequence costs
HALF = 0.5  # of the bytes: 16-bit weights as 8-bit ones, or a 16-bit KV cache as an 8-bit one


def stepped(view: View) -> Setting | None:
    """The group in question, else the first whose step time is known and that does no better."""
    if view.subject.step is not None:
        return view.subject
    better = [pair.better for pair in view.pairs if pair.worse is view.subject]
    return next((s for s in view.settings if s.step is not None and s not in better), None)


def flat(view: View) -> tuple[Setting, Setting] | None:
    """Two groups whose batch differs much and whose step does not."""
    for low in view.settings:
        for high in view.settings:
            if low.width and high.width and high.width >= MORE_ROWS * low.width and low.tpot and high.tpot:
                if high.tpot <= FLAT * low.tpot:
                    return low, high
    return None
