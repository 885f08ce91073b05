"""What the rules look at: the breakdown, the goal, and what the trace says of the cost of a token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phasetrace.advise.capacity import SharedStep, shared_step
from phasetrace.advise.knobs import first_number, to_record
from phasetrace.advise.queueing import Offered, Queue, offered, queue_of
from phasetrace.advise.workload import Workload, workload
from phasetrace.analyze.rates import PrefillCost, StepCost, decode_rows, prefill_cost, step_cost
from phasetrace.analyze.shared_time import FORWARD_PARTS
from phasetrace.analyze.step_table import UNKNOWN, StepTable, step_table
from phasetrace.analyze.tokens import decode_steps
from phasetrace.model import (
    Breakdown,
    Ceilings,
    Goal,
    Knobs,
    ModelFacts,
    Part,
    Phase,
    RequestBreakdown,
    StepCostModel,
    chosen,
    recordable,
)

KNOWN_SHARE = 0.5  # of the decode steps: device times of fewer do not stand for the rest


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a rule may judge by."""

    breakdown: Breakdown
    table: StepTable
    load: Workload | None
    prefill: PrefillCost | None
    step: StepCost | None
    queue: Queue | None = None  # why requests waited, where an engine's steps say so
    offered: Offered | None = None  # the rate at which requests came
    shared: SharedStep | None = None  # what sequences share in a step
    goal: Goal = Goal.E2E
    goal_stated: bool = False  # by a goal or an SLO
    slo: Mapping[str, float] | None = None
    ceilings: Ceilings | None = None

    @property
    def requests(self) -> tuple[RequestBreakdown, ...]:
        """The diagnosed requests."""
        return self.breakdown.requests

    @property
    def total_ns(self) -> int:
        """Wall time over the diagnosed requests."""
        return self.breakdown.total_ns

    def phase_ns(self, *phases: Phase) -> int:
        """Time of phases over the diagnosed requests."""
        return sum(time.ns for time in self.breakdown.phases if time.phase in phases)

    def part_ns(self, part: Part, *phases: Phase) -> int:
        """Time of a part over the diagnosed requests, in the given phases or in all."""
        return sum(
            time.ns
            for phase in self.breakdown.phases
            if not phases or phase.phase in phases
            for time in phase.parts
            if time.part is part
        )

    def forward_ns(self, phase: Phase) -> int:
        """Time in forward passes over the diagnosed requests, whoever they were for."""
        return sum(self.part_ns(part, phase) for part in FORWARD_PARTS)

    def share(self, ns: float) -> float:
        """Of the diagnosed requests' time."""
        return ns / self.total_ns if self.total_ns else 0.0

    @property
    def whole_ns(self) -> int:
        """What the goal is a part of: the time to first tokens, else all of the requests' time."""
        if self.goal is Goal.TTFT:
            return sum(r.ttft_ns or 0 for r in self.requests)
        return self.total_ns

    @property
    def whole(self) -> str:
        """The same in words."""
        return "the time to first tokens" if self.goal is Goal.TTFT else "all time"

    @property
    def stepped(self) -> bool:
        """Whether the steps were recorded that these requests decoded in."""
        return any(self.table.decode_rows(r.request) is not None for r in self.requests)

    @property
    def decode_steps(self) -> int:
        """Decode steps of the diagnosed requests; one that several share counts for each."""
        return sum(decode_steps(r.request, self.table) or 0 for r in self.requests)

    @property
    def by_run(self) -> str:
        """How to measure more, in brackets; empty where the engine is none that phasetrace records."""
        return " (`phasetrace run`)" if recordable(self.engine) else ""

    @property
    def to_record(self) -> tuple[str, ...]:
        """The command that measures more, where there is one."""
        return to_record(self.engine)

    @property
    def engine(self) -> str:
        """The engine of most requests; `other` without any."""
        named = [r.request.engine for r in self.requests]
        return max(set(named), key=named.count) if named else "other"

    @property
    def knobs(self) -> Knobs:
        """The engine's settings in effect, and other facts of its processes."""
        found: dict[str, bool | int | float | str] = {}
        for process in self.breakdown.recording.processes:
            found.update(process.facts)
        return found

    def knob(self, *names: str) -> float | None:
        """The first of these settings that is a number."""
        return first_number(self.knobs, *names)

    @property
    def prompt_costs(self) -> tuple[float, float] | None:
        """Of a step that reads prompts: what it takes in any case, and for each token. None: unknown."""
        model = step_model(self.breakdown)
        if model is not None and model.per_prefill_ns > 0:
            return model.fixed_ns, model.per_prefill_ns
        if self.prefill is None or self.prefill.fixed_ns is None:
            return None
        return self.prefill.fixed_ns, self.prefill.per_token_ns

    def setting(self, name: str) -> list[bool | int | float | str | None]:
        """A generation setting of each diagnosed request."""
        return [request.request.settings.get(name) for request in self.requests]

    @property
    def asynchronous(self) -> bool:
        """Whether the device runs behind the host, so that a host part may only be waiting for it."""
        return self.model is not None and self.model.device not in (None, "cpu")

    def holding_back(self, host_ns: float) -> float | None:
        """How much of a host part of decode kept the device waiting; None where that is unknown.

        All of it where the host computes itself. Else at most what the device's own time leaves of the
        steps: a streamer that copies a token to the host waits for the forward pass first.
        """
        if not self.asynchronous:
            return host_ns
        used = decode_rows([r.request for r in self.requests], self.table)
        device = chosen(self.table.device_ns, used)
        known = device != UNKNOWN
        if not known.any() or known.mean() < KNOWN_SHARE:
            return None
        length = self.table.length_ns[used][known]
        return min(host_ns, max(0.0, float(length.sum() - device[known].sum()) / float(known.mean())))

    @property
    def model(self) -> ModelFacts | None:
        """The model that most of the time was spent on, where its shape is known."""
        spent: dict[str, int] = {}
        for request in self.requests:
            if request.request.model is not None:
                spent[request.request.model] = spent.get(request.request.model, 0) + request.e2e_ns
        if not spent:
            return None
        return self.breakdown.recording.models.get(max(spent, key=lambda key: spent[key]))


def gather(
    breakdown: Breakdown, ceilings: Ceilings | None = None, table: StepTable | None = None
) -> Evidence:
    """Everything that follows from the breakdown alone."""
    table = table or step_table(breakdown.recording)
    prefill = prefill_cost(breakdown.requests)
    step = step_cost([r.request for r in breakdown.requests], table)
    return Evidence(
        breakdown=breakdown,
        table=table,
        load=workload(breakdown.requests, breakdown.warm_up),
        prefill=prefill,
        step=step,
        queue=queue_of(breakdown.recording),
        offered=offered([r.request for r in breakdown.requests]),
        shared=shared_step(breakdown.requests, step_model(breakdown), step, prefill),
        ceilings=ceilings,
    )


def step_model(breakdown: Breakdown) -> StepCostModel | None:
    """Of the engine that ran most steps."""
    models = breakdown.step_costs
    return max(models.values(), key=lambda model: model.steps) if models else None
