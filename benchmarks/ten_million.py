"""Writes a trace of many output tokens, by our own mapping, as `phasetrace run` would.

`python -m benchmarks.ten_million SHAPE TOKENS FILE`. In a process of its own, so that its memory is not
counted as that of what reads the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from phasetrace.emit.trace_file import TraceFile
from phasetrace.model import (
    Ints,
    Part,
    Pause,
    PrefixChunk,
    Process,
    Recording,
    Request,
    Sequence,
    StepCount,
    Steps,
)

CHUNK = 1024  # steps in one Steps, as the assembler makes them
PARTS = (Part.PREPARE, Part.FORWARD, Part.UPDATE, Part.LOGITS, Part.SAMPLING, Part.CRITERIA, Part.OTHER)
BEGIN = 1_700_000_000_000_000_000
PROCESS = Process("p", 1, 0, script="app.py")
PREFIX_CHUNKS = 8  # of 32 tokens each, the first four shared by all prompts


def calls(tokens: int, rows: int, each: int = 512) -> Iterator[Recording]:
    """Calls of `generate()` of so many rows, one after the other; a part of the recording has 64 of them."""
    begin, first = BEGIN, BEGIN
    requests: list[Request] = []
    steps: list[Steps] = []
    count = max(1, tokens // (rows * each))
    for number in range(1, count + 1):
        columns = list(stream(number, each, begin, rows))
        steps += columns
        requests.append(call(number, columns, each, rows))
        begin = int(columns[-1].end_ns[-1])
        if len(requests) == 64 or number == count:
            yield Recording(tuple(requests), tuple(steps), pauses(first, begin), processes=(PROCESS,))
            requests, steps, first = [], [], begin


def engine(tokens: int, rows: int = 64, each: int = 500) -> Iterator[Recording]:
    """Requests of 500 tokens that join and leave one engine's stream, 64 at a time."""
    columns = list(stream(1, tokens // rows, BEGIN, rows))
    ends = np.concatenate([part.end_ns for part in columns])
    begins = np.concatenate([part.begin_ns for part in columns])
    requests = []
    for number in range(tokens // each):
        first = number * each // rows
        last = min(first + each, len(ends)) - 1
        arrival = int(begins[first]) - 5_000_000
        times = (arrival, arrival + 1_000_000, int(begins[first]), int(ends[first]), int(ends[last]))
        requests.append(
            request(number + 1, times, (Sequence(256, 0, last - first + 1, "length"),), 1, first, last)
        )
    yield Recording(tuple(requests), tuple(columns), pauses(BEGIN, int(ends[-1])), processes=(PROCESS,))


def call(number: int, columns: list[Steps], each: int, rows: int) -> Request:
    """A call that takes all steps of its stream."""
    begin = int(columns[0].begin_ns[0])
    times = (begin, begin, begin, int(columns[0].end_ns[0]), int(columns[-1].end_ns[-1]))
    sequences = tuple(Sequence(256, 0, each, "length") for _ in range(rows))
    return request(number, times, sequences, number, 0, each - 1)


def request(
    number: int,
    times: tuple[int, int, int, int, int],
    sequences: tuple[Sequence, ...],
    stream: int,
    first: int,
    last: int,
) -> Request:
    """A request with what a real one has."""
    arrival, received, scheduled, first_token, last_token = times
    chunks = tuple(PrefixChunk(k if k < 4 else number * PREFIX_CHUNKS + k, 32) for k in range(PREFIX_CHUNKS))
    return Request(
        id=f"p-{number}",
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        parent_span_id=None,
        process="p",
        engine="transformers",
        operation="text_completion",
        model="tiny",
        arrival_ns=arrival,
        received_ns=received,
        scheduled_ns=scheduled,
        first_token_ns=first_token,
        last_token_ns=last_token,
        finished_ns=last_token + 1000,
        finish_reason="length",
        sequences=sequences,
        mode="greedy",
        settings={"max_new_tokens": last - first + 1, "do_sample": False},
        stream=stream,
        first_step=first,
        last_step=last,
        prefill_chunks=(StepCount(first, 256 * len(sequences)),),
        prefixes=(chunks,) * len(sequences),
    )


def stream(number: int, length: int, begin: int, rows: int) -> Iterator[Steps]:
    """Steps of 10 to 12 ms, with noise as real ones have, in chunks."""
    random = np.random.default_rng(number)
    for first in range(0, length, CHUNK):
        count = min(CHUNK, length - first)
        parts = random.integers(100_000, 200_000, (count, len(PARTS)))
        parts[:, 1] += 9_000_000
        lengths = parts.sum(axis=1)
        ends: Ints = begin + np.cumsum(lengths)
        yield Steps(
            process="p",
            stream=number,
            first_index=first,
            begin_ns=ends - lengths,
            end_ns=ends,
            parts={part: np.ascontiguousarray(parts[:, place]) for place, part in enumerate(PARTS)},
            running=np.full(count, rows),
            new_tokens=np.full(count, rows),
            computed_tokens=np.full(count, rows),
        )
        begin = int(ends[-1])


def pauses(begin: int, end: int) -> tuple[Pause, ...]:
    """A collection every second."""
    return tuple(
        Pause("p", "gc", at, at + 20_000_000, {"generation": 2}) for at in range(begin, end, 1_000_000_000)
    )


SHAPES = {
    "calls": lambda tokens: calls(tokens, 64),
    "single": lambda tokens: calls(tokens, 1),
    "engine": engine,
}


def main() -> None:
    """Write one."""
    shape, tokens, path = sys.argv[1:]
    with TraceFile(path) as file:
        for part in SHAPES[shape](int(tokens)):
            file.write(part)


if __name__ == "__main__":
    main()
