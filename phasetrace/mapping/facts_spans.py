"""A run, its processes with their stages and pauses, its models <-> spans of a file, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import groupby
from typing import Any, cast

from phasetrace.mapping.columns import pack, unpack
from phasetrace.mapping.span import Attributes, Span, derived_id, prefixed, under
from phasetrace.mapping.step_spans import process_trace
from phasetrace.mapping.typed import checked, moments, packed, scalars, text_entries, texts
from phasetrace.model import Defect, ModelFacts, Pause, Process, Recording, Stage
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName

_MODEL_FIELDS = [field.name for field in fields(ModelFacts) if field.name != "key"]
_PROCESS_FIELDS = {
    "pid": A.PROCESS_PID,
    "parent_pid": A.PROCESS_PARENT_PID,
    "executable": A.PROCESS_EXECUTABLE,
    "script": A.PROCESS_SCRIPT,
    "python": A.PROCESS_PYTHON,
    "begin_ns": A.PROCESS_BEGIN,
    "end_ns": A.PROCESS_END,
    "hook_calls": A.HOOK_CALLS,
    "hook_ns": A.HOOK_TIME,
    "lost_records": A.LOST_RECORDS,
}
_PROCESS_MAPS = {"engines": A.PROCESS_ENGINE, "refused": A.PROCESS_REFUSED, "facts": A.PROCESS_FACT}


def process_to_span(process: Process) -> Span:
    """A process, under the trace of its own."""
    kept: Attributes = {A.PROCESS_KEY: process.key}
    for name, key in _PROCESS_FIELDS.items():
        if (value := getattr(process, name)) is not None:
            kept[key] = value
    for name, prefix in _PROCESS_MAPS.items():
        kept |= prefixed(prefix, getattr(process, name))
    if process.troubles:
        kept[A.TROUBLES] = list(process.troubles)
    if process.uncovered:
        kept[A.UNCOVERED] = list(process.uncovered)
    begin = process.begin_ns or process.end_ns or 0
    end = process.end_ns or begin
    ident = derived_id(8, process.key, "process", end, process.hook_calls)
    return Span(process_trace(process.key), ident, None, SpanName.PROCESS, begin, end, kept=kept)


def process_from_span(span: Span) -> Process:
    """The process that a span tells of."""
    attributes = span.attributes | span.kept
    known: dict[str, Any] = {n: attributes[key] for n, key in _PROCESS_FIELDS.items() if key in attributes}
    for name, prefix in _PROCESS_MAPS.items():
        entries = under(prefix, attributes)
        known[name] = scalars(entries) if name == "facts" else text_entries(entries)
    return checked(
        Process(
            key=str(attributes[A.PROCESS_KEY]),
            troubles=tuple(texts(attributes.get(A.TROUBLES, []))),
            uncovered=tuple(texts(attributes.get(A.UNCOVERED, []))),
            **{"pid": 0, "parent_pid": 0, **known},
        )
    )


def model_to_span(model: ModelFacts, at_ns: int) -> Span:
    """A model's shape."""
    known = {n: v for n in _MODEL_FIELDS if (v := getattr(model, n)) is not None}
    kept = {A.MODEL_KEY: model.key} | prefixed(A.MODEL_FACT, known)
    trace, ident = (
        derived_id(16, "model", model.key),
        derived_id(8, "model", model.key, sorted(known.items())),
    )
    return Span(trace, ident, None, SpanName.MODEL, at_ns, at_ns, kept=kept)


def model_from_span(span: Span) -> ModelFacts:
    """The model that a span tells of; facts that this version does not know are passed over."""
    attributes = span.attributes | span.kept
    known: dict[str, Any] = {n: v for n, v in under(A.MODEL_FACT, attributes).items() if n in _MODEL_FIELDS}
    return checked(ModelFacts(key=str(attributes[A.MODEL_KEY]), **known))


def pauses_to_spans(pauses: Iterable[Pause]) -> Iterator[Span]:
    """Pauses of one process and kind share a span."""
    for (process, kind, names), group in groupby(sorted(pauses, key=_sort), key=_sort):
        same = list(group)
        begins = [p.begin_ns for p in same]
        ends = [p.end_ns for p in same]
        kept: Attributes = {
            A.PROCESS_KEY: process,
            A.PAUSE_KIND: kind,
            A.PAUSE_BEGIN: pack(begins),
            A.PAUSE_DURATION: pack([e - b for b, e in zip(begins, ends, strict=True)]),
        }
        kept |= prefixed(A.PAUSE_DETAIL, {n: pack([p.detail[n] for p in same]) for n in names})
        ident = derived_id(8, process, "pauses", kind, names, begins[0])
        trace = process_trace(process)
        yield Span(trace, ident, None, SpanName.PAUSES, min(begins), max(ends), kept=kept)


def pauses_from_span(span: Span) -> Iterator[Pause]:
    """The pauses of one span."""
    attributes = span.attributes | span.kept
    begins = moments(unpack(packed(attributes[A.PAUSE_BEGIN])))
    ends = moments(begins + unpack(packed(attributes[A.PAUSE_DURATION])))
    detail = {n: unpack(packed(v)).tolist() for n, v in under(A.PAUSE_DETAIL, attributes).items()}
    process, kind = str(attributes[A.PROCESS_KEY]), str(attributes[A.PAUSE_KIND])
    details: dict[tuple[int, ...], dict[str, int]] = {}  # few differ
    rows = list(zip(*detail.values(), strict=True)) if detail else [()] * len(begins)
    for begin, end, row in zip(begins.tolist(), ends.tolist(), rows, strict=True):
        known = details.setdefault(row, dict(zip(detail, row, strict=True)))
        yield Pause(process, kind, begin, end, known)


def stage_to_span(stage: Stage) -> Span:
    """A stage of a process's start."""
    known: Attributes = {A.PROCESS_KEY: stage.process, A.STAGE_NAME: stage.name}
    ident = derived_id(8, stage.process, "stage", stage.name, stage.begin_ns)
    trace = process_trace(stage.process)
    return Span(trace, ident, None, SpanName.STAGE, stage.begin_ns, stage.end_ns, attributes=known)


def stage_from_span(span: Span) -> Stage:
    """The stage that a span tells of."""
    attributes = span.attributes | span.kept
    process, name = attributes[A.PROCESS_KEY], attributes[A.STAGE_NAME]
    return checked(Stage(str(process), str(name), span.start_ns, span.end_ns))


def run_to_span(recording: Recording) -> Span:
    """How far the recording reaches, and what is wrong with it."""
    kept: Attributes = {A.RUN_SOURCE: recording.source}
    if recording.begin_ns is not None:
        kept[A.RUN_BEGIN] = recording.begin_ns
    if recording.end_ns is not None:
        kept[A.RUN_END] = recording.end_ns
    if recording.defects:
        kept[A.DEFECTS] = [d.defect for d in recording.defects]
    begin, end = recording.begin_ns or 0, recording.end_ns or recording.begin_ns or 0
    trace, ident = derived_id(16, "run", begin), derived_id(8, "run", begin, end)
    return Span(trace, ident, None, SpanName.RUN, begin, end, kept=kept)


def run_from_span(span: Span) -> Recording:
    """An otherwise empty recording with what the span says of the run."""
    attributes = span.attributes | span.kept
    return checked(
        Recording(
            defects=tuple(Defect(d) for d in texts(attributes.get(A.DEFECTS, []))),
            begin_ns=cast(int | None, attributes.get(A.RUN_BEGIN)),
            end_ns=cast(int | None, attributes.get(A.RUN_END)),
            source=str(attributes.get(A.RUN_SOURCE, "phasetrace")),
        )
    )


def _sort(pause: Pause) -> tuple[str, str, tuple[str, ...]]:
    return pause.process, pause.kind, tuple(sorted(pause.detail))
