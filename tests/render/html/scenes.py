"""Recordings of engines that never ran, made step by step, large or small, and their diagnoses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phasetrace import advise, analyze
from phasetrace.model import (
    Ceilings,
    Diagnosis,
    Interference,
    ModelFacts,
    Owner,
    Part,
    Phase,
    PhaseTime,
    Process,
    Recording,
    Request,
    Sequence,
    Stall,
    StallCause,
    StallPattern,
    StepCostModel,
    StepCount,
    Steps,
)

MS = 1_000_000
BEGIN = 1_700_000_000_000 * MS
PROCESS = "c" * 16
MODEL = ModelFacts(
    "m", name="tiny-llama", device="cpu", parameters=10_000_000, weight_bytes=40_000_000, dtype="float32"
)


def served(requests: int = 24, tokens: int = 30, seats: int = 6) -> Recording:
    """One engine that serves many: a request every 60 ms, each fourth with a long prompt, so many at once."""
    arrivals = [BEGIN + i * 60 * MS for i in range(requests)]
    prompts = [900 if i % 4 == 3 else 40 + i for i in range(requests)]
    marks: dict[int, dict[str, int]] = {i: {} for i in range(requests)}
    left = [tokens] * requests
    waiting, running, now = list(range(requests)), [], arrivals[0]
    rows: list[tuple[int, int, int, int, int, int]] = []
    while waiting or running:
        arrived = [i for i in waiting if arrivals[i] <= now]
        if not running and not arrived:
            now = arrivals[waiting[0]]
            continue
        begun = arrived[: seats - len(running)]
        read = sum(prompts[i] for i in begun)
        waiting = [i for i in waiting if i not in begun]
        running += begun
        end = now + int((6 + 0.7 * len(running) + 0.05 * read) * MS)
        for i in begun:
            marks[i] |= {"scheduled_ns": now, "first_token_ns": end, "first_step": len(rows)}
        for i in running:
            left[i] -= 1
            if not left[i]:
                marks[i] |= {"last_token_ns": end, "finished_ns": end + MS, "last_step": len(rows)}
        queued = sum(arrivals[i] <= now for i in waiting)
        rows.append((now, end, len(running), len(running) - len(begun) + read, queued, 3 * len(running)))
        running = [i for i in running if left[i]]
        now = end
    begin, end, sequences, computed, queue, blocks = (
        np.array(column, np.int64) for column in zip(*rows, strict=True)
    )
    steps = Steps(
        PROCESS, 1, 0, begin, end, {Part.FORWARD: end - begin},
        running=sequences, new_tokens=sequences, computed_tokens=computed, waiting=queue, kv_blocks=blocks,
    )  # fmt: skip
    made = [request(i, arrivals[i], prompts[i], tokens, marks[i]) for i in range(requests)]
    return recorded(made, [steps])


def generated(requests: int, tokens: int) -> Recording:
    """As many `generate()` calls, eight at a time, each with steps of its own."""
    random = np.random.default_rng(7)
    made, streams = [], []
    for i in range(requests):
        arrival = BEGIN + (i // 8) * tokens * 11 * MS + (i % 8) * 3 * MS
        took = (random.gamma(20, 0.5, tokens) * MS).astype(np.int64)
        took[0] = 80 * MS
        end = arrival + MS + np.cumsum(took)
        ones = np.ones(tokens, np.int64)
        streams.append(
            Steps(PROCESS, i, 0, end - took, end, {Part.FORWARD: took}, running=ones, new_tokens=ones)
        )
        marks = {
            "scheduled_ns": arrival + MS, "first_token_ns": int(end[0]), "last_token_ns": int(end[-1]),
            "finished_ns": int(end[-1]) + MS, "first_step": 0, "last_step": tokens - 1,
        }  # fmt: skip
        made.append(request(i, arrival, 100, tokens, marks, stream=i))
    return recorded(made, streams)


def request(
    i: int, arrival: int, prompt: int, tokens: int, marks: dict[str, int], stream: int = 1
) -> Request:
    """One of them."""
    return Request(
        id=f"r{i}",
        trace_id=f"{i + 1:032x}",
        span_id=f"{i + 1:016x}",
        parent_span_id=None,
        process=PROCESS,
        engine="vllm",
        operation="chat",
        model="m",
        arrival_ns=arrival,
        received_ns=arrival,
        sequences=(Sequence(prompt, 0, tokens, "length"),),
        cached_tokens=0,
        finish_reason="length",
        stream=stream,
        prefill_chunks=(StepCount(marks["first_step"], prompt),),
        external_id=f"chat-{i}",
        **marks,  # type: ignore[arg-type]
    )


def recorded(requests: list[Request], steps: list[Steps]) -> Recording:
    """All of it."""
    return Recording(
        requests=tuple(requests),
        steps=tuple(steps),
        models={"m": MODEL},
        processes=(
            Process(PROCESS, 1, 0, script="app.py", engines={"vllm": "0.32.0"}, hook_calls=1, hook_ns=1),
        ),
        begin_ns=BEGIN,
        end_ns=max(r.finished_ns or 0 for r in requests),
    )


def diagnosis(recording: Recording) -> Diagnosis:
    """With stalls, their causes, and all else that a page can show."""
    breakdown = analyze.breakdown(recording)
    late = recording.requests[4]
    first, table = late.first_token_ns or 0, recording.steps[0]
    gaps = np.flatnonzero((table.end_ns > first) & (table.end_ns <= (late.last_token_ns or 0)))
    worst = gaps[np.argmax(table.end_ns[gaps] - table.begin_ns[gaps])]
    stall = Stall(
        "r4", int(table.begin_ns[worst]), int(table.end_ns[worst]), 8 * MS, StallCause.OTHERS_PREFILL, ("r7",)
    )
    phases = (PhaseTime(Phase.QUEUE, 30 * MS), PhaseTime(Phase.PREFILL, 70 * MS))
    costs = (6e6, 7e5, 0.0, 5e4, 0.0)
    model = StepCostModel(
        *costs, costs, costs, explained=0.98, spread=0.02, steps=100, set_aside=0,
        most_sequences=6, most_context=1e4, most_prefill=1e3,
    )  # fmt: skip
    breakdown = replace(
        breakdown,
        stalls=(stall,),
        stall_patterns=(StallPattern(StallCause.OTHERS_PREFILL, 1, 50 * MS, 55 * MS, 240 * MS),),
        interference=(Interference("r4", "r7", 44 * MS), Interference("r5", "r7", 40 * MS)),
        owners=tuple(Owner("ttft_ns", p, 5, 1e8, phases) for p in (50, 95, 99)),
        step_costs={PROCESS: model},
    )
    return advise.diagnose(breakdown, slo={"ttft": 0.3}, ceilings=Ceilings(20e9, 150e9, "measured"))
