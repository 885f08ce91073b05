"""Waiting for an engine that has the request: for a slot, or for KV blocks."""

from __future__ import annotations

import numpy as np

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.knobs import BLOCKS, CAPS
from phasetrace.advise.waiting import SMALLER_KV, promised, room, scheduler_ns
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.analyze.step_table import UNKNOWN, StepTable
from phasetrace.model import Finding, Ints, NotEnoughData, Phase, Request, Wait
from phasetrace.semconv import Cause

SHARE = 0.15  # of the goal's time: the line below which DESIGN.md calls a system healthy
MOSTLY = 0.5  # of the waiting is for one thing: then that is what to change first
AT_CAP = 0.9  # of the steps that ran while requests waited; a cap that binds is reached nearly always
FLAT = 0.5  # of a full step's time may come from its sequences: then half as many again still fit the device
TOO_FEW = 2  # sequences: a plateau at one or two is no cap that anybody set
UNTOLD = "why requests wait: free slots, KV blocks and the token budget of each step"
WORTH = 1.15  # times the tokens a second: with less to win, the device is busy with what it has


def slots_full(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Requests wait while the engine runs as many sequences as it may, and the device has room for more."""
    queue = scheduler_ns(evidence)  # the end of a step that runs is waited for whatever the cap is
    if not evidence.whole_ns or queue < SHARE * evidence.whole_ns:
        return None
    if evidence.queue is None:
        return _slots_by_their_number(evidence, queue)
    held = evidence.queue
    if held.share(Wait.SLOTS) < MOSTLY:
        return None
    cap = int(evidence.knob(*CAPS) or held.most_running)
    fits = room(evidence, held)
    if fits is not None and fits < WORTH * cap:
        return None  # without more KV blocks, more slots would stay empty
    if evidence.shared is None:
        return NotEnoughData(
            Cause.SLOTS_FULL, "step times at several batch sizes: run once with a lower and a higher load"
        )
    wanted = _power_of_two(max(2 * cap, held.most_open))
    raised = wanted if fits is None else max(cap + 1, min(wanted, int(fits)))
    likely, *_ = evidence.shared.gain(held.running, min(raised, max(held.open_requests, held.running)))
    if likely < WORTH:
        return None
    return Finding(
        cause=Cause.SLOTS_FULL,
        phase=Phase.QUEUE,
        ns=int(queue * held.share(Wait.SLOTS)),
        share=evidence.share(queue * held.share(Wait.SLOTS)),
        confidence="high",
        evidence=(
            f"{percent(queue / evidence.whole_ns)} of {_whole(evidence)} is spent in the queue:"
            f" {percent(held.share(Wait.SLOTS))} of that while {count(cap, 'sequence')} ran, as many as may",
            f"{held.open_requests:.3g} requests were open then on average, {held.most_open} at most",
            *((f"the KV cache has room for about {fits:,.0f} sequences",) if fits else ()),
            f"a step with {raised} sequences would give about {times(likely)} of the tokens a second",
        ),
        recommendation=f"Raise the cap on concurrent sequences (max_num_seqs) from {cap} to {raised}.",
        commands=_set(evidence, Cause.SLOTS_FULL, f"--max-num-seqs {raised}"),
        tradeoff="Each step takes longer (TPOT), and more KV cache is held at a time.",
        prediction=promised(evidence, held, Wait.SLOTS, raised),
    )


def kv_full(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Requests wait for KV blocks: the cache holds fewer sequences than may run."""
    queue, held = scheduler_ns(evidence), evidence.queue
    if not evidence.whole_ns or queue < SHARE * evidence.whole_ns:
        return None
    if held is None:
        return None if evidence.stepped else NotEnoughData(Cause.KV_FULL, UNTOLD + evidence.by_run)
    if held.share(Wait.KV) < MOSTLY:
        return None
    blocks, override = evidence.knob(*BLOCKS), evidence.knob("num_gpu_blocks_override")
    cap = evidence.knob(*CAPS)
    raised = SMALLER_KV * held.running if override is None else max(held.most_open, SMALLER_KV * held.running)
    raised = min(raised, cap) if cap else raised
    return Finding(
        cause=Cause.KV_FULL,
        phase=Phase.QUEUE,
        ns=int(queue * held.share(Wait.KV)),
        share=evidence.share(queue * held.share(Wait.KV)),
        confidence="high",
        evidence=(
            f"{percent(queue / evidence.whole_ns)} of {_whole(evidence)} is spent in the queue:"
            f" {percent(held.share(Wait.KV))} of that for want of KV blocks",
            f"{held.running:.3g} sequences ran meanwhile on average"
            + (f", where {cap:,.0f} may" if cap else ""),
            *(
                (f"at most {held.most_blocks:,} of {blocks:,.0f} blocks were in use",)
                if blocks and held.most_blocks
                else ()
            ),
        ),
        recommendation=(
            f"Let the KV cache be larger: {override:,.0f} blocks are set by hand (num_gpu_blocks_override)."
            if override is not None
            else "Make room in the KV cache: more memory for it (gpu_memory_utilization), an 8-bit (fp8)"
            " cache, a smaller maximum length."
        ),
        commands=_more_memory(evidence, override is not None),
        tradeoff="An 8-bit cache may cost quality; memory given to the cache is missing elsewhere.",
        prediction=promised(evidence, held, Wait.KV, raised),
    )


def _whole(evidence: Evidence) -> str:
    return "the time to first tokens" if evidence.goal == "ttft" else "all time"


def _power_of_two(at_least: float) -> int:
    return 1 << max(0, int(np.ceil(np.log2(max(at_least, 1)))))


def _set(evidence: Evidence, cause: Cause, vllm: str) -> tuple[str, ...]:
    return (vllm,) if evidence.engine == "vllm" else evidence.typed(cause)


def _more_memory(evidence: Evidence, by_hand: bool) -> tuple[str, ...]:
    if evidence.engine != "vllm":
        return evidence.typed(Cause.KV_FULL)
    on_cpu = evidence.model is not None and evidence.model.device == "cpu"
    return (
        *(("# leave out --num-gpu-blocks-override",) if by_hand else ()),
        "VLLM_CPU_KVCACHE_SPACE=8  # GiB, in the server's environment"
        if on_cpu
        else "--gpu-memory-utilization 0.95 --kv-cache-dtype fp8",
    )


def _slots_by_their_number(evidence: Evidence, queue: int) -> Finding | NotEnoughData | None:
    """The same where the engine does not say why: as many ran all the time, and never more."""
    waiting = [r.request for r in evidence.requests if r.phase_ns(Phase.QUEUE) > 0]
    running = _running_while_waiting(waiting, evidence.table)
    if len(running) == 0:
        return NotEnoughData(
            Cause.SLOTS_FULL,
            f"how many sequences each step ran while requests waited{evidence.by_run}",
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
        commands=evidence.typed(
            Cause.SLOTS_FULL, (f"ContinuousBatchingConfig(max_requests_per_batch={2 * cap})",)
        ),
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
