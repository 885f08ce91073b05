"""How the application asks: one by one, in batches, from many threads, streaming."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from phasetrace.analyze.metrics import busy_ns
from phasetrace.analyze.tokens import prompts
from phasetrace.model import Request, RequestBreakdown

LOOP = 16  # requests in a row: fewer may be a person typing, a test, or a demo
IDLE_SHARE = 0.2  # of a loop's time between its requests: a person reads and types for longer than that
OVERLAP = 1.5  # mean requests under way: well above one at a time, and below two that always run
CONTENDERS = 8  # requests that overlap: fewer are an accident of timing
BUILDING = 0.5  # of the calls hold the last prompt and its answer, by length: lists of prompts do not
BATCH = 4  # prompts in one call: nobody waits for a single answer then


@dataclass(frozen=True, slots=True)
class Workload:
    """The shape of the load on one model of one process (the one with most time)."""

    requests: int
    prompts_per_call: float
    concurrency: float  # mean requests under way while any is
    idle_share: float  # of the time from first arrival to last end
    streaming: bool
    building: bool  # each prompt builds on the answer before it: a conversation, an agent
    separate_streams: bool  # overlapping requests ran as calls of their own, not in one batch of an engine

    @property
    def back_to_back(self) -> bool:
        """Calls one after the other without a pause: what they ask was all there from the start."""
        return self.concurrency < OVERLAP and self.idle_share <= IDLE_SHARE and not self.building

    @property
    def loop(self) -> bool:
        """Many prompts one after the other without a pause, whose answers nobody waits for one by one."""
        return (
            self.back_to_back
            and self.requests >= LOOP
            and self.prompts_per_call < BATCH
            and not self.streaming
        )

    @property
    def contending(self) -> bool:
        """Several calls at once, each with a batch of its own, on one model."""
        return self.requests >= CONTENDERS and self.concurrency >= OVERLAP and self.separate_streams

    @property
    def batched(self) -> bool:
        """Several prompts a call."""
        return self.prompts_per_call >= BATCH


def workload(
    requests: Sequence[RequestBreakdown], warm_up: Sequence[RequestBreakdown] = ()
) -> Workload | None:
    """Of the model that most time was spent on. While its `warm_up` ran, nobody was idle."""
    groups: dict[tuple[str, str | None], list[RequestBreakdown]] = defaultdict(list)
    for request in requests:
        groups[request.request.process, request.request.model].append(request)
    if not groups:
        return None
    key, most = max(groups.items(), key=lambda item: sum(r.e2e_ns for r in item[1]))
    group = [r.request for r in most]
    busy = busy_ns(group)
    everyone = [*group, *(r.request for r in warm_up if (r.request.process, r.request.model) == key)]
    life = max(r.finished_ns or r.arrival_ns for r in everyone) - min(r.arrival_ns for r in everyone)
    streams = {r.stream for r in group if r.stream is not None}
    return Workload(
        requests=len(group),
        prompts_per_call=statistics.mean(prompts(r) for r in group),
        concurrency=sum((r.finished_ns or r.arrival_ns) - r.arrival_ns for r in group) / busy
        if busy
        else 0.0,
        idle_share=1 - busy_ns(everyone) / life if life else 0.0,
        streaming=any(r.settings.get("streamer") for r in group),
        building=_building(group),
        separate_streams=len(streams) > 1,
    )


def _building(requests: Sequence[Request]) -> bool:
    """Whether prompts grow from call to call by about what was answered: those calls cannot run at once."""
    pairs = [
        (later.prompt_tokens, (earlier.prompt_tokens or 0) + (earlier.output_tokens or 0))
        for earlier, later in zip(requests, requests[1:], strict=False)
    ]
    grown = [told is not None and told >= before > 0 for told, before in pairs]
    return bool(grown) and sum(grown) >= BUILDING * len(grown)
