"""A whole recording <-> spans, both directions side by side."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from phasetrace.mapping.budget import Detail, SpanBudget
from phasetrace.mapping.facts_spans import (
    model_from_span,
    model_to_span,
    pauses_from_span,
    pauses_to_spans,
    process_from_span,
    process_to_span,
    run_from_span,
    run_to_span,
    stage_from_span,
    stage_to_span,
)
from phasetrace.mapping.request_attributes import request_from_span
from phasetrace.mapping.request_spans import request_to_spans
from phasetrace.mapping.samples_spans import samples_from_span, samples_to_span
from phasetrace.mapping.span import Attributes, ResourceSpans, Span
from phasetrace.mapping.step_spans import steps_from_span, steps_to_spans
from phasetrace.mapping.step_window import StepWindow
from phasetrace.model import (
    Defect,
    ModelFacts,
    Pause,
    Piece,
    Process,
    Recording,
    Request,
    Samples,
    Shelf,
    Stage,
    Stall,
    StepColumns,
    Steps,
    Times,
)
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName

_NO_SCRIPT = "-c"
_PAUSES = 1024  # the latest, which may lie in a request that goes on
Of = TypeVar("Of", Request, Stage)


def to_spans(
    recording: Recording,
    detail: Detail = Detail.AUTO,
    budget: SpanBudget | None = None,
    stalls: Iterable[Stall] = (),
) -> Iterator[ResourceSpans]:
    """The spans of one recording that is complete in itself; `stalls` explain some of its tokens."""
    return SpanMaker(detail, budget).spans(recording, stalls)


class SpanMaker:
    """Turns the partial recordings of one run into spans, and knows what earlier ones said.

    Args:
        detail: how much to show of each request.
        budget: counts the spans of each trace; one of its own where not given.
        for_file: also make the spans that only a file holds.
    """

    def __init__(
        self, detail: Detail = Detail.AUTO, budget: SpanBudget | None = None, for_file: bool = True
    ) -> None:
        self._budget = budget or SpanBudget(detail)
        self._for_file = for_file
        self._window = StepWindow()
        self._processes: dict[str, Process] = {}
        self._models: dict[str, ModelFacts] = {}
        self._run: Span | None = None  # as it was last told of
        self._pauses: deque[Pause] = deque(maxlen=_PAUSES)
        self._anew = False

    def begin_anew(self) -> None:
        """What follows goes into another file, which is to be read by itself.

        So all facts are told again, and of requests that began before the steps that lie there.
        """
        self._run = None
        self._anew = True
        self._window.begin_anew()

    def spans(self, recording: Recording, stalls: Iterable[Stall] = ()) -> Iterator[ResourceSpans]:
        """Facts and steps first: where a request can be read, so can its steps."""
        self._processes |= {process.key: process for process in recording.processes}
        self._models |= recording.models
        self._window.add(recording.steps)
        if self._for_file:
            yield from self._facts(self._told_again(recording) if self._anew else recording)
            for request in recording.requests:
                yield from self._steps(self._window.take_absent(request))
            self._anew = False
            self._pauses += recording.pauses
        told: dict[str, list[Stall]] = defaultdict(list)
        for stall in stalls:
            told[stall.request].append(stall)
        blamed = {by for late in told.values() for stall in late for by in stall.by}
        places = {r.id: (r.trace_id, r.span_id) for r in recording.requests if r.id in blamed}
        for process, stages in _by_process(recording.stages).items():
            yield ResourceSpans(self._resource(process), [stage_to_span(stage) for stage in stages])
        for process, requests in _by_process(recording.requests).items():
            made = ResourceSpans(self._resource(process), [])
            for request in requests:
                times, late = self._window.times(request), told.get(request.id, ())
                spans = request_to_spans(request, self._models, times, self._budget, late, places)
                made.spans += spans.spans
                made.tokens += spans.tokens
            yield made

    def _facts(self, recording: Recording) -> Iterator[ResourceSpans]:
        run, told = [], run_to_span(recording)
        if told != self._run:
            run.append(told)
            self._run = told
        run += [model_to_span(model, recording.begin_ns or 0) for model in recording.models.values()]
        run += [process_to_span(process) for process in recording.processes]
        run += pauses_to_spans(recording.pauses)
        run += [samples_to_span(samples) for samples in recording.samples if len(samples)]
        if run:
            yield ResourceSpans({}, run, file_only=True)
        yield from self._steps(recording.steps)

    def _steps(self, several: Iterable[Steps]) -> Iterator[ResourceSpans]:
        for steps in several:
            resource = self._resource(steps.process)
            for span in steps_to_spans(steps):
                yield ResourceSpans(resource, [span], file_only=True)

    def _told_again(self, recording: Recording) -> Recording:
        return replace(
            recording,
            processes=tuple(self._processes.values()),
            models=self._models,
            pauses=(*self._pauses, *recording.pauses),
        )

    def _resource(self, key: str) -> Attributes:
        process = self._processes.get(key)
        resource: Attributes = {A.PROCESS_KEY: key}
        if process is not None:
            resource[A.PROCESS_PID] = process.pid
            if process.executable:
                resource[A.PROCESS_EXECUTABLE] = process.executable
        resource[A.SERVICE_NAME] = service_name(process, self._processes.values())
        return resource


def service_name(process: Process | None, processes: Iterable[Process]) -> str:
    """What a process is called where several services meet: its script, or that of who started it.

    The processes that an engine starts for itself run no script; they are a part of the same service.
    """
    by_pid = {known.pid: known for known in processes}
    while process is not None:
        if process.script and process.script != _NO_SCRIPT:
            return process.script.removesuffix(".py")
        process = by_pid.pop(process.parent_pid, None)
    return "phasetrace"


def from_spans(groups: Iterable[ResourceSpans]) -> Recording:
    """One recording of all that phasetrace wrote; of facts that were repeated the latest word counts.

    A span that is not what its name promises is left out and becomes a defect.
    """
    return _Reading().recording(groups)


_LATEST_COUNTS = (SpanName.PROCESS, SpanName.MODEL, SpanName.RUN)


class _Reading:
    """Sorts spans by what they tell of."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.steps: list[tuple[Piece, Times]] = []
        self.shelf = Shelf()
        self.pauses: list[Pause] = []
        self.stages: list[Stage] = []
        self.samples: list[Samples] = []
        self.models: dict[str, ModelFacts] = {}
        self.processes: dict[str, Process] = {}
        self.run: Recording | None = None
        self.damaged: Counter[str] = Counter()
        self.seen: set[tuple[str, str, int, int]] = set()

    def recording(self, groups: Iterable[ResourceSpans]) -> Recording:
        for group in groups:
            for span in group.spans:
                try:
                    self._read(span, group.resource)
                except (ValueError, KeyError, TypeError, IndexError, OverflowError):
                    self.damaged[span.name] += 1
        whole = self.run or Recording()
        damage = [
            Defect(f"{n} damaged spans named {name!r} were left out") for name, n in self.damaged.items()
        ]
        return replace(
            whole,
            defects=(*whole.defects, *damage),
            requests=tuple(self.requests),
            steps=StepColumns(self.steps) if self.steps else (),
            pauses=tuple(sorted(self.pauses, key=lambda p: (p.begin_ns, p.process))),
            stages=tuple(sorted(self.stages, key=lambda s: (s.begin_ns, s.process, s.name))),
            samples=tuple(sorted(self.samples, key=lambda s: (int(s.times_ns[0]), s.process, s.device or 0))),
            models=self.models,
            processes=tuple(self.processes.values()),
        )

    def _read(self, span: Span, resource: Attributes) -> None:
        if span.name not in _LATEST_COUNTS:  # written or sent twice, or two copies of a file in one
            place = (span.trace_id, span.span_id, span.start_ns, span.end_ns)
            if place in self.seen:
                return
            self.seen.add(place)
        reader = _READERS.get(span.name)
        if reader is not None:
            reader(self, span, resource)
        elif span.get(A.ID) is not None:
            self.requests.append(request_from_span(span))

    def _steps(self, span: Span, resource: Attributes) -> None:
        piece, times = steps_from_span(span, str(resource[A.PROCESS_KEY]))
        self.steps.append((piece, times._replace(length_ns=self.shelf.put(times.length_ns))))

    def _pauses(self, span: Span, _: Attributes) -> None:
        self.pauses += pauses_from_span(span)

    def _stage(self, span: Span, _: Attributes) -> None:
        self.stages.append(stage_from_span(span))

    def _samples(self, span: Span, _: Attributes) -> None:
        self.samples.append(samples_from_span(span))

    def _process(self, span: Span, _: Attributes) -> None:
        process = process_from_span(span)
        self.processes[process.key] = process

    def _model(self, span: Span, _: Attributes) -> None:
        model = model_from_span(span)
        self.models[model.key] = model

    def _run(self, span: Span, _: Attributes) -> None:
        newer = run_from_span(span)
        if self.run is None:
            self.run = newer
            return
        begins = [t for t in (self.run.begin_ns, newer.begin_ns) if t is not None]
        ends = [t for t in (self.run.end_ns, newer.end_ns) if t is not None]
        defects = dict.fromkeys(chain(self.run.defects, newer.defects))
        self.run = replace(
            newer,
            begin_ns=min(begins, default=None),
            end_ns=max(ends, default=None),
            defects=tuple(defects),
        )


# Not bound to a reading: it would be in a cycle, and keep all that it read until cycles are collected
_READERS: dict[str, Callable[[_Reading, Span, Attributes], None]] = {
    SpanName.STEPS: _Reading._steps,
    SpanName.PAUSES: _Reading._pauses,
    SpanName.STAGE: _Reading._stage,
    SpanName.SAMPLES: _Reading._samples,
    SpanName.PROCESS: _Reading._process,
    SpanName.MODEL: _Reading._model,
    SpanName.RUN: _Reading._run,
}


def _by_process(them: Iterable[Of]) -> dict[str, list[Of]]:
    groups: dict[str, list[Of]] = {}
    for one in them:
        groups.setdefault(one.process, []).append(one)
    return groups
