"""What the parts of a recording add up to, as metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics.export import MetricReader

from phasetrace.analyze import metrics
from phasetrace.analyze.attribution import phases
from phasetrace.emit.instruments import Instruments, Labels, Observe
from phasetrace.mapping.recording_spans import service_name
from phasetrace.mapping.request_attributes import model_name
from phasetrace.model import (
    ModelFacts,
    Process,
    Recording,
    Request,
    RequestStatus,
    Samples,
    Steps,
    Usage,
    Wait,
)
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Metric

KV_BLOCKS_TOTAL = "num_gpu_blocks"  # a fact of an engine core's process
_NS = 1e9
_STILL_S = 5.0  # an engine whose last step is older than this runs nothing: a gauge must not say otherwise
_REASONS = tuple(Wait)


_USED = {Usage.CPU: Metric.CPU, Usage.CPU_DELAY: Metric.CPU_DELAY}


@dataclass(slots=True)
class _Engine:
    """What the gauges of one process show."""

    process: str
    labels: Labels
    end_ns: int = 0
    running: int = 0
    waiting: int | None = None
    kv_blocks: int | None = None


Look = Callable[[_Engine, bool], float | None]  # an engine, whether it stands still


class Meters:
    """Counts what a recording holds; whoever reads it decides where the numbers go."""

    def __init__(self, reader: MetricReader) -> None:
        self._reader = reader
        self._instruments: Instruments | None = None
        self._models: dict[str, ModelFacts] = {}
        self._processes: dict[str, Process] = {}
        self._engines: dict[str, _Engine] = {}
        self._used: dict[tuple[str, Usage], int] = {}
        self._memory: dict[str, int] = {}

    def record(self, recording: Recording) -> None:
        """Count one part of a recording. The first one tells who runs."""
        self._models |= recording.models
        self._processes |= {process.key: process for process in recording.processes}
        if self._instruments is None:
            looks = {Metric.RUNNING: _running, Metric.WAITING: _waiting, Metric.KV_USAGE: self._kv_usage}
            gauges = {metric: self._gauge(look) for metric, look in looks.items()}
            gauges[Metric.MEMORY] = self._memory_used
            processes = self._processes.values()
            service = service_name(next(iter(processes), None), processes)
            self._instruments = Instruments(self._reader, service, gauges)
        add = self._instruments.add
        for request in recording.requests:
            for metric, value, labels in self._of_request(request):
                add(metric, value, labels)
        for steps in recording.steps:
            if len(steps):
                for metric, value, labels in self._of_steps(steps):
                    add(metric, value, labels)
        for samples in recording.samples:
            for metric, value, labels in self._of_samples(samples):
                add(metric, value, labels)
        for pause in recording.pauses:
            add(Metric.PAUSED, (pause.end_ns - pause.begin_ns) / _NS, {A.PAUSE_KIND.value: pause.kind})

    def close(self) -> None:
        """Let go of the reader."""
        if self._instruments is not None:
            self._instruments.close()

    def _of_request(self, request: Request) -> Iterator[tuple[Metric, float, Labels]]:
        """What a request adds; one that was only cut off has no duration."""
        if request.finished_ns is None or request.status is RequestStatus.CUT_OFF:
            return
        labels = {A.OPERATION.value: request.operation, A.PROVIDER.value: request.engine}
        model = model_name(request, self._models)
        if model is not None:
            labels[A.REQUEST_MODEL.value] = model
        yield from _latencies(request, labels)
        counts = {
            "prompt": request.prompt_tokens,
            "cached": request.cached_tokens,
            "output": request.output_tokens,
        }
        for kind, tokens in counts.items():
            if tokens:
                yield Metric.TOKENS, tokens, labels | {A.TOKEN_KIND.value: kind}
        if request.preemptions:
            yield Metric.PREEMPTIONS, len(request.preemptions), labels
        if request.status is RequestStatus.OK:
            for phase in phases(request):
                if phase.ns:
                    yield Metric.PHASE_DURATION, phase.ns / _NS, labels | {A.PHASE.value: phase.phase.value}

    def _of_steps(self, steps: Steps) -> Iterator[tuple[Metric, float, Labels]]:
        """What steps add; the last of them is what the gauges show."""
        engine = self._engines.get(steps.process)
        if engine is None:
            labels = {A.PROCESS_KEY.value: steps.process}
            engine = self._engines[steps.process] = _Engine(steps.process, labels)
        lengths = (steps.end_ns - steps.begin_ns) / _NS
        for seconds in lengths.tolist():
            yield Metric.STEP_DURATION, seconds, engine.labels
        if steps.waits is not None:
            known = steps.waits >= 0
            blocked = np.bincount(steps.waits[known], weights=lengths[known], minlength=len(_REASONS))
            for reason, seconds in zip(_REASONS, blocked.tolist(), strict=True):
                if seconds and reason is not Wait.NONE:
                    yield Metric.QUEUE_BLOCKED, seconds, engine.labels | {A.WAIT_REASON.value: reason.value}
        if int(steps.end_ns[-1]) >= engine.end_ns:
            engine.end_ns = int(steps.end_ns[-1])
            engine.running = int(steps.running[-1]) if steps.running is not None else 0
            engine.waiting = int(steps.waiting[-1]) if steps.waiting is not None else None
            engine.kv_blocks = int(steps.kv_blocks[-1]) if steps.kv_blocks is not None else None

    def _of_samples(self, samples: Samples) -> Iterator[tuple[Metric, float, Labels]]:
        """What a process used since it was last looked at."""
        labels = {A.PROCESS_KEY.value: samples.process}
        for usage, metric in _USED.items():
            column = samples.columns.get(usage)
            if column is None or samples.device is not None or column[-1] < 0:
                continue
            last = int(column[-1])
            before = self._used.get((samples.process, usage), 0)
            self._used[samples.process, usage] = max(last, before)
            yield metric, max(0, last - before) / _NS, labels
        memory = samples.columns.get(Usage.MEMORY)
        if memory is not None and samples.device is None:
            self._memory[samples.process] = int(memory[-1])

    def _memory_used(self, _: CallbackOptions) -> Iterator[Observation]:
        for process, used in list(self._memory.items()):
            yield Observation(used, {A.PROCESS_KEY.value: process})

    def _gauge(self, look: Look) -> Observe:
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            now = time.time_ns()
            for engine in list(self._engines.values()):
                value = look(engine, (now - engine.end_ns) / _NS > _STILL_S)
                if value is not None:
                    yield Observation(value, engine.labels)

        return observe

    def _kv_usage(self, engine: _Engine, _: bool) -> float | None:
        process = self._processes.get(engine.process)
        total = process.facts.get(KV_BLOCKS_TOTAL) if process is not None else None
        if engine.kv_blocks is None or not isinstance(total, int) or total <= 0:
            return None
        return engine.kv_blocks / total


def _running(engine: _Engine, still: bool) -> int:
    return 0 if still else engine.running


def _waiting(engine: _Engine, still: bool) -> int | None:
    return 0 if still and engine.waiting is not None else engine.waiting


def _latencies(request: Request, labels: Labels) -> Iterator[tuple[Metric, float, Labels]]:
    assert request.finished_ns is not None
    failed = request.status is RequestStatus.FAILED
    error = {A.ERROR_TYPE.value: request.error_type or "_OTHER"} if failed else {}
    duration = request.finished_ns - request.arrival_ns
    yield Metric.DURATION, duration / _NS, labels | error
    if (ttft := metrics.ttft_ns(request)) is not None:
        yield Metric.TTFT, ttft / _NS, labels
    if (tpot := metrics.tpot_ns(request)) is not None:
        yield Metric.TPOT, tpot / _NS, labels
