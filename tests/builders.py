"""Builders of recordings and spools that name only what a test is about; the rest is plain and constant."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from phasetrace.model import (
    ModelFacts,
    Part,
    Process,
    Recording,
    Request,
    StepCount,
    Steps,
)
from phasetrace.model import Sequence as Row
from phasetrace_agent import layout

EPOCH = 1_700_000_000_000_000_000  # the wall clock at monotonic 0 of the fake clock
MS = 1_000_000
PROCESS = "00000000000000a1"
MODEL = ModelFacts(key="m", name="tiny", layers=2, device="cpu")


class Clock:
    """A monotonic clock that moves only when told to."""

    def __init__(self, now: int = 1_000 * MS) -> None:
        self.now = now

    def tick(self, ns: int = MS) -> int:
        self.now += ns
        return self.now

    def __call__(self) -> int:
        return self.now


class Ids:
    """Ids that count: the first span is 1, the second 2."""

    def __init__(self) -> None:
        self._next = count(1)

    def trace(self) -> str:
        return f"{next(self._next):032x}"

    def span(self) -> str:
        return f"{next(self._next):016x}"


def process(key: str = PROCESS, **fields: Any) -> Process:
    """A process with a name and nothing to complain about."""
    return Process(key=key, pid=1, parent_pid=0, **{"executable": "python", "script": "app.py", **fields})


def steps(
    n: int = 0,
    *,
    begin: int = EPOCH,
    ms: float | Sequence[float] = 10.0,
    parts: Mapping[Part, float] | None = None,
    rows: int = 1,
    stream: int = 1,
    first_index: int = 0,
    process: str = PROCESS,
    prefill: int | None = None,
    computed: Sequence[int] | None = None,
) -> Steps:
    """`n` steps laid end to end from `begin`, `ms` long each (or one length a step).

    `parts` are shares of each step (default: all of it `forward`); the first part takes what rounding leaves.
    `prefill` is the number of positions the first step computes, `computed` the number for every step.
    """
    lengths = [int(x * MS) for x in ([ms] * n if isinstance(ms, (int, float)) else ms)]
    durations = np.array(lengths, np.int64)
    ends = begin + np.cumsum(durations)
    shares = dict(parts or {Part.FORWARD: 1.0})
    columns = {part: (durations * share).astype(np.int64) for part, share in shares.items()}
    first = next(iter(columns))
    columns[first] = columns[first] + durations - sum(columns.values())
    size = len(durations)
    positions = np.full(size, rows, np.int64) if computed is None else np.array(computed, np.int64)
    if prefill is not None and size:
        positions[0] = prefill
    return Steps(
        process=process,
        stream=stream,
        first_index=first_index,
        begin_ns=ends - durations,
        end_ns=ends,
        parts=columns,
        running=np.full(size, rows, np.int64),
        new_tokens=np.full(size, rows, np.int64),
        computed_tokens=positions,
    )


def request(
    name: str = "r1",
    *,
    steps: Steps | None = None,
    prompt: int = 16,
    output: int | None = None,
    rows: int = 1,
    padding: int = 0,
    begin: int = EPOCH,
    frontend_ms: float = 0.0,
    queue_ms: float = 0.0,
    delivery_ms: float = 0.0,
    **fields: Any,
) -> Request:
    """One request; with `steps`, the marks follow from them (a token a step), else from the numbers given."""
    number = int.from_bytes(name.encode(), "big") % (1 << 62) + 1
    length = output if output is not None else len(steps) if steps is not None else 1
    base: dict[str, Any] = {
        "id": name,
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "parent_span_id": None,
        "process": PROCESS,
        "engine": "transformers",
        "operation": "text_completion",
        "model": MODEL.key,
        "sequences": tuple(
            Row(prompt_tokens=prompt, padding_tokens=padding, output_tokens=length, finish_reason="length")
            for _ in range(rows)
        ),
        "finish_reason": "length",
        "mode": "greedy",
    }
    if steps is not None and len(steps):
        received = int(steps.begin_ns[0]) - int(queue_ms * MS)
        base |= {
            "arrival_ns": received - int(frontend_ms * MS),
            "received_ns": received,
            "scheduled_ns": int(steps.begin_ns[0]),
            "first_token_ns": int(steps.end_ns[0]),
            "last_token_ns": int(steps.end_ns[-1]),
            "finished_ns": int(steps.end_ns[-1]) + int(delivery_ms * MS),
            "process": steps.process,
            "stream": steps.stream,
            "first_step": steps.first_index,
            "last_step": steps.first_index + len(steps) - 1,
            "prefill_chunks": (StepCount(steps.first_index, (prompt + padding) * rows),),
        }
    else:
        base |= {"arrival_ns": begin, "received_ns": begin, "finished_ns": begin + 10 * MS}
    return Request(**{**base, **fields})


def recording(*requests: Request, steps: Iterable[Steps] = (), **fields: Any) -> Recording:
    """A recording of one process and one model."""
    base: dict[str, Any] = {"models": {MODEL.key: MODEL}, "processes": (process(),)}
    return Recording(requests=requests, steps=tuple(steps), **{**base, **fields})


def generation(tokens: int = 8, name: str = "r1", stream: int = 1, **fields: Any) -> Recording:
    """One `generate()` call with its steps."""
    shared = {key: fields.pop(key) for key in ("begin", "ms", "parts", "rows", "process") if key in fields}
    prompt = fields.get("prompt", 16)
    rows = shared.get("rows", 1)
    taken = steps(tokens, stream=stream, prefill=prompt * rows, **shared)
    return recording(request(name, steps=taken, rows=rows, **fields), steps=[taken])


def plain(recorded: Recording) -> dict[str, Any]:
    """A recording as plain values, so that two can be compared: arrays do not compare to one truth."""
    columns = {name: [vars_of(piece) for piece in getattr(recorded, name)] for name in ("steps", "samples")}
    return {**vars_of(recorded), **columns}


def vars_of(noun: Any) -> dict[str, Any]:
    """The fields of a noun, arrays as lists."""
    values = {f.name: getattr(noun, f.name) for f in dataclasses.fields(noun)}
    for name in ("parts", "columns"):
        if name in values:
            values[name] = {which.value: column.tolist() for which, column in values[name].items()}
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def frame(kind: int, payload: bytes) -> bytes:
    """A committed record as the agent lays it out."""
    padded = payload + bytes(-len(payload) % 8)
    length = layout.FRAME_BYTES + len(padded)
    return layout.RECORD_HEAD.pack(length, kind) + padded + layout.RECORD_TAIL.pack(0, length ^ layout.ECHO)


def segment(
    path: Path, *records: tuple[int, bytes], key: int = int(PROCESS, 16), pid: int = 1, number: int = 0
) -> Path:
    """A segment file that holds `records`, of a process that started at monotonic 0."""
    header = layout.SEGMENT_HEADER.pack(
        layout.MAGIC, layout.VERSION, layout.HEADER_BYTES, pid, 0, number, 0, key, 0, EPOCH
    )
    body = b"".join(frame(kind, payload) for kind, payload in records)
    data = header.ljust(layout.HEADER_BYTES, b"\0") + body
    path.write_bytes(data.ljust(layout.SEGMENT_BYTES, b"\0"))
    return path
