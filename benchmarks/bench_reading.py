"""Reading what other tools wrote: spans a second and peak memory, beside `json` and DuckDB on the same file.

Each way runs in a process of its own, one after the other within a round, so that ratios hold on a busy
machine. Rates are of CPU time, of all threads.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.figure import Figure, figure
from benchmarks.foreign_traces import jaeger_document, otlp_lines

DECODED_BUDGET, READ_BUDGET = 300_000, 120_000  # spans a second
DOCUMENT_BUDGET = 4.0  # times the size of a file that is one document
MIXED = 10  # one span in so many is a request to a model

_FRAME = """
import gc, sys, time
path = sys.argv[1]

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

%s
gc.disable()  # as the command line does
before, begin = peak(), time.process_time()
spans = work()
print(time.process_time() - begin, peak() - before)
"""
_WAYS = {
    "decoded": """
from phasetrace.read.notes import Notes
from phasetrace.read import jaeger, otlp_json
from phasetrace.read.json_text import decoded, documents, values
from phasetrace.read.source import Source

def work():
    source, notes = Source(path), Notes(path)
    if "jaeger" in path:
        for whole in documents(source, notes, jaeger._DOCUMENT):
            for trace in whole.data:
                for text in trace.spans:
                    decoded(jaeger._SPAN, text)
        return
    for value in values(source, notes, otlp_json._DOCUMENT):
        for resource in otlp_json._resources(value, notes):
            for scope in resource.scopeSpans:
                for text in scope.spans:
                    decoded(otlp_json._SPAN, text)
""",
    "into a Recording": """
from phasetrace.read import read

def work():
    return read(path)
""",
    "by json": """
import json

def work():
    if "jaeger" in path:
        return json.load(open(path, "rb"))
    for line in open(path, "rb"):
        json.loads(line)
""",
    "by DuckDB": """
import duckdb

def work():
    if "jaeger" in path:
        document = f"read_json('{path}', maximum_object_size=2000000000)"
        spans = f"SELECT unnest(t.spans) AS s FROM (SELECT unnest(data) AS t FROM {document})"
        inside = "tags"
    else:
        lines = f"read_json('{path}', format='newline_delimited')"
        resources = f"SELECT unnest(resourceSpans) AS r FROM {lines}"
        scopes = f"SELECT unnest(r.scopeSpans) AS c FROM ({resources})"
        spans, inside = f"SELECT unnest(c.spans) AS s FROM ({scopes})", "attributes"
    duckdb.sql("SET enable_progress_bar = false")
    return duckdb.sql(f"SELECT count(*), sum(len(s.{inside})) FROM ({spans})").fetchall()
""",
}


class Cost(NamedTuple):
    """Of one way in one round."""

    spans_s: float
    memory: int  # bytes


def measure(quick: bool = False) -> Iterator[Figure]:
    """Figures of a million spans as OTLP JSON lines, and of 200,000 in one Jaeger document."""
    return of_size(50_000, 1) if quick else of_size(1_000_000, 3)


def of_size(spans: int, rounds: int) -> Iterator[Figure]:
    """Lines of so many spans, and a fifth of them as requests only and as a document."""
    few = spans // 5
    with tempfile.TemporaryDirectory() as folder:
        path = otlp_lines(Path(folder) / "mixed.jsonl", spans, MIXED)
        yield from _beside("OTLP JSON lines", path, spans, rounds)
        path.unlink()
        path = otlp_lines(Path(folder) / "requests.jsonl", few, 1)
        yield from _beside("OTLP JSON lines, all requests", path, few, rounds)
        path.unlink()
        path = jaeger_document(Path(folder) / "jaeger.json", few, MIXED)
        yield from _beside("one Jaeger document", path, few, rounds, DOCUMENT_BUDGET)


def _beside(
    what: str, path: Path, spans: int, rounds: int, memory_budget: float | None = None
) -> Iterator[Figure]:
    ways = [way for way in _WAYS if way != "by DuckDB" or find_spec("duckdb") is not None]
    size = path.stat().st_size
    print(f"  {what}: {spans:,} spans, {size / 1e6:.0f} MB")
    costs: dict[str, list[Cost]] = defaultdict(list)
    for _ in range(rounds):
        for way in ways:
            costs[way].append(_cost(way, path, spans))
    budgets = {"decoded": DECODED_BUDGET, "into a Recording": READ_BUDGET}
    for way in ways:
        rates = [cost.spans_s for cost in costs[way]]
        yield figure(f"{what}: spans {way}", rates, "/s", budgets.get(way), at_least=True)
    for way in ways:
        shares = [cost.memory / size for cost in costs[way]]
        budget = memory_budget if way == "into a Recording" else None
        yield figure(f"{what}: memory {way} / file", shares, "times", budget)
    for way in ways[2:]:
        yield figure(f"{what}: decoded / {way}", _ratios(costs["decoded"], costs[way]), "times")


def _ratios(ours: Sequence[Cost], theirs: Sequence[Cost]) -> list[float]:
    return [a.spans_s / b.spans_s for a, b in zip(ours, theirs, strict=True)]


def _cost(way: str, path: Path, spans: int) -> Cost:
    command = [sys.executable, "-c", _FRAME % _WAYS[way], str(path)]
    seconds, kilobytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return Cost(spans / float(seconds), int(kilobytes) * 1024)
