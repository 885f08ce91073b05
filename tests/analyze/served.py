"""A stand-in for a server's engine: requests come at random, and steps take what a known model says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phasetrace.model import Interval, Part, Recording, Request, StepCount
from tests import builders
from tests.builders import EPOCH, PROCESS

COST = (10_000_000.0, 400_000.0, 900.0, 30_000.0, 12.0)  # ns: fixed, sequence, context, prompt, attention


@dataclass
class Live:
    """A request in the engine."""

    place: int
    prompt: int
    output: int
    first: int  # its first step
    read: int = 0  # of its prompt, or of all it has once it was evicted
    given: int = 0
    again: bool = False
    evicted_ns: int = 0

    def __post_init__(self) -> None:
        self.chunks: list[StepCount] = []
        self.recomputed: list[StepCount] = []
        self.yields: list[StepCount] = []
        self.preemptions: list[Interval] = []
        self.marks: list[int] = []
        self.to_read = self.prompt


def served(
    seed: int = 1,
    *,
    requests: int = 30,
    slots: int = 8,
    budget: int = 256,
    noise: float = 0.0,
    evict_every: int = 0,
    cost: tuple[float, ...] = COST,
) -> Recording:
    """A recording of one engine whose requests queue for `slots`, and are evicted every so many steps."""
    random = np.random.default_rng(seed)
    waiting = [Live(n, int(random.integers(1, 600)), int(random.integers(1, 60)), 0) for n in range(requests)]
    running: list[Live] = []
    done: list[Request] = []
    now, number = EPOCH, 0
    begins, ends, running_counts, computed, gaps = [], [], [], [], []
    while waiting or running:
        while waiting and len(running) < slots and (random.random() < 0.3 or not running):
            running.append(waiting.pop(0))
            running[-1].first = number
        if evict_every and number % evict_every == evict_every - 1:
            victims = [r for r in running if r.given and not r.to_read]
            if victims:
                _evict(victims[0], now)
        terms, tokens, gave = np.array([1.0, 0, 0, 0, 0]), 0, []
        for live in running:
            if live.to_read:
                count = max(0, min(live.to_read, budget - tokens))
                if live.evicted_ns:
                    live.preemptions.append(Interval(live.evicted_ns, now))
                    live.evicted_ns = 0
                terms += (0, 0, 0, count, count * (2 * live.read + count) // 2)
                if count:
                    (live.recomputed if live.again else live.chunks).append(StepCount(number, count))
                live.read += count
                live.to_read -= count
                tokens += count
                if live.to_read:
                    live.yields.append(StepCount(number, 0))
                else:
                    gave.append(live)
            else:
                terms += (0, 1, live.prompt + live.given, 0, 0)
                tokens += 1
                gave.append(live)
        gap = int(random.integers(0, 100_000))
        took = int(terms @ np.array(cost) * (1 + noise * random.standard_normal())) + gap
        begins.append(now)
        now += took
        ends.append(now)
        gaps.append(gap)
        running_counts.append(len(running))
        computed.append(tokens)
        for live in gave:
            live.given += 1
            live.again = False
            live.marks.append(now)
            if live.given == live.output:
                running.remove(live)
                done.append(_finished(live, begins, number))
        number += 1
    lengths = np.array(ends) - np.array(begins)
    steps = builders.steps(number, rows=1, computed=computed, stream=1)
    steps = builders.dataclasses.replace(
        steps,
        begin_ns=np.array(begins),
        end_ns=np.array(ends),
        parts={Part.OTHER: np.array(gaps), Part.FORWARD: lengths - np.array(gaps)},
        running=np.array(running_counts),
    )
    return builders.recording(*done, steps=[steps])


def _evict(live: Live, now: int) -> None:
    live.read, live.to_read, live.again, live.evicted_ns = 0, live.prompt + live.given, True, now


def _finished(live: Live, begins: list[int], number: int) -> Request:
    begin = begins[live.first]
    return builders.request(
        f"r{live.place}",
        prompt=live.prompt,
        output=live.output,
        engine="vllm",
        process=PROCESS,
        arrival_ns=begin,
        received_ns=begin,
        scheduled_ns=begin,
        first_token_ns=live.marks[0],
        last_token_ns=live.marks[-1],
        finished_ns=live.marks[-1],
        stream=1,
        first_step=live.first,
        last_step=number,
        prefill_chunks=tuple(live.chunks),
        recomputed=tuple(live.recomputed),
        yields=tuple(live.yields),
        preemptions=tuple(live.preemptions),
    )
