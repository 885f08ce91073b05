"""How full an engine's steps were while requests were under way: batch, queue, KV cache, host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from phasetrace.analyze.composition import composition
from phasetrace.analyze.non_negative import Floats
from phasetrace.analyze.rates import decode_rows
from phasetrace.analyze.step_model import Flags
from phasetrace.analyze.step_parts import PART_ORDER
from phasetrace.analyze.step_table import UNKNOWN, StepTable
from phasetrace.model import Breakdown, Ints, Part, Request, RequestBreakdown, Steps, chosen

HOST = (Part.OTHER, Part.SCHEDULE, Part.OUTPUT)  # of a shared step: the device has nothing to do in them
FULL = 0.9  # quantile over time of the KV cache's use: how full it gets, not how full it starts
S = 1e9


@dataclass(frozen=True, slots=True)
class StepLoad:
    """Of the steps that requests decoded in; None is unknown."""

    parts_s: Mapping[Part, float] = field(default_factory=dict)  # means a step
    running: float | None = None  # sequences, the median over time
    waiting: float | None = None  # requests, the mean over time
    kv_cache_usage: float | None = None
    preemptions: float | None = None
    recomputed_token_share: float | None = None
    host_gap_s: float | None = None  # a step
    others_prompt_tokens: float | None = None  # read while a request decoded, the mean over requests

    def part_s(self, *parts: Part) -> float | None:
        """Mean seconds a step, None where no step has any of them."""
        return sum(self.parts_s.get(part, 0.0) for part in parts) or None


def step_load(breakdown: Breakdown, requests: Sequence[RequestBreakdown], table: StepTable) -> StepLoad:
    """Of the steps of these requests."""
    asked = [r.request for r in requests]
    used = decode_rows(asked, table)
    count = int(np.count_nonzero(used))
    if not count:
        return StepLoad()
    spent = zip(PART_ORDER, table.parts.spent_in(used).tolist(), strict=True)
    parts = {part: ns / count / S for part, ns in spent if ns}
    made = composition(asked, table)
    engines = list(table.steps.knowing("waiting"))
    evictions = sum(len(r.preemptions) for r in asked)
    again = sum(count.tokens for r in asked for count in r.recomputed)
    shared = made is not None and bool(made.shared[used].any())
    return StepLoad(
        parts_s=parts,
        running=_running(table, used) if shared or engines else None,
        waiting=_mean_over_time(engines, "waiting"),
        kv_cache_usage=_kv_cache_usage(breakdown, engines),
        preemptions=evictions if shared or engines else None,
        recomputed_token_share=again / _computed(table, used) if evictions else None,
        host_gap_s=sum(parts.get(p, 0.0) for p in HOST) if shared else _idle_device_s(table, used),
        others_prompt_tokens=None if made is None else _others_prompt_tokens(made.prompt, asked, table),
    )


def _computed(table: StepTable, used: Flags) -> int:
    return max(1, int(chosen(table.computed_tokens, used).clip(0).sum()))


def _running(table: StepTable, used: Flags) -> float | None:
    running = chosen(table.running, used)
    known = running != UNKNOWN
    if not known.any():
        return None
    lengths = table.length_ns[used][known]
    return _quantile(running[known].astype(np.float64), lengths.astype(np.float64), 0.5)


def _mean_over_time(steps: Sequence[Steps], name: str) -> float | None:
    lengths = sum(int((s.end_ns - s.begin_ns).sum()) for s in steps)
    held = sum(int(((s.end_ns - s.begin_ns) * getattr(s, name)).sum()) for s in steps)
    return held / lengths if lengths else None


def _kv_cache_usage(breakdown: Breakdown, steps: Sequence[Steps]) -> float | None:
    blocks = {p.key: p.facts.get("num_gpu_blocks") for p in breakdown.recording.processes}
    shares, lengths = [], []
    for s in steps:
        total = blocks.get(s.process)
        if s.kv_blocks is not None and isinstance(total, int) and total > 0:
            shares.append(s.kv_blocks / total)
            lengths.append((s.end_ns - s.begin_ns).astype(np.float64))
    if not shares:
        return None
    return min(1.0, _quantile(np.concatenate(shares), np.concatenate(lengths), FULL))


def _idle_device_s(table: StepTable, used: Flags) -> float | None:
    """Of a step, what the device's own time leaves, where that is known."""
    device = chosen(table.device_ns, used)
    known = device != UNKNOWN
    if not known.any():
        return None
    lengths = table.length_ns[used][known]
    return max(0.0, float((lengths - device[known]).mean())) / S


def _others_prompt_tokens(prompt: Ints, requests: Sequence[Request], table: StepTable) -> float | None:
    read = np.concatenate([[0], np.cumsum(prompt)])
    rows = [rows for r in requests if (rows := table.decode_rows(r)) is not None]
    return float(np.mean([read[r.end] - read[r.begin] for r in rows])) if rows else None


def _quantile(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, share * reached[-1]))
    return float(values[order][min(place, len(values) - 1)])
