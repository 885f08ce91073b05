"""Writing and reading traces: token spans encoded a second, spans read a second, bytes a token, memory.

Rates are of this process's CPU time, and those of peers are taken in the same run, so that the ratios hold on
a busy machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import orjson

from benchmarks.figure import Figure, figure
from phasetrace.emit.otlp_json import to_lines
from phasetrace.emit.trace_file import TraceFile
from phasetrace.mapping import SpanMaker, to_spans
from phasetrace.model import Part, Process, Recording, Request, Sequence, StepCount, Steps
from phasetrace.read import read

BEGIN = 1_700_000_000_000_000_000
ENCODED_BUDGET, READ_BUDGET = 500_000, 120_000  # spans a second
DOCUMENT_BUDGET = 4.0  # times the size of a file that is one document
PARTS = (Part.PREPARE, Part.FORWARD, Part.UPDATE, Part.LOGITS, Part.SAMPLING, Part.CRITERIA, Part.OTHER)


# Of the process itself: what getrusage says survives exec, and so begins with this one's.
PEAK = """
import sys
from phasetrace.read import read

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

before = peak()
recording = read(sys.argv[1])
print(peak() - before)
"""


def measure(quick: bool = False) -> Iterator[Figure]:
    """Figures of writing, of reading, and of the memory that takes."""
    scale, runs = (20, 2) if quick else (200, 7)
    yield from encoding(scale, runs)
    with tempfile.TemporaryDirectory() as folder:
        yield from reading(Path(folder), 2 * scale, runs)
        yield from memory(Path(folder), scale)


def calls(number: int, tokens: int) -> Recording:
    """That many calls of `generate()` of that many tokens, with noise as real ones have."""
    rng = np.random.default_rng(number)
    requests, steps, begin = [], [], BEGIN
    for ident in range(1, number + 1):
        durations = rng.normal(12e6, 2e5, tokens).astype(np.int64)
        ends = begin + np.cumsum(durations)
        shares = rng.dirichlet([1, 20, 1, 1, 1, 1, 1], tokens)
        parts = {p: (durations * shares[:, i]).astype(np.int64) for i, p in enumerate(PARTS)}
        parts[Part.OTHER] += durations - sum(parts.values())
        ones = np.ones(tokens, np.int64)
        steps.append(Steps("p", ident, 0, ends - durations, ends, parts, None, ones, ones, ones))
        requests.append(request(ident, begin, ends))
        begin = int(ends[-1])
    return Recording(tuple(requests), tuple(steps), processes=(Process("p", 1, 0, script="app.py"),))


def request(ident: int, begin: int, ends: np.ndarray) -> Request:
    """A call whose steps end at `ends`."""
    return Request(
        id=f"p-{ident}",
        trace_id=f"{ident:032x}",
        span_id=f"{ident:016x}",
        parent_span_id=None,
        process="p",
        engine="transformers",
        operation="text_completion",
        model="tiny",
        arrival_ns=begin,
        received_ns=begin,
        scheduled_ns=begin,
        first_token_ns=int(ends[0]),
        last_token_ns=int(ends[-1]),
        finished_ns=int(ends[-1]) + 1000,
        sequences=(Sequence(100, 0, len(ends), "length"),),
        mode="greedy",
        settings={"max_new_tokens": len(ends)},
        stream=ident,
        first_step=0,
        last_step=len(ends) - 1,
        prefill_chunks=(StepCount(0, 100),),
    )


def encoding(number: int, runs: int) -> Iterator[Figure]:
    """Token spans to OTLP JSON, beside the official encoder for the same kind of spans."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    from phasetrace.emit.sdk_spans import to_sdk_spans

    recorded = calls(number, 500)
    groups = list(SpanMaker(for_file=False).spans(recorded))
    for group in groups:
        group.spans.clear()
    tokens = sum(map(len, groups))
    ours = rates(runs, tokens, lambda: sum(len(line) for line in to_lines(groups)))
    few = list(SpanMaker(for_file=False).spans(calls(4, 500)))
    count = sum(map(len, few))
    official = rates(
        runs, count, lambda: encode_spans([s for g in few for s in to_sdk_spans(g)]).SerializeToString()
    )
    whole = rates(runs, tokens, lambda: sum(len(line) for line in to_lines(to_spans(recorded))))
    yield figure("token spans encoded", ours, "/s", ENCODED_BUDGET, at_least=True)
    yield figure("the same by the official exporter's encoder", official, "/s")
    ratios = [a / b for a, b in zip(ours, official, strict=True)]
    yield figure("ours / official", ratios, "times")
    yield figure("tokens written with all that a file holds", whole, "/s")


def reading(folder: Path, number: int, runs: int) -> Iterator[Figure]:
    """The same trace, read as ours and as anyone's."""
    recorded = calls(number, 500)
    path = written(folder / "ours.json", recorded)
    size, tokens = path.stat().st_size, number * 500
    lines = path.read_bytes().splitlines()
    spans = sum(text.count(b'"spanId"') for text in lines)
    kept = sum(len(text) for text in lines if b"bytesValue" in text[:4096])
    print(f"  the file: {size / tokens:.1f} bytes a token, {kept / tokens:.2f} of them not for show")
    ours = rates(runs, spans, lambda: read(path))
    yield figure("our own trace into a Recording, spans", ours, "/s", READ_BUDGET, at_least=True)

    foreign = written(folder / "foreign.json", recorded)
    foreign.write_bytes(foreign.read_bytes().replace(b'"name":"phasetrace', b'"name":"whatever'))
    theirs = rates(runs, spans, lambda: read(foreign))
    yield figure("the same as a foreign trace, spans", theirs, "/s", READ_BUDGET, at_least=True)


def memory(folder: Path, number: int) -> Iterator[Figure]:
    """Peak memory of reading a trace of lines and one document, each in a process of its own.

    What reading takes of lines is what the Recording holds; of a document it is the document beside.
    """
    for lines in (True, False):
        shares = []
        for factor in (1, 3):
            path = written(folder / f"{factor}.json", calls(number * factor, 500))
            path.write_bytes(path.read_bytes().replace(b'"name":"phasetrace', b'"name":"whatever'))
            if not lines:
                one_document(path)
            done = subprocess.run(
                [sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True
            )
            shares.append(int(done.stdout) * 1024 / path.stat().st_size)
            path.unlink()
        kind, budget = ("lines", None) if lines else ("one document", DOCUMENT_BUDGET)
        yield figure(f"memory to read a foreign trace of {kind} / its size", shares, "times", budget)


def one_document(path: Path) -> None:
    """The lines of a trace as one document, laid out for people."""
    resources = [
        each for line in path.read_bytes().splitlines() for each in orjson.loads(line)["resourceSpans"]
    ]
    path.write_bytes(orjson.dumps({"resourceSpans": resources}, option=orjson.OPT_INDENT_2))


def written(path: Path, recorded: Recording) -> Path:
    """A trace file of it."""
    with TraceFile(path) as file:
        file.write(recorded)
    return path


def rates(runs: int, count: int, work: Callable[[], object]) -> list[float]:
    """How many a second, run by run."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        work()
        found.append(count / (time.process_time() - start))
    return found
