"""Two diagnoses side by side: like requests, metrics judged, the difference put to phases and causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from phasetrace.analyze.as_table import table_of
from phasetrace.analyze.compare.alike import Alike, alike, prompt_length
from phasetrace.analyze.compare.differences import machine_differs, measured_differently, set_differently
from phasetrace.analyze.compare.failures import failure_change
from phasetrace.analyze.compare.findings import finding_changes
from phasetrace.analyze.compare.metrics import SHAPE, mean_changes, noise_of
from phasetrace.analyze.compare.percentiles import percentile_changes
from phasetrace.analyze.compare.phases import phase_changes
from phasetrace.analyze.host_use import host_use
from phasetrace.analyze.noise import RUNS_DIFFER
from phasetrace.analyze.step_table import StepTable
from phasetrace.analyze.tokens import prompts
from phasetrace.model import (
    Breakdown,
    Comparison,
    Diagnosis,
    Difference,
    Matched,
    Mix,
    Table,
)

CAPS = ("max_tokens", "max_new_tokens", "max_length")


def compare(
    before: Diagnosis,
    after: Diagnosis,
    steps: tuple[StepTable, StepTable],
    names: tuple[str, str],
    runs_differ: float = RUNS_DIFFER,
) -> Comparison:
    """What changed from one to the other; each of them has at least one diagnosed request.

    `steps` are the tables of their recordings' steps, `names` is what the two are called;
    two runs differ by the share `runs_differ` with nothing changed.
    """
    both = before.breakdown, after.breakdown
    tables = table_of(both[0], steps[0]), table_of(both[1], steps[1])
    found = alike(*both)
    knobs = tuple(set_differently(*both, tables))
    mix = _mix(found, both, tables, knobs)
    starved = _starved(both)
    machine = _machine(starved, knobs)
    noise = noise_of(found, (_at_once(tables[0]), _at_once(tables[1])), machine, runs_differ)
    failures = failure_change(*both)
    metrics = (
        *mean_changes(found, noise, mix),
        *percentile_changes(found, both, steps, noise, mix),
        *((failures,) if failures else ()),
    )
    judged = Comparison(before, after, mix, metrics, runs_differ)
    return replace(
        judged,
        phases=phase_changes(found),
        findings=tuple(finding_changes(before, after, judged.of_goal(), machine)),
        knobs=knobs,
        measured=tuple(measured_differently(tables)),
        starved=starved,
        widened=machine != 1.0,
        names=names,
    )


def _mix(
    found: Alike, both: tuple[Breakdown, Breakdown], tables: tuple[Table, Table], knobs: Sequence[Difference]
) -> Mix:
    # Of pairs only: who is warm-up differs from run to run, and the means over all with it
    one, other = (found.before, found.after) if found.paired else (b.requests for b in both)
    lengths = _means([prompt_length(r.request) for r in one], [prompt_length(r.request) for r in other])
    unlike = found.matched is Matched.ALL and lengths is not None
    return Mix(
        matched=found.matched,
        compared=(0, 0) if unlike else (len(found.before), len(found.after)),
        requests=(len(both[0].requests), len(both[1].requests)),
        prompt_tokens=lengths,
        output_tokens=_means(
            [r.request.longest_output for r in one], [r.request.longest_output for r in other]
        ),
        prompts=_means([prompts(r.request) for r in one], [prompts(r.request) for r in other]),
        cap_changed=any(d.name in CAPS for d in knobs),
        load_ratio=_load(tables),
    )


def _means(before: Sequence[float | None], after: Sequence[float | None]) -> tuple[float, float] | None:
    known = [[value for value in side if value is not None] for side in (before, after)]
    return (fmean(known[0]), fmean(known[1])) if all(known) else None


def _load(tables: tuple[Table, Table]) -> float | None:
    """Times as many requests that came; None where as many, or where as many ran at once.

    In a closed loop a faster system is asked more often, and in an open one fewer run at once: only where
    both moved the same way, more was asked of it.
    """
    one, other = (table.groups[-1] for table in tables)
    if not (one.request_rate and other.request_rate and one.concurrency and other.concurrency):
        return None
    rate, at_once = other.request_rate / one.request_rate, other.concurrency / one.concurrency
    same_way = (rate > SHAPE and at_once > SHAPE) or (rate < 1 / SHAPE and at_once < 1 / SHAPE)
    return rate if same_way else None


def _at_once(table: Table) -> float:
    return table.groups[-1].concurrency or 1.0


def _starved(both: tuple[Breakdown, Breakdown]) -> tuple[float, float] | None:
    used = [host_use(b.recording, (r.request for r in b.requests)) for b in both]
    one, other = (u.starved if u is not None else None for u in used)
    return None if one is None or other is None else (one, other)


def _machine(starved: tuple[float, float] | None, knobs: tuple[Difference, ...]) -> float:
    """Times better that AFTER would be with BEFORE's share of the CPUs; 1 where that was the change."""
    if starved is None or machine_differs(knobs) or max(starved) >= 1:
        return 1.0
    return (1 - starved[0]) / (1 - starved[1])
