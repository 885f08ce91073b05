"""Causes of waiting for an engine that has the request."""

from __future__ import annotations

import numpy as np

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.words import count, percent, seconds
from phasetrace.analyze.step_table import UNKNOWN, StepTable
from phasetrace.model import Finding, Ints, NotEnoughData, Phase, Request
from phasetrace.semconv import Cause

SHARE = 0.15  # of the requests' time: the line below which DESIGN.md calls a system healthy
AT_CAP = 0.9  # of the steps that ran while requests waited; a cap that binds is reached nearly always
FLAT = 0.5  # of a full step's time may come from its sequences: then half as many again still fit the device
TOO_FEW = 2  # sequences: a plateau at one or two is no cap that anybody set


def slots_full(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Requests wait while the engine runs as many sequences as it may, and the device has room for more."""
    waiting = [r.request for r in evidence.requests if r.phase_ns(Phase.QUEUE) > 0]
    queue = evidence.phase_ns(Phase.QUEUE)
    if evidence.share(queue) < SHARE:
        return None
    running = _running_while_waiting(waiting, evidence.table)
    if len(running) == 0:
        return NotEnoughData(
            Cause.SLOTS_FULL, "how many sequences each step ran while requests waited (`phasetrace run`)"
        )
    cap = int(running.max())
    at_cap = float((running == cap).mean())
    step = evidence.step
    if at_cap < AT_CAP or cap <= TOO_FEW:
        return NotEnoughData(
            Cause.SLOTS_FULL,
            "why the scheduler let requests wait below its cap: free KV blocks and the token budget a step",
        )
    if step is None or step.per_row_ns is None or step.fixed_ns is None:
        return NotEnoughData(
            Cause.SLOTS_FULL, "step times at several batch sizes: run once with a lower and a higher load"
        )
    full = step.fixed_ns + step.per_row_ns * cap
    if step.per_row_ns * cap > FLAT * full:
        return None  # the device is busy with the sequences it has: more slots would only stretch each step
    doubled = (step.fixed_ns + 2 * step.per_row_ns * cap) / full
    return Finding(
        cause=Cause.SLOTS_FULL,
        phase=Phase.QUEUE,
        ns=queue,
        share=evidence.share(queue),
        confidence="medium",
        evidence=(
            f"{count(len(waiting), 'request')} waited, {percent(evidence.share(queue))} of all time",
            f"while they waited, {percent(at_cap)} of the steps ran {cap} sequences, never more",
            f"a step with {2 * cap} sequences would take {doubled:.2f} times as long: {seconds(full)} now",
        ),
        recommendation=f"Let the engine run more than {cap} sequences at once.",
        commands=(f"ContinuousBatchingConfig(max_requests_per_batch={2 * cap})",),
        tradeoff="Each step takes longer (TPOT), and more KV cache is held at a time.",
        prediction=predict(evidence, Saving(first_ns=queue / 2, least=0.5, most=2.0)),
    )


def _running_while_waiting(waiting: list[Request], table: StepTable) -> Ints:
    found = [np.zeros(0, np.int64)]
    for request in waiting:
        stream = table.streams.get((request.process, request.stream or 0))
        if stream is None or request.received_ns is None or request.scheduled_ns is None:
            continue
        begin = int(table.end_ns[stream.begin : stream.end].searchsorted(request.received_ns, side="right"))
        end = int(table.begin_ns[stream.begin : stream.end].searchsorted(request.scheduled_ns))
        found.append(table.running[stream.begin + begin : stream.begin + end])
    running = np.concatenate(found)
    known: Ints = running[running != UNKNOWN]
    return known
