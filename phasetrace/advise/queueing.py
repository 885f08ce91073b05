"""What an engine's steps say of its queue: how long it was, for what its head waited, what ran meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phasetrace.model import Interval, Recording, Request, Steps, Wait, columns_of

FULLY = 0.95  # busy: a queue that was seen to end had less than all of the time
REASONS = tuple(Wait)
STEADY = 16  # requests: of fewer, no rate of arrival can be told
BURST = 0.2  # of the busy time: requests that all came in less were there from the start
GROWN = 2.0  # times the requests under way, from the first to the last quarter of the arrivals
OFFERED = 1.25  # times what is served: both are counted within 10 %


@dataclass(frozen=True, slots=True)
class Queue:
    """Waiting in the engines of a recording. Times are summed over requests that wait, as phases are."""

    waited_ns: Mapping[Wait, float]
    running: float  # sequences in a step, on average while somebody waits
    most_running: int
    open_requests: float  # that run or wait, on average while somebody waits
    most_open: int
    most_blocks: int | None  # KV blocks in use, while somebody waits
    held: float  # of the time that sequences run, the part while somebody waits

    def share(self, *reasons: Wait) -> float:
        """Of all waiting, what was for these."""
        everything = sum(self.waited_ns.values())
        return sum(self.waited_ns.get(reason, 0.0) for reason in reasons) / everything if everything else 0.0


def queue_of(recording: Recording) -> Queue | None:
    """None where no engine said why its queue waits, or nobody ever waited."""
    told = columns_of(recording.steps).knowing("waits", "waiting")
    waited: dict[Wait, float] = defaultdict(float)
    running, open_requests, time, ran_at_all = 0.0, 0.0, 0.0, 0.0
    most_running = most_open = most_blocks = 0
    for steps in told:
        held = _held(steps)
        if steps.running is not None:
            ran_at_all += float((steps.running * (steps.end_ns - steps.begin_ns)).sum())
        if not held.any() or steps.waiting is None or steps.waits is None or steps.running is None:
            continue
        length = (steps.end_ns - steps.begin_ns)[held].astype(np.float64)
        waiting, ran = np.maximum(steps.waiting[held], 1), steps.running[held]
        for code in np.unique(steps.waits[held]):
            here = steps.waits[held] == code
            waited[REASONS[int(code)]] += float((waiting * length)[here].sum())
        time += float(length.sum())
        running += float((ran * length).sum())
        open_requests += float(((ran + waiting) * length).sum())
        most_running = max(most_running, int(ran.max()))
        most_open = max(most_open, int((ran + waiting).max()))
        if steps.kv_blocks is not None:
            most_blocks = max(most_blocks, int(steps.kv_blocks[held].max()))
    if not time:
        return None
    return Queue(
        waited_ns=dict(waited),
        running=running / time,
        most_running=most_running,
        open_requests=open_requests / time,
        most_open=most_open,
        most_blocks=most_blocks or None,
        held=running / ran_at_all,
    )


def _held(steps: Steps) -> npt.NDArray[np.bool_]:
    assert steps.waiting is not None and steps.waits is not None
    known: npt.NDArray[np.bool_] = (steps.waits > 0) & (steps.waits < len(REASONS))
    return known


@dataclass(frozen=True, slots=True)
class Offered:
    """Requests that kept coming, beside those that were served meanwhile: a second."""

    rate: float
    served: float
    grown: float  # requests under way in the last quarter of the arrivals, over those in the first

    @property
    def too_much(self) -> bool:
        """More came than was served, for as long as they came."""
        return self.rate >= OFFERED * self.served and self.grown >= GROWN


def offered(requests: list[Request]) -> Offered | None:
    """None for a burst, or for too few to tell: a batch of prompts is no load that goes on.

    Where none ended while others came, the rate at which they are served is unknown.
    """
    spans = [Interval(r.arrival_ns, r.finished_ns) for r in requests if r.finished_ns is not None]
    if len(spans) < STEADY:
        return None
    begins = np.sort(np.array([s.begin_ns for s in spans], np.int64))
    ends = np.sort(np.array([s.end_ns for s in spans], np.int64))
    arriving = int(begins[-1] - begins[0])
    if arriving <= BURST * int(ends[-1] - begins[0]):
        return None
    marks = begins[0] + np.linspace(0, arriving, 4 * STEADY).astype(np.int64)
    under_way = np.searchsorted(begins, marks, side="right") - np.searchsorted(ends, marks, side="right")
    first, last = under_way[STEADY // 2 : STEADY + STEADY // 2], under_way[-STEADY:]
    # The first requests find an empty engine; what is served is counted once it is busy.
    half = begins[0] + arriving // 2
    seconds = max(1, int(begins[-1] - half)) / 1e9
    served = int(((ends > half) & (ends <= begins[-1])).sum()) / seconds
    if not served:
        return None
    rate = int((begins > half).sum()) / seconds
    return Offered(rate, served, float(last.mean() / max(first.mean(), 1.0)))


def shorter_queue(reading: float, saved: float) -> float:
    """Share of a queue for one reader that goes when each reading is shorter: load / (1 - load), as M/M/1."""
    load = min(reading, FULLY)
    then = load * (1 - saved)
    return 1 - (then / (1 - then)) / (load / (1 - load))
