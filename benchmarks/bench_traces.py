"""Writing and reading traces: token spans encoded a second, spans read a second, bytes a token, memory.

Each figure is a median of several runs within one process; those of peers are taken in the same run, so that
the ratios hold on a busy machine.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson

from phasetrace.emit.otlp_json import to_lines
from phasetrace.emit.trace_file import TraceFile
from phasetrace.mapping import SpanMaker, to_spans
from phasetrace.model import Part, Process, Recording, Request, Sequence, StepCount, Steps
from phasetrace.read import read

RUNS = 5
BEGIN = 1_700_000_000_000_000_000
ENCODED_BUDGET, DECODED_BUDGET, READ_BUDGET = 500_000, 300_000, 120_000  # spans a second
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


def main() -> None:
    """Print a line a figure."""
    encoding()
    with tempfile.TemporaryDirectory() as folder:
        reading(Path(folder))
        memory(Path(folder))


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


def encoding() -> None:
    """Token spans to OTLP JSON, beside the official encoder for the same spans."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    from phasetrace.emit.sdk_spans import to_sdk_spans

    groups = [g for g in SpanMaker(for_file=False).spans(calls(200, 500))]
    for group in groups:
        group.spans.clear()
    tokens = sum(map(len, groups))
    ours = rate(tokens, lambda: sum(len(line) for line in to_lines(groups)))
    few = [g for g in SpanMaker(for_file=False).spans(calls(4, 500))]
    count = sum(map(len, few))
    official = rate(
        count, lambda: encode_spans([s for g in few for s in to_sdk_spans(g)]).SerializeToString()
    )
    line("token spans encoded", ours, ENCODED_BUDGET)
    print(f"  {ours / official:,.0f} times the official exporter's {official:,.0f} spans/s")
    recorded = calls(200, 500)
    whole = rate(tokens, lambda: sum(len(x) for x in to_lines(to_spans(recorded))))
    print(f"a recording written with all that a file holds: {whole:,.0f} tokens/s")


def reading(folder: Path) -> None:
    """The same trace, read as ours and as anyone's; and the parsers that could be used."""
    recorded = calls(400, 500)
    path = written(folder / "ours.json", recorded)
    size, tokens = path.stat().st_size, 400 * 500
    lines = path.read_bytes().splitlines()
    spans = sum(text.count(b'"spanId"') for text in lines)
    kept = sum(len(text) for text in lines if b"bytesValue" in text[:4096])
    print(f"file: {size / tokens:.1f} bytes a token, {kept / tokens:.2f} of them what is not for show")
    line("our trace read into a Recording, spans", rate(spans, lambda: read(path)), READ_BUDGET)

    foreign = written(folder / "foreign.json", recorded)
    foreign.write_bytes(foreign.read_bytes().replace(b'"name":"phasetrace', b'"name":"whatever'))
    line("the same as another tool's, spans", rate(spans, lambda: read(foreign)), READ_BUDGET)
    parsers: dict[str, Callable[[bytes], object]] = {"orjson": orjson.loads, "json": json.loads}
    try:
        import msgspec

        parsers["msgspec"] = msgspec.json.decode
    except ImportError:
        pass
    for name, parse in parsers.items():
        line(f"parsed by {name}, spans", rate(spans, lambda p=parse: each(p, lines)), DECODED_BUDGET)


def memory(folder: Path) -> None:
    """Peak memory of reading a trace and of one five times as long, each in a process of its own."""
    peaks = []
    for number in (200, 1000):
        path = written(folder / f"{number}.json", calls(number, 500))
        done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
        peaks.append((path.stat().st_size / 1e6, int(done.stdout) / 1024))
    for size, peak in peaks:
        print(f"memory to read {size:,.0f} MB: {peak:,.0f} MB ({peak / size:.2f} of the file)")


def written(path: Path, recorded: Recording) -> Path:
    """A trace file of it."""
    with TraceFile(path) as file:
        file.write(recorded)
    return path


def each(parse: Callable[[bytes], object], lines: list[bytes]) -> None:
    """Parse and let go, as a reader of lines does."""
    for text in lines:
        parse(text)


def rate(count: int, work: Callable[[], object]) -> float:
    """How many a second, median of RUNS."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return count / statistics.median(times)


def line(what: str, found: float, budget: int) -> None:
    """A figure beside its budget."""
    print(f"{what}: {found:,.0f}/s ({found / budget:.1f} times the budget of {budget:,})")


if __name__ == "__main__":
    main()
