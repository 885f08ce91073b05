"""A server in numbers: continuous batching with a cap, a token budget and a KV cache; what it would record.

A step takes `fixed` + `row` a decoding sequence + `token` a prompt token. Running the same load again with a
knob changed says what a fix really brings, which predictions are held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phasetrace.model import Interval, Part, Recording, Request, StepCount, Steps, Wait
from tests import builders
from tests.builders import EPOCH, MS, PROCESS

REASONS = list(Wait)
BLOCK = 16


@dataclass
class Asked:
    """One request of a load, and how far it has come."""

    at_ms: float
    prompt: int
    output: int
    read: int = 0
    written: int = 0
    redo: int = 0  # tokens to read again after an eviction
    marks: dict[str, int] = field(default_factory=dict)
    chunks: list[StepCount] = field(default_factory=list)
    again: list[StepCount] = field(default_factory=list)
    evicted: list[list[int]] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        return -(-(self.read + self.written + 1) // BLOCK)


def load(n: int, every_ms: float, prompt: int = 64, output: int = 32) -> list[Asked]:
    """Requests that come at a steady rate."""
    return [Asked(k * every_ms, prompt, output) for k in range(n)]


def serve(
    asked: Sequence[Asked],
    *,
    slots: int = 64,
    budget: int = 2048,
    blocks: int = 100_000,
    fixed_ms: float = 10.0,
    row_ms: float = 0.1,
    token_ms: float = 0.02,
    host: float = 0.02,
    reserve: bool = False,
    settings: Mapping[str, Any] | None = None,
    knobs: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Recording:
    """The load as the server would record it. `host` is the share of each step outside the forward pass."""
    now, index = EPOCH, 0
    running: list[Asked] = []
    waiting: list[Asked] = []
    coming = sorted(asked, key=lambda a: a.at_ms)
    columns: dict[str, list[int]] = {
        n: [] for n in ("begin", "end", "run", "new", "computed", "wait", "kv", "why")
    }
    finished: list[Asked] = []
    while coming or waiting or running:
        waiting += [a for a in coming if EPOCH + a.at_ms * MS <= now]
        coming = [a for a in coming if EPOCH + a.at_ms * MS > now]
        if not waiting and not running:
            now = int(EPOCH + coming[0].at_ms * MS)
            continue
        left, reads, why = budget, [], Wait.NONE
        decoding = [a for a in running if a.read >= a.prompt and not a.redo]
        while decoding and sum(a.blocks for a in running) > blocks and len(running) > 1:
            victim = running.pop()
            decoding = [a for a in decoding if a is not victim]
            victim.evicted.append([now, now])
            victim.redo, victim.read = victim.read + victim.written, 0
            waiting.insert(0, victim)
            why = Wait.KV
        left -= len(decoding)
        for a in running:
            if a not in decoding and left > 0:
                take = min(left, (a.redo or a.prompt) - a.read)
                reads.append((a, take))
                left -= take
        while waiting and why is Wait.NONE:
            head = waiting[0]
            needed = -(-(head.prompt + (head.output if reserve else 1)) // BLOCK)
            used = sum(-(-(a.prompt + a.output) // BLOCK) if reserve else a.blocks for a in running)
            why = (
                Wait.SLOTS
                if len(running) >= slots
                else Wait.BUDGET
                if left <= 0
                else Wait.KV
                if used + needed > blocks
                else Wait.NONE
            )
            if why is not Wait.NONE:
                break
            running.append(waiting.pop(0))
            if head.evicted:
                head.evicted[-1][1] = now
            head.marks.setdefault("scheduled", now)
            head.marks.setdefault("first_step", index)
            take = min(left, (head.redo or head.prompt) - head.read)
            reads.append((head, take))
            left -= take
        prompt = sum(n for _, n in reads)
        length = int((fixed_ms + row_ms * len(decoding) + token_ms * prompt) * MS)
        given = 0
        for a, n in reads:
            a.read += n
            (a.again if a.redo else a.chunks).append(StepCount(index, n))
            if a.redo and a.read >= a.redo:
                a.read, a.redo = a.prompt, 0
            if not a.redo and a.read >= a.prompt and a.written == 0:
                decoding.append(a)
        for a in decoding:
            a.written += 1
            given += 1
            a.marks.setdefault("first", now + length)
            a.marks["last"], a.marks["last_step"] = now + length, index
        for name, value in zip(
            columns,
            (now, now + length, len({id(a) for a in decoding} | {id(a) for a, _ in reads}), given,
             len(decoding) + prompt - sum(1 for a, n in reads if a in decoding), len(waiting),
             sum(a.blocks for a in running), REASONS.index(why) if waiting else 0),
            strict=True,
        ):  # fmt: skip
            columns[name].append(value)
        finished += [a for a in running if a.written >= a.output]
        running = [a for a in running if a.written < a.output]
        now, index = now + length, index + 1
    facts = {
        "max_num_seqs": slots,
        "max_num_batched_tokens": budget,
        "num_gpu_blocks": blocks,
        **(knobs or {}),
    }
    requests = [
        _request(f"r{n}", a, settings or {}, fields)
        for n, a in enumerate(sorted(finished, key=lambda a: a.at_ms))
    ]
    return builders.recording(
        *requests, steps=[_steps(columns, host)], processes=(builders.process(facts=facts),)
    )


def _request(name: str, a: Asked, settings: Mapping[str, Any], fields: Mapping[str, Any]) -> Request:
    arrival = int(EPOCH + a.at_ms * MS)
    return builders.request(
        name,
        prompt=a.prompt,
        output=a.output,
        engine="vllm",
        settings=settings,
        arrival_ns=arrival,
        received_ns=arrival,
        scheduled_ns=a.marks["scheduled"],
        first_token_ns=a.marks["first"],
        last_token_ns=a.marks["last"],
        finished_ns=a.marks["last"],
        stream=1,
        first_step=a.marks["first_step"],
        last_step=a.marks["last_step"],
        prefill_chunks=tuple(a.chunks),
        recomputed=tuple(a.again),
        preemptions=tuple(Interval(begin, end) for begin, end in a.evicted if end > begin),
        **fields,
    )


def _steps(columns: Mapping[str, Sequence[int]], host: float) -> Steps:
    told = {name: np.array(values, np.int64) for name, values in columns.items()}
    length = told["end"] - told["begin"]
    schedule = (length * host / 2).astype(np.int64)
    output = (length * host / 2).astype(np.int64)
    return Steps(
        process=PROCESS,
        stream=1,
        first_index=0,
        begin_ns=told["begin"],
        end_ns=told["end"],
        parts={Part.SCHEDULE: schedule, Part.FORWARD: length - schedule - output, Part.OUTPUT: output},
        running=told["run"],
        new_tokens=told["new"],
        computed_tokens=told["computed"],
        waiting=told["wait"],
        kv_blocks=told["kv"],
        waits=told["why"],
    )
