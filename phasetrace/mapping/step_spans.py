"""Steps <-> spans of packed columns, both directions side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from phasetrace.mapping.columns import narrowed, unpack_together
from phasetrace.mapping.packed_table import pack_table, rows_of_table, unpack_column, unpack_table
from phasetrace.mapping.span import Attributes, Span, derived_id
from phasetrace.mapping.typed import LARGEST, counts, packed
from phasetrace.model import Ints, PackedParts, Part, Piece, Steps, Times, waits
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName

MOST = 1024  # steps in one span
# That are read from one: columns that do not vary say nothing of their length, and a small file from
# elsewhere must not fill memory
_MOST_READ = 16 * MOST
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
    """One stream's steps, at most MOST in a span.

    A step's wait is for the end of the one before. Mostly, steps lie end to end and their parts fill them: so
    of the last part what the steps have beyond all parts is kept, which is nothing.
    """
    trace = process_trace(steps.process)
    known = steps.known()
    for at in range(0, len(steps), MOST):
        rows = slice(at, at + MOST)
        first = steps.first_index + at
        begin, end = steps.begin_ns[rows], steps.end_ns[rows]
        kept: Attributes = {
            A.STEPS_STREAM: steps.stream,
            A.STEPS_FIRST: first,
            A.STEPS_SINCE: int(begin[0]),
            A.STEPS_COLUMNS: " ".join(known),
            A.STEPS_TABLE: pack_table(
                [waits(begin, end), end - begin, *(column[rows] for column in known.values())]
            ),
        }
        if steps.parts:
            *parts, last = (column[rows] for column in steps.parts.values())
            beyond = end - begin - sum(parts, last)
            kept[A.STEPS_PARTS] = " ".join(part.value for part in steps.parts)
            kept[A.STEPS_PART_TABLE] = pack_table([*parts, beyond])
        ident = derived_id(8, steps.process, "steps", steps.stream, first)
        yield Span(trace, ident, None, SpanName.STEPS, int(begin[0]), int(end[-1]), kept=kept)


def steps_from_span(span: Span, process: str) -> tuple[Piece, Times]:
    """The steps of one span; ValueError where it is none."""
    attributes = span.attributes | span.kept
    stream, first = _int(attributes, A.STEPS_STREAM), _int(attributes, A.STEPS_FIRST)
    counts([first])
    read = _from_tables if A.STEPS_TABLE in attributes else _from_columns
    times, parts, known = read(attributes)
    if len(times.length_ns) > _MOST_READ:
        raise ValueError("a span of steps holds more of them than any is written with")
    reach = times.begin_ns + sum(float(np.abs(column, dtype=np.float64).sum()) for column in times[1:])
    if not 0 <= times.begin_ns or reach >= LARGEST // 2:
        raise ValueError("a span of steps is at an impossible time")
    return Piece(process, stream, first, len(times.length_ns), parts, known), times


def process_trace(process: str) -> str:
    """The trace of what a file knows of a process beside its requests."""
    return derived_id(16, process, "facts")


_Read = tuple[Times, PackedParts, dict[str, Ints]]
_PARTS = {part.value: part for part in Part}


def _from_tables(attributes: Attributes) -> _Read:
    names = _names(attributes, A.STEPS_COLUMNS)
    wait, length, *columns = unpack_table(packed(attributes[A.STEPS_TABLE]), len(names) + 2)
    known = {name: column for name, column in zip(names, columns, strict=True) if name in _OPTIONAL}
    parts = _names(attributes, A.STEPS_PARTS)
    data = packed(attributes[A.STEPS_PART_TABLE]) if parts else b""
    if parts and rows_of_table(data, len(parts)) != len(length):
        raise ValueError("the parts of steps are not as many as the steps")
    return Times(_int(attributes, A.STEPS_SINCE), wait, length), _Packed(parts, data), known


@dataclass(frozen=True, slots=True)
class _Packed:
    """Parts as a file has them; of the last one what the steps have beyond all of them."""

    names: tuple[str, ...]
    data: bytes

    def unpacked(self, length_ns: Ints) -> dict[Part, Ints]:
        """The columns."""
        if not self.names:
            return {}
        *columns, beyond = unpack_table(self.data, len(self.names))
        columns.append(length_ns - sum(columns, beyond.astype(np.int64)))
        return {_PARTS[name]: c for name, c in zip(self.names, columns, strict=True) if name in _PARTS}

    def unpacked_one(self, part: Part, length_ns: Ints) -> Ints | None:
        """The column of one part, None where there is none."""
        if part.value in self.names[:-1]:
            return unpack_column(self.data, len(self.names), self.names.index(part.value))
        return self.unpacked(length_ns).get(part)


def _from_columns(attributes: Attributes) -> _Read:
    """Of files in which each column was an attribute."""
    parts = [key for key in attributes if key.startswith(A.STEPS_PART)]
    known = {name: key for name, key in _OPTIONAL.items() if key in attributes}
    keys = [A.STEPS_BEGIN, A.STEPS_DURATION, *parts, *known.values()]
    table = unpack_together([packed(attributes.get(key)) for key in keys])
    begin, length = table[:2]
    names = tuple(key.removeprefix(A.STEPS_PART) for key in parts)
    held = list(table[2 : 2 + len(parts)])
    if held:
        held[-1] = length - sum(held)
    packed_parts = _Packed(names, pack_table(held) if held and len(begin) else b"")
    columns = narrowed(table[2 + len(parts) :])
    wait, length = narrowed(np.array([waits(begin, begin + length), length]))
    times = Times(int(begin[0]) if len(begin) else 0, wait, length)
    return times, packed_parts, dict(zip(known, columns, strict=True))


def _names(attributes: Attributes, key: str) -> tuple[str, ...]:
    names = attributes.get(key, "")
    if not isinstance(names, str):
        raise ValueError(f"{key} is no list of names")
    return _split(names)


@lru_cache(64)
def _split(names: str) -> tuple[str, ...]:
    return tuple(names.split())


def _int(attributes: Attributes, key: str) -> int:
    value = attributes.get(key)
    if not isinstance(value, int):
        raise ValueError(f"a span of steps lacks {key}")
    return value
