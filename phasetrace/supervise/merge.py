"""Two recordings of one run, the later made from what the earlier had not used up, as one: nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from phasetrace.model import Ints, Pause, Process, Recording, Request, RequestStatus, Samples, Stage, Steps

Stretch = TypeVar("Stretch", Pause, Stage)
SAME_NS = 1_000_000  # two readings of one time differ by how the clocks were compared


class Merged:
    """An outlet that keeps all in memory."""

    def __init__(self) -> None:
        self.recording = Recording()

    def write(self, recording: Recording) -> None:
        """Take one part."""
        self.recording = merge(self.recording, recording)


def merge(earlier: Recording, later: Recording) -> Recording:
    """What both know. Of a request that both have, the one that saw more of it."""
    return replace(
        later,
        requests=_requests(earlier, later),
        steps=(*earlier.steps, *_further_steps(earlier, later)),
        pauses=(*earlier.pauses, *_further(earlier.pauses, later.pauses)),
        stages=(*earlier.stages, *_further(earlier.stages, later.stages)),
        samples=(*earlier.samples, *_further_samples(earlier, later)),
        models={**earlier.models, **later.models},
        processes=_processes(earlier, later),
        defects=tuple(dict.fromkeys((*earlier.defects, *later.defects))),
        begin_ns=_known(min, earlier.begin_ns, later.begin_ns),
        end_ns=_known(max, earlier.end_ns, later.end_ns),
    )


def _requests(earlier: Recording, later: Recording) -> tuple[Request, ...]:
    best = {request.id: request for request in earlier.requests}
    for request in later.requests:
        known = best.get(request.id)
        if known is None or _seen(request) > _seen(known):
            best[request.id] = request
    return tuple(best.values())


def _further_samples(earlier: Recording, later: Recording) -> Iterator[Samples]:
    """Those that begin after the earlier recording's of the same process or device end."""
    ends: dict[tuple[str, int | None], int] = {}
    for s in earlier.samples:
        ends[s.process, s.device] = max(ends.get((s.process, s.device), 0), int(s.times_ns[-1]))
    for s in later.samples:
        if int(s.times_ns[0]) > ends.get((s.process, s.device), 0):
            yield s


def _seen(request: Request) -> tuple[bool, int]:
    return request.status is not RequestStatus.CUT_OFF, -1 if request.last_step is None else request.last_step


def _processes(earlier: Recording, later: Recording) -> tuple[Process, ...]:
    known = {process.key: process for process in earlier.processes}
    for process in later.processes:
        before = known.get(process.key)
        known[process.key] = _process(before, process) if before else process
    return tuple(known.values())


def _process(earlier: Process, later: Process) -> Process:
    """Counts only grow, and the later look may have begun in the middle."""
    return replace(
        later,
        begin_ns=_known(min, earlier.begin_ns, later.begin_ns),
        end_ns=_known(max, earlier.end_ns, later.end_ns),
        engines={**earlier.engines, **later.engines},
        refused={**earlier.refused, **later.refused},
        facts={**earlier.facts, **later.facts},
        hook_calls=max(earlier.hook_calls, later.hook_calls),
        hook_ns=max(earlier.hook_ns, later.hook_ns),
        lost_records=max(earlier.lost_records, later.lost_records),
        troubles=tuple(dict.fromkeys((*earlier.troubles, *later.troubles))),
        uncovered=tuple(dict.fromkeys((*earlier.uncovered, *later.uncovered))),
    )


def _further_steps(earlier: Recording, later: Recording) -> list[Steps]:
    have: dict[tuple[str, int], list[Ints]] = {}
    for steps in earlier.steps:
        have.setdefault((steps.process, steps.stream), []).append(_indices(steps))
    further = []
    for steps in later.steps:
        known = have.get((steps.process, steps.stream))
        if known is None:
            further.append(steps)
            continue
        new = np.flatnonzero(~np.isin(_indices(steps), np.concatenate(known)))
        runs = np.split(new, np.flatnonzero(np.diff(new) > 1) + 1)
        further += [cut(steps, run) for run in runs if len(run)]
    return further


def _indices(steps: Steps) -> Ints:
    return np.arange(steps.first_index, steps.first_index + len(steps))


def cut(steps: Steps, rows: Ints) -> Steps:
    """Some of the steps, which have to follow on one another."""
    known: dict[str, Any] = {name: values[rows] for name, values in steps.known().items()}
    return replace(
        steps,
        first_index=steps.first_index + int(rows[0]),
        begin_ns=steps.begin_ns[rows],
        end_ns=steps.end_ns[rows],
        parts={part: values[rows] for part, values in steps.parts.items()},
        **known,
    )


def _further(earlier: Iterable[Stretch], later: Iterable[Stretch]) -> list[Stretch]:
    known = {_place(one, shift) for one in earlier for shift in (-1, 0, 1)}
    return [one for one in later if _place(one, 0) not in known]


def _place(one: Pause | Stage, shift: int) -> tuple[str, str, int, int]:
    name = one.kind if isinstance(one, Pause) else one.name
    return one.process, name, one.begin_ns // SAME_NS + shift, one.end_ns - one.begin_ns


def _known(choose: Callable[[list[int]], int], *values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None
