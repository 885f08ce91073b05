"""The cap on concurrent sequences binds while the device has room."""

from __future__ import annotations

import numpy as np

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.knobs import CAPS
from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.contrast import MATTERS
from phasetrace.advise.table.queue import (
    MORE_SLOTS,
    at_cap,
    beyond_reach,
    memory_full,
    more_throughput,
    waits,
)
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Gain, Told, modelled, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.waiting import MOSTLY, promised, room, scheduler_ns
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.analyze.step_table import UNKNOWN, StepTable
from phasetrace.model import Goal, Ints, Phase, Request, Wait
from phasetrace.semconv import Cause

WORDS = Words(
    fix="Raise the cap on concurrent sequences (max_num_seqs): more slots share each weight read.",
    tradeoff="Each step takes longer (TPOT), and the KV cache fills sooner.",
    commands={
        "vllm": ("--max-num-seqs 16  # or more: until the KV cache is used up",),
        "sglang": ("--max-running-requests 16",),
        "tgi": ("--max-concurrent-requests 256 --max-batch-size 16",),
        "tensorrt-llm": ("trtllm-serve --max_batch_size 16",),
        "llama.cpp": ("llama-server --parallel 16 --cont-batching",),
        "transformers": ("model.generate_batch(prompt_ids, generation_config)  # continuous batching",),
    },
)
PLATEAU = 0.9  # of the steps that ran while requests waited; a cap that binds is reached nearly always
FLAT = 0.5  # of a full step's time may come from its sequences: then half as many again still fit the device
TOO_FEW = 2  # sequences: a plateau at one or two is no cap that anybody set
ROOM = 1.5  # times the cap fits beside the weights: then memory is no reason for it
CROWD = 2.0  # times the sequences that fit: with more open, slots are not all that is missing


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """Requests wait for a slot, by the scheduler or since as many run as ever did, and more would pay."""
    queue = scheduler_ns(evidence)  # the end of a step that runs is waited for whatever the cap is
    if not evidence.whole_ns or queue < WORTH * evidence.whole_ns:
        return None
    if evidence.queue is None:
        return _slots_by_their_number(evidence, queue)
    held = evidence.queue
    if held.share(Wait.SLOTS) < MOSTLY:
        return None
    cap = int(evidence.knob(*CAPS) or held.most_running)
    fits = room(evidence, held)
    if fits is not None and fits < MATTERS * cap:
        return None  # without more KV blocks, more slots would stay empty
    if evidence.shared is None:
        return Measure("step times at several batch sizes: run once with a lower and a higher load")
    wanted = _power_of_two(max(2 * cap, held.most_open))
    raised = wanted if fits is None else max(cap + 1, min(wanted, int(fits)))
    likely, *_ = evidence.shared.gain(held.running, min(raised, max(held.open_requests, held.running)))
    if likely < MATTERS:
        return None  # the device is busy with what it has
    return Seen(
        queue * held.share(Wait.SLOTS),
        evidence=(
            f"{percent(queue / evidence.whole_ns)} of {evidence.whole} is spent in the queue:"
            f" {percent(held.share(Wait.SLOTS))} of that while {count(cap, 'sequence')} ran, as many as may",
            f"{held.open_requests:.3g} requests were open then on average, {held.most_open} at most",
            f"the KV cache has room for about {fits:,.0f} sequences" if fits else None,
            f"a step with {raised} sequences would give about {times(likely)} of the tokens a second",
        ),
        fix=_raise(cap, raised),
        commands={"vllm": (f"--max-num-seqs {raised}",)},
        prediction=promised(evidence, held, Wait.SLOTS, raised),
    )


def _power_of_two(at_least: float) -> int:
    return 1 << max(0, int(np.ceil(np.log2(max(at_least, 1)))))


def _raise(cap: float, to: float | None = None) -> str:
    return WORDS.fix.replace(":", f" from {cap:,.0f}{f' to {to:,.0f}' if to else ''}:", 1)


def _slots_by_their_number(evidence: Evidence, queue: int) -> Seen | Measure | None:
    """The same where the engine does not say why: as many ran all the time, and never more."""
    waiting = [r.request for r in evidence.requests if r.phase_ns(Phase.QUEUE) > 0]
    running = _running_while_waiting(waiting, evidence.table)
    if len(running) == 0:
        return Measure(f"how many sequences each step ran while requests waited{evidence.by_run}")
    cap = int(running.max())
    at_cap = float((running == cap).mean())
    step = evidence.step
    if at_cap < PLATEAU or cap <= TOO_FEW:
        return Measure(
            "why the scheduler let requests wait below its cap: free KV blocks and the token budget a step"
        )
    if step is None or step.per_row_ns is None or step.fixed_ns is None:
        return Measure("step times at several batch sizes: run once with a lower and a higher load")
    full = step.fixed_ns + step.per_row_ns * cap
    if step.per_row_ns * cap > FLAT * full:
        return None  # the device is busy with the sequences it has: more slots would only stretch each step
    doubled = (step.fixed_ns + 2 * step.per_row_ns * cap) / full
    return Seen(
        queue,
        evidence=(
            f"{count(len(waiting), 'request')} waited, {percent(evidence.share(queue))} of all time",
            f"while they waited, {percent(at_cap)} of the steps ran {cap} sequences, never more",
            f"a step with {2 * cap} sequences would take {doubled:.2f} times as long: {seconds(full)} now",
        ),
        confidence="medium",
        fix=_raise(cap, 2 * cap),
        commands={"transformers": (f"ContinuousBatchingConfig(max_requests_per_batch={2 * cap})",)},
        prediction=predict(evidence, Saving(first_ns=queue / 2, least=0.5, most=2.0)),
    )


def _running_while_waiting(waiting: list[Request], table: StepTable) -> Ints:
    found = [np.zeros(0, np.int64)]
    for request in waiting:
        stream = table.streams.get((request.process, request.stream or 0))
        if stream is None or request.received_ns is None or request.scheduled_ns is None:
            continue
        begin = table.ending_after(stream, request.received_ns)
        found.append(table.running[begin : table.beginning_before(stream, request.scheduled_ns)])
    running = np.concatenate(found)
    known: Ints = running[running != UNKNOWN]
    return known


def in_table(view: View) -> Told | None:
    """The user tried another cap, or as many run as may and the KV cache has room."""
    pair = view.contrast(*CAPS)
    s = view.subject
    if pair is not None and (pair.worse.cap or 0) < (pair.better.cap or 0) and view.goal is not Goal.TPOT:
        return tried(view, pair, "a smaller cap on sequences", fix=_raise(s.cap) if s.cap else "")
    if view.goal is Goal.TPOT or s.cap is None or not at_cap(s) or memory_full(s):
        return None
    queue = waits(view, s)
    if queue is None and view.goal is not Goal.THROUGHPUT:
        return None
    if memory_full(s) is None and s.fit is not None and s.fit < ROOM * s.cap:
        return None
    said = [f"{(s.group.running or s.cap):,.0f} sequences run and the cap is {s.cap:,.0f}"]
    said += [queue.said] if queue else []
    if s.group.kv_cache_usage is not None:
        said.append(f"{percent(s.group.kv_cache_usage)} of the KV cache is used: there is room")
    gain: Gain | None
    if view.goal is Goal.THROUGHPUT:
        gain = modelled(more_throughput(s, MORE_SLOTS), 0.4)
        said.append(f"{MORE_SLOTS} times as many would give about {times(gain.ratio)} of the throughput")
    else:
        whole = s.metric(view.goal)
        gain = without(queue.seconds, whole) if queue and queue.seconds and whole else None
    weight = max(queue.share if queue else 0.0, 1 - 1 / gain.ratio if gain else 0.0)
    return Told(
        Tier.BOUND if beyond_reach(s) else Tier.FAULT,
        tuple(said),
        fix=_raise(s.cap),
        gain=gain,
        weight=weight,
        seconds=queue.seconds if queue else None,
        confidence="high" if _room_for_all(s) else "medium",
    )


def _room_for_all(s: Setting) -> bool:
    """Whether slots alone would take in most of those who wait, by the KV cache that is left."""
    g = s.group
    if g.kv_cache_usage is None or g.running is None:
        return False
    return g.running + (g.waiting or 0) <= CROWD * g.running / max(g.kv_cache_usage, 1e-3)


RULE = Rule(Cause.SLOTS_FULL, WORDS, in_steps, in_table)
