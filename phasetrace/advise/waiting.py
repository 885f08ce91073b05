"""What it would save to run more sequences at a time, by the queue that the engine's steps show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict_between, predict_rates
from phasetrace.advise.knobs import BLOCKS
from phasetrace.advise.queueing import Queue
from phasetrace.advise.ranking import WORTH
from phasetrace.advise.rule import Measure
from phasetrace.advise.words import seconds
from phasetrace.model import Goal, Part, Phase, Prediction, RequestBreakdown, Wait

MOSTLY = 0.5  # of the waiting is for one thing: then that is what to change first
UNTOLD = "why requests wait: free slots, KV blocks and the token budget of each step"
SMALLER_KV = 2.0  # times the room: an 8-bit cache instead of a 16-bit one; more memory brings about as much
LEFT = 0.7  # of a gain in throughput: a load has a beginning and an end, with fewer open
SPARE = 0.9  # of the KV blocks: engines keep a few back


def scheduler_ns(evidence: Evidence) -> int:
    """Of the queue, what is no wait for the end of the step that was running."""
    return evidence.phase_ns(Phase.QUEUE) - evidence.part_ns(Part.ENGINE_BUSY, Phase.QUEUE)


def held_up(evidence: Evidence, reason: Wait) -> Queue | Measure | None:
    """The queue where enough of the goal's time passes in it, and most of that is for this reason.

    What to measure where steps do not say why requests wait.
    """
    if not evidence.whole_ns or scheduler_ns(evidence) < WORTH * evidence.whole_ns:
        return None
    if evidence.queue is None:
        return None if evidence.stepped else Measure(UNTOLD + evidence.by_run)
    return evidence.queue if evidence.queue.share(reason) >= MOSTLY else None


def room(evidence: Evidence, held: Queue) -> float | None:
    """Sequences for which there are KV blocks; None where blocks were not counted."""
    blocks = evidence.knob(*BLOCKS)
    if not blocks or not held.most_blocks:
        return None
    return held.most_running * SPARE * blocks / held.most_blocks


def more_at_a_time(evidence: Evidence, held: Queue, reason: Wait, raised: float) -> list[Saving]:
    """What it saves to run `raised` sequences at a time: likely, least, most.

    As many requests stay open; those that fit run at once, in steps that take longer (Little's law: what is
    won in all is what tokens a second grow by). Where more keep coming than is served, the wait shrinks only
    as the backlog does.
    """
    shared = evidence.shared
    if shared is None:
        return []
    spent = scheduler_ns(evidence) * held.share(reason)
    then = max(held.running, min(raised, held.open_requests))
    beyond = max(0.0, held.open_requests - then) / max(held.open_requests - held.running, 1e-9)
    prefill, decode = (held.held * evidence.phase_ns(p) for p in (Phase.PREFILL, Phase.DECODE))
    likely, least, most = shared.gain(held.running, then)
    # At best those who come find fewer open than before, so that steps stay as they are.
    stretched = [(likely, then / held.running / likely), (least, then / held.running / least), (most, 1.0)]
    return [
        Saving(
            first_ns=spent * (1 - max(min(1.0, beyond) / gain, _backlog(evidence, gain)))
            - prefill * (stretch - 1),
            decode_ns=-decode * (stretch - 1),
        )
        for gain, stretch in stretched
    ]


def promised(evidence: Evidence, held: Queue, reason: Wait, raised: float) -> Prediction | None:
    """What running `raised` sequences at a time brings on the goal."""
    if evidence.goal is not Goal.THROUGHPUT or evidence.shared is None:
        return predict_between(evidence, more_at_a_time(evidence, held, reason, raised))
    then = max(held.running, min(raised, held.open_requests))
    # No more is served than is offered.
    load, most = evidence.offered, math.inf
    if load is not None:
        most = max(1.0, load.rate / load.served)
    likely, least, highest = (
        min(most, 1 / (1 - held.held + held.held / gain)) for gain in evidence.shared.gain(held.running, then)
    )
    return predict_rates(evidence, [likely, 1 + (least - 1) * LEFT, highest])


def backlog_left(evidence: Evidence) -> float:
    """Of an overload, what stays when as many run at a time as can; 0 where all would be served."""
    held, shared = evidence.queue, evidence.shared
    if held is None or shared is None:
        return 1.0
    blocks, by_hand = room(evidence, held), evidence.knob("num_gpu_blocks_override") is not None
    most = SMALLER_KV * blocks if blocks is not None and not by_hand else held.open_requests
    likely, *_ = shared.gain(held.running, max(held.running, min(most, held.open_requests)))
    return _backlog(evidence, likely)


def _backlog(evidence: Evidence, gain: float) -> float:
    load = evidence.offered
    if load is None or not load.too_much:
        return 0.0
    return min(1.0, max(0.0, (load.rate - load.served * gain) / (load.rate - load.served)))


def slowed(early: Sequence[RequestBreakdown], late: Sequence[RequestBreakdown]) -> tuple[str, ...]:
    """What the first and the last requests took, where the last took longer: once load ends they need not."""
    first, last = (statistics.fmean(r.e2e_ns for r in some) for some in (early, late))
    return (f"the first requests took {seconds(first)}, the last {seconds(last)}",) if last > first else ()
