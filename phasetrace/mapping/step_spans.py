"""Steps <-> spans of packed columns, both directions side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from phasetrace.mapping.columns import narrowed, pack, unpack_together
from phasetrace.mapping.span import Attributes, Span, derived_id
from phasetrace.mapping.typed import LARGEST, counts, packed
from phasetrace.model import Ints, Part, Steps, constant, joined, side_by_side
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName

MOST = 1024  # steps in one span
_OPTIONAL = {  # columns that may be unknown
    "device_ns": A.STEPS_DEVICE,
    "running": A.STEPS_RUNNING,
    "new_tokens": A.STEPS_NEW,
    "computed_tokens": A.STEPS_COMPUTED,
    "waiting": A.STEPS_WAITING,
    "kv_blocks": A.STEPS_KV_BLOCKS,
    "waits": A.STEPS_WAITS,
    "proposed": A.STEPS_PROPOSED,
    "accepted": A.STEPS_ACCEPTED,
    "discarded": A.STEPS_DISCARDED,
    "preempted": A.STEPS_PREEMPTED,
    "adapters": A.STEPS_ADAPTERS,
}


def steps_to_spans(steps: Steps) -> Iterator[Span]:
    """One stream's steps, at most MOST in a span."""
    trace = process_trace(steps.process)
    for at in range(0, len(steps), MOST):
        rows = slice(at, at + MOST)
        first = steps.first_index + at
        begin, end = steps.begin_ns[rows], steps.end_ns[rows]
        kept: Attributes = {
            A.STEPS_STREAM: steps.stream,
            A.STEPS_FIRST: first,
            A.STEPS_BEGIN: pack(begin),
            A.STEPS_DURATION: pack(end - begin),
        }
        for name, column in steps.known().items():
            kept[_OPTIONAL[name]] = pack(column[rows])
        for part, column in steps.parts.items():
            kept[A.STEPS_PART + part.value] = pack(column[rows])
        ident = derived_id(8, steps.process, "steps", steps.stream, first)
        yield Span(trace, ident, None, SpanName.STEPS, int(begin[0]), int(end[-1]), kept=kept)


def steps_from_span(span: Span, process: str) -> Steps:
    """The steps of one span; ValueError where it is none."""
    attributes = span.attributes | span.kept
    parts = {name: key for name, key in _part_keys(attributes) if name in _PARTS}
    optional = {name: key for name, key in _OPTIONAL.items() if key in attributes}
    keys = [A.STEPS_BEGIN, A.STEPS_DURATION, *parts.values(), *optional.values()]
    table = unpack_together([packed(attributes.get(key)) for key in keys])
    begin, end = table[0].copy(), table[0] + table[1]
    columns = [*narrowed(table[2 : 2 + len(parts)]), *narrowed(table[2 + len(parts) :])]
    steps = Steps(
        process=process,
        stream=_int(attributes, A.STEPS_STREAM),
        first_index=_int(attributes, A.STEPS_FIRST),
        begin_ns=begin,
        end_ns=end,
        parts={Part(name): column for name, column in zip(parts, columns, strict=False)},
        **dict(zip(optional, columns[len(parts) :], strict=True)),
    )
    counts([steps.first_index])
    if len(begin) and not (0 <= begin.min() and abs(steps.end_ns).max() < LARGEST // 2):
        raise ValueError("a span of steps is at an impossible time")
    return steps


def join(pieces: Iterable[Steps]) -> list[Steps]:
    """Put pieces of the same stream together again where one goes on where the other ends."""
    runs: dict[tuple[str, int, int], list[Steps]] = {}  # process, stream, next index
    order: list[list[Steps]] = []
    for piece in sorted(pieces, key=lambda s: (s.process, s.stream, s.first_index)):
        run = runs.pop((piece.process, piece.stream, piece.first_index), None)
        if run is None or not _alike(run[-1], piece):
            run = []
            order.append(run)
        run.append(piece)
        runs[piece.process, piece.stream, piece.first_index + len(piece)] = run
    return _side_by_side([_joined(run) for run in order])


def process_trace(process: str) -> str:
    """The trace of what a file knows of a process beside its requests."""
    return derived_id(16, process, "facts")


_PARTS = {part.value for part in Part}


def _alike(a: Steps, b: Steps) -> bool:
    """Whether the same is known of both; but for device time, which may be unknown for some."""
    return a.known().keys() - {"device_ns"} == b.known().keys() - {"device_ns"}


def _joined(run: list[Steps]) -> Steps:
    if len(run) == 1:
        return run[0]
    parts = sorted({part for steps in run for part in steps.parts}, key=list(Part).index)
    return Steps(
        process=run[0].process,
        stream=run[0].stream,
        first_index=run[0].first_index,
        begin_ns=joined([s.begin_ns for s in run]),
        end_ns=joined([s.end_ns for s in run]),
        parts={p: joined([s.parts.get(p, constant(0, len(s))) for s in run]) for p in parts},
        **{name: _of_all(name, run) for name in {name for steps in run for name in steps.known()}},
    )


def _of_all(name: str, run: list[Steps]) -> Ints:
    return joined([steps.known().get(name, constant(-1, len(steps))) for steps in run])


def _side_by_side(runs: list[Steps]) -> list[Steps]:
    """The same, their times in one piece of memory: whoever lays all steps end to end need not copy them."""
    begins, ends = side_by_side([r.begin_ns for r in runs]), side_by_side([r.end_ns for r in runs])
    return [replace(r, begin_ns=b, end_ns=e) for r, b, e in zip(runs, begins, ends, strict=True)]


def _part_keys(attributes: Attributes) -> Iterator[tuple[str, str]]:
    return ((key.removeprefix(A.STEPS_PART), key) for key in attributes if key.startswith(A.STEPS_PART))


def _int(attributes: Attributes, key: str) -> int:
    value = attributes.get(key)
    if not isinstance(value, int):
        raise ValueError(f"a span of steps lacks {key}")
    return value
