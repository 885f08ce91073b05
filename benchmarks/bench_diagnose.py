"""How long `breakdown` and `diagnose` take on a recording of 10 million output tokens, and how much memory.

Two shapes: calls of `generate()` with 64 rows each (a stream a call), and 20,000 requests that share one
engine's stream. The budget (10 s, 500 MB) includes reading the file, so these must stay well below it.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import numpy as np

from phasetrace.advise import diagnose
from phasetrace.analyze import breakdown
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

TOKENS = 10_000_000
ROWS = 64
CHUNK = 1024  # steps in one Steps, as the assembler makes them
PARTS = (Part.PREPARE, Part.FORWARD, Part.UPDATE, Part.LOGITS, Part.SAMPLING, Part.CRITERIA, Part.OTHER)
BEGIN = 1_700_000_000_000_000_000
SECONDS, MEGABYTES = 10.0, 500.0


def main() -> None:
    """Print a line a shape. Times are of the CPU: all of it is computing, and machines are shared."""
    for name, make in (("generate() calls", calls), ("one engine's stream", engine)):
        recording = make()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.process_time()
        analyzed = breakdown(recording)
        middle = time.process_time()
        cause = diagnose(analyzed).cause
        end = time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        steps = sum(len(part) for part in recording.steps)
        print(
            f"{name}: {len(recording.requests):,} requests, {steps:,} steps:"
            f" breakdown {middle - start:.2f} s, diagnose {end - middle:.2f} s"
            f" ({(end - start) / SECONDS:.2f} of the time budget), peak {peak:,.0f} MB,"
            f" {before:,.0f} of it the recording ({peak / MEGABYTES:.2f} of the memory budget): {cause}"
        )


def calls() -> Recording:
    """Calls with 64 rows and 512 tokens a row, one after the other."""
    each = 512
    requests, steps, begin = [], [], BEGIN
    for number in range(1, TOKENS // (ROWS * each) + 1):
        columns = list(stream(number, each, begin))
        steps += columns
        requests.append(request(f"r{number}", number, 0, columns, each, ROWS))
        begin = int(columns[-1].end_ns[-1])
    return Recording(tuple(requests), tuple(steps), pauses(BEGIN, begin), processes=(Process("p", 1, 0),))


def engine() -> Recording:
    """Requests of 500 tokens that join and leave one engine, 64 at a time."""
    each = 500
    columns = list(stream(1, TOKENS // ROWS, BEGIN))
    ends = np.concatenate([part.end_ns for part in columns])
    begins = np.concatenate([part.begin_ns for part in columns])
    requests = []
    for number in range(TOKENS // each):
        first = number * each // ROWS
        last = min(first + each, len(ends)) - 1
        requests.append(
            Request(
                **identity(f"r{number}"),
                arrival_ns=int(begins[first]) - 5_000_000,
                received_ns=int(begins[first]) - 4_000_000,
                scheduled_ns=int(begins[first]),
                first_token_ns=int(ends[first]),
                last_token_ns=int(ends[last]),
                finished_ns=int(ends[last]) + 1_000_000,
                sequences=(Sequence(256, 0, last - first + 1, "length"),),
                stream=1,
                first_step=first,
                last_step=last,
                prefixes=prefixes(number),
            )
        )
    return Recording(
        tuple(requests), tuple(columns), pauses(BEGIN, int(ends[-1])), processes=(Process("p", 1, 0),)
    )


def stream(number: int, length: int, begin: int) -> Iterator[Steps]:
    """Steps of 10 to 12 ms, in chunks."""
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
            running=np.full(count, ROWS),
            new_tokens=np.full(count, ROWS),
            computed_tokens=np.full(count, ROWS),
        )
        begin = int(ends[-1])


def request(name: str, number: int, first: int, columns: list[Steps], each: int, rows: int) -> Request:
    """A call that takes all steps of its stream."""
    return Request(
        **identity(name),
        arrival_ns=int(columns[0].begin_ns[0]),
        received_ns=int(columns[0].begin_ns[0]),
        scheduled_ns=int(columns[0].begin_ns[0]),
        first_token_ns=int(columns[0].end_ns[0]),
        last_token_ns=int(columns[-1].end_ns[-1]),
        finished_ns=int(columns[-1].end_ns[-1]),
        sequences=tuple(Sequence(256, 0, each, "length") for _ in range(rows)),
        stream=number,
        first_step=first,
        last_step=each - 1,
        prefill_chunks=(StepCount(0, 256 * rows),),
        prefixes=prefixes(number) * rows,
    )


def identity(name: str) -> dict[str, str]:
    """What every request has."""
    ids = {"id": name, "trace_id": "0" * 32, "span_id": "0" * 16, "process": "p"}
    return {**ids, "engine": "transformers", "operation": "chat", "parent_span_id": None, "model": None}  # type: ignore[dict-item]


def prefixes(number: int) -> tuple[tuple[PrefixChunk, ...], ...]:
    """Eight chunks of 32 tokens, the first four shared by all."""
    return (tuple(PrefixChunk(k if k < 4 else number * 8 + k, 32) for k in range(8)),)


def pauses(begin: int, end: int) -> tuple[Pause, ...]:
    """A collection every second."""
    return tuple(
        Pause("p", "gc", at, at + 20_000_000, {"generation": 2}) for at in range(begin, end, 1_000_000_000)
    )


if __name__ == "__main__":
    main()
