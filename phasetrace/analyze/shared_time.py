"""What a request's share of a shared step was spent on: itself, its peers, the prompts of others.

By the step-cost model: of a step's forward pass, the terms that stand for the request alone, for those who
decoded with it and for prompts. Where the step took longer than the model says, the rest stays `forward`;
where it took less, all terms shrink alike. Running sums over rows make a stretch of any length two
subtractions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phasetrace.analyze.composition import Composition
from phasetrace.analyze.non_negative import Floats
from phasetrace.analyze.step_model import Flags, coefficients_of, design, step_ns
from phasetrace.analyze.step_parts import OTHER_COLUMN, PART_ORDER
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Ints, Part, PartTime, Phase, PhaseTime, StepCostModel

FORWARD = PART_ORDER.index(Part.FORWARD)
FIXED, SEQUENCE, CONTEXT, PROMPT, ATTENTION = range(5)
# What a recorded forward pass may have become
FORWARD_PARTS = (
    Part.FORWARD,
    Part.FLOOR,
    Part.PEERS,
    Part.OTHERS_PREFILL,
    Part.BETWEEN_CHUNKS,
    Part.RECOMPUTE,
)
# In each phase, what is taken out of which recorded part, in this order
TAKEN = {
    Phase.PREFILL: {
        Part.FORWARD: (Part.PEERS, Part.OTHERS_PREFILL, Part.BETWEEN_CHUNKS),
        Part.OTHER: (Part.HOST_GAP,),
    },
    Phase.DECODE: {
        Part.FORWARD: (Part.FLOOR, Part.PEERS, Part.OTHERS_PREFILL, Part.RECOMPUTE),
        Part.OTHER: (Part.HOST_GAP,),
    },
}


@dataclass(frozen=True, slots=True)
class RowCosts:
    """Nanoseconds of each row's forward pass by the model. `scale` x a term of the model is its time."""

    made: Composition
    of_request: Floats  # (requests, 5): the coefficients of its process's model, 0 where there is none
    scale: Floats
    decode: Floats  # of all sequences that decode, with their KV
    read: Floats  # of all prompt tokens


@dataclass(frozen=True, slots=True)
class SharedTime:
    """Nanoseconds of each part by request, in the order of `Composition.requests`."""

    places: Mapping[str, int]  # Request.id -> place
    parts: Mapping[tuple[Phase, Part], list[int]]

    def split(self, request: str, phases: tuple[PhaseTime, ...]) -> tuple[PhaseTime, ...]:
        """The same phases, their forward time told apart; every sum stays what it was."""
        place = self.places.get(request)
        if place is None:
            return phases
        return tuple(self._split(place, time) if time.phase in TAKEN else time for time in phases)

    def _split(self, place: int, phase: PhaseTime) -> PhaseTime:
        taken = TAKEN[phase.phase]
        parts: list[PartTime] = []
        for time in phase.parts:
            if time.part not in taken:
                parts.append(time)
                continue
            left = time.ns
            for part in taken[time.part]:
                ns = min(left, self.parts[phase.phase, part][place])
                if ns > 0:
                    left -= ns
                    parts.append(PartTime(part, ns))
            if left:
                parts.append(PartTime(time.part, left))
        return PhaseTime(phase.phase, phase.ns, tuple(parts))


def row_costs(made: Composition, table: StepTable, models: Mapping[str, StepCostModel]) -> RowCosts:
    """The models applied to every shared row."""
    columns = design(made, np.arange(len(made.shared)))
    cost = np.zeros_like(columns)
    for (process, _), rows in table.streams.items():
        if process in models:
            cost[rows.begin : rows.end] = coefficients_of(models[process])
    terms = columns * cost
    terms[~made.shared] = 0.0
    predicted = terms.sum(axis=1)
    longest = np.maximum(predicted, step_ns(table))
    scale = np.where(predicted > 0, table.parts.column(Part.FORWARD) / np.maximum(longest, 1.0), 0.0)
    nothing = np.zeros(5)
    of_request = [
        coefficients_of(models[r.process]) if r.process in models else nothing for r in made.requests
    ]
    return RowCosts(
        made,
        np.array(of_request),
        scale,
        scale * (terms[:, SEQUENCE] + terms[:, CONTEXT]),
        scale * (terms[:, PROMPT] + terms[:, ATTENTION]),
    )


def chunk_costs(costs: RowCosts) -> Floats:
    """Nanoseconds that reading each chunk took in its step."""
    reading = costs.made.reading
    cost = costs.of_request[reading.request]
    return costs.scale[reading.row] * (
        cost[:, PROMPT] * reading.tokens + cost[:, ATTENTION] * reading.attention
    )


def shared_time(costs: RowCosts, table: StepTable) -> SharedTime:
    """The parts of each request that took part in shared steps."""
    parts = _decode(costs, table) | _prefill(costs, table)
    places = {request.id: place for place, request in enumerate(costs.made.requests)}
    whole = {key: np.rint(ns).astype(np.int64).tolist() for key, ns in parts.items()}
    return SharedTime(places, whole)


def _decode(costs: RowCosts, table: StepTable) -> dict[tuple[Phase, Part], Floats]:
    made, d = costs.made, costs.made.decoding
    cost = costs.of_request[d.request]
    scale, decode, read = (_running_sum(column) for column in (costs.scale, costs.decode, costs.read))
    ramp = _running_sum(costs.scale * np.arange(len(costs.scale)))
    here = scale[d.end] - scale[d.begin]
    each = _running_sum(costs.scale * made.positions / np.maximum(made.sequences, 1))  # positions a sequence
    context = (d.context - d.sequences * d.begin) * here + d.sequences * (ramp[d.end] - ramp[d.begin])
    own = cost[:, SEQUENCE] * d.sequences * (each[d.end] - each[d.begin]) + cost[:, CONTEXT] * context
    gap = np.concatenate([[0], np.cumsum(table.parts.column(Part.OTHER), dtype=np.int64)])
    found = {
        Part.FLOOR: (d.request, cost[:, FIXED] * here + own),
        Part.PEERS: (d.request, decode[d.end] - decode[d.begin] - own),
        Part.OTHERS_PREFILL: (d.request, read[d.end] - read[d.begin]),
        Part.HOST_GAP: (d.request, (gap[d.end] - gap[d.begin]).astype(np.float64)),
    }
    result = {(Phase.DECODE, part): _by_request(made, *pair) for part, pair in found.items()}
    again = made.reading.again
    for part, values in _around_chunks(costs, table, again).items():
        key = (Phase.DECODE, part)
        result[key] = result.get(key, 0.0) + values
    request, row = made.reading.request[again], made.reading.row[again]
    base = costs.of_request[request, FIXED] * costs.scale[row]
    result[Phase.DECODE, Part.RECOMPUTE] = _by_request(made, request, base + chunk_costs(costs)[again])
    return result


def _prefill(costs: RowCosts, table: StepTable) -> dict[tuple[Phase, Part], Floats]:
    made = costs.made
    chunks = ~made.reading.again
    found = _around_chunks(costs, table, chunks)
    request, row = made.reading.request[chunks], made.reading.row[chunks]
    forward = _by_request(made, request, table.parts.at(row)[:, FORWARD].astype(np.float64))
    between = np.zeros(len(made.requests))
    for place, r in enumerate(made.requests):
        rows = table.rows(r)
        if rows is None or r.first_token_ns is None or r.preemptions or len(r.prefill_chunks) < 2:
            continue
        until = table.after_prefill(rows, r.first_token_ns).begin
        whole = float(table.parts.spent(rows.begin, until)[FORWARD])
        between[place] = max(0.0, whole - forward[place])
    found[Part.BETWEEN_CHUNKS] = between
    return {(Phase.PREFILL, part): values for part, values in found.items()}


def _around_chunks(costs: RowCosts, table: StepTable, which: Flags) -> dict[Part, Floats]:
    """What else the steps did that read these chunks."""
    made = costs.made
    request, row = made.reading.request[which], made.reading.row[which]
    found = {
        Part.PEERS: costs.decode[row],
        Part.OTHERS_PREFILL: costs.read[row] - chunk_costs(costs)[which],
        Part.HOST_GAP: table.parts.at(row)[:, OTHER_COLUMN].astype(np.float64),
    }
    return {part: _by_request(made, request, values) for part, values in found.items()}


def _running_sum(column: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(column)])


def _by_request(made: Composition, request: Ints, values: Floats) -> Floats:
    found: Floats = np.bincount(request, values, len(made.requests)).astype(np.float64, copy=False)
    return found
