"""`make fixes`: six faults recorded, diagnosed, mended as recommended, recorded again; gain by gain.

`python -m benchmarks.fixes [--pairs N] [NAME...]`. Each pair is one run with the fault and one without it,
the pairs of all fixes in turn, since machines change while one measures. How long threads wanted a CPU and
had none tells how much neighbours took of each run: what would have been measured with as much of the machine
as before stands beside what was. Fixes of an engine that is not set up are left out by name.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figure import number
from phasetrace import advise, analyze
from phasetrace.analyze.host_use import host_use
from phasetrace.model import Breakdown, Finding, Goal, Prediction
from phasetrace.read import read
from phasetrace.semconv import Cause

ROOT = Path(__file__).resolve().parents[1]
FAULTS = ROOT / "examples" / "faults"
RECORD = [sys.executable, "-m", "phasetrace", "run", "--quiet", "-o"]
HEAD = (
    "fix", "metric", "before", "predicted after", "measured", "inside",
    "without a CPU", "at the same share", "inside", "named first",
)  # fmt: skip


@dataclass(frozen=True)
class Engine:
    """Where an engine is, and the folders that its applications need."""

    python: Path
    folders: tuple[Path, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether it is set up."""
        return all(path.exists() for path in (self.python, *self.folders))


TRANSFORMERS = Engine(ROOT / ".engines/torch/bin/python", (ROOT / ".engines/transformers-5.24.0",))
VLLM = Engine(ROOT / ".engines/vllm/bin/python")


@dataclass(frozen=True)
class Fix:
    """A fault, the goal that is looked at, and the application's option that does what is recommended."""

    name: str
    engine: Engine
    script: str
    cause: Cause
    goal: Goal
    option: str
    number: str = ""  # in the finding's commands: what the option is set to


FIXES = (
    Fix(
        "output cap",
        TRANSFORMERS,
        "long_output",
        Cause.LONG_OUTPUT,
        Goal.E2E,
        "--tokens=",
        r"max_new_tokens=(\d+)",
    ),
    Fix("KV cache on", TRANSFORMERS, "no_kv_cache", Cause.NO_KV_CACHE, Goal.E2E, "--cache"),
    Fix(
        "batching", TRANSFORMERS, "small_batch", Cause.SMALL_BATCH, Goal.THROUGHPUT, "--batch=", r"i \+ (\d+)"
    ),
    Fix("padding removed", TRANSFORMERS, "padding", Cause.PADDING, Goal.THROUGHPUT, "--sort"),
    Fix("prefix caching on", VLLM, "vllm/prefix_not_reused", Cause.PREFIX_NOT_REUSED, Goal.TTFT, "--caching"),
    Fix(
        "larger prefill budget",
        VLLM,
        "vllm/small_prefill_chunk",
        Cause.SMALL_PREFILL_CHUNK,
        Goal.TTFT,
        "--budget=",
        r"tokens (\d+)",
    ),
)


@dataclass(frozen=True)
class Pair:
    """A run with the fault and what was said of it; the goal's metric in a run without."""

    named: str
    predicted: Prediction | None
    measured: float
    starved: tuple[float, float] = (0.0, 0.0)  # before and after: share of the time without a CPU

    @property
    def at_the_same_share(self) -> float:
        """What would have been measured with as much of the CPUs as the run before had."""
        before, after = self.starved
        faster = (1 - after) / (1 - before)
        throughput = self.predicted is not None and self.predicted.metric == "throughput_tok_s"
        return self.measured / faster if throughput else self.measured * faster


def main() -> int:
    """Run the pairs and print what came of them; 1 where a fix did not do what was promised."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fixes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(fix.name for fix in FIXES))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings there")
    asked = parser.parse_args()
    chosen = [fix for fix in FIXES if not asked.names or fix.name in asked.names]
    for fix in [fix for fix in chosen if not fix.engine.ready]:
        print(f"left out: {fix.name}; its engine is not set up", file=sys.stderr)
        chosen.remove(fix)
    pairs: dict[Fix, list[Pair]] = {fix: [] for fix in chosen}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(asked.pairs):
            for fix in chosen:
                print(f"pair {turn + 1} of {asked.pairs}: {fix.name}", file=sys.stderr, flush=True)
                pairs[fix].append(pair(fix, asked.keep or Path(folder)))
                print("  " + "  ".join(row(fix, pairs[fix][-1:])), file=sys.stderr, flush=True)
    print("\n".join(table(pairs)))
    return 0 if pairs and all(inside(found, shared=True) for found in pairs.values()) else 1


def pair(fix: Fix, folder: Path) -> Pair:
    """Record with the fault, ask what to do, do it, and record again."""
    trace = folder / f"{fix.name.replace(' ', '-')}.json"
    before = recorded(fix, [], trace)
    diagnosis = advise.diagnose(before, fix.goal)
    finding = next((found for found in diagnosis.findings if found.cause == fix.cause), None)
    after = recorded(fix, [applied(fix, finding)], trace.with_suffix(".mended.json"))
    predicted = finding.prediction if finding else None
    return Pair(diagnosis.cause, predicted, value(after, fix.goal), (starved(before), starved(after)))


def applied(fix: Fix, finding: Finding | None) -> str:
    """The option that does what the finding recommends."""
    if not fix.number:
        return fix.option
    said = re.search(fix.number, "\n".join(finding.commands if finding else ()))
    if said is None:
        raise SystemExit(f"{fix.name}: no command says what to set {fix.option} to: {finding}")
    return fix.option + said[1]


def recorded(fix: Fix, options: Sequence[str], trace: Path) -> Breakdown:
    """What a run of the application with these options breaks down into."""
    command = [str(fix.engine.python), str(FAULTS / f"{fix.script}.py"), *options]
    path = os.pathsep.join(map(str, fix.engine.folders))
    done = subprocess.run(
        [*RECORD, str(trace), "--", *command],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{fix.name}: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return analyze.breakdown(read(trace))


def value(breakdown: Breakdown, goal: Goal) -> float:
    """The goal's metric as predictions have it: the mean over requests, in seconds; throughput of all."""
    if goal is Goal.THROUGHPUT:
        return breakdown.throughput_tok_s or 0.0
    times = [r.ttft_ns if goal is Goal.TTFT else r.e2e_ns for r in breakdown.requests]
    return statistics.mean(time for time in times if time is not None) / 1e9


def starved(breakdown: Breakdown) -> float:
    """The share of the time in which its threads wanted a CPU and had none; 0 where it is unknown."""
    used = host_use(breakdown.recording, (r.request for r in breakdown.requests))
    return (used.starved if used is not None else None) or 0.0


def table(pairs: Mapping[Fix, Sequence[Pair]]) -> Iterator[str]:
    """A line a fix, of the medians of its pairs."""
    rows = [HEAD, *(row(fix, found) for fix, found in pairs.items() if found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def row(fix: Fix, found: Sequence[Pair]) -> tuple[str, ...]:
    """Its cells."""
    promised, named = medians(found), sum(pair.named == fix.cause for pair in found)
    unit = " tok/s" if fix.goal is Goal.THROUGHPUT else " s"
    before, after, low, high = (number(each) + unit for each in promised) if promised else ("-",) * 4
    waited = [statistics.median(pair.starved[run] for pair in found) for run in (0, 1)]
    return (
        fix.name,
        str(fix.goal) if fix.goal is Goal.THROUGHPUT else f"{fix.goal}, mean",
        before,
        f"{after} ({low} to {high})",
        number(statistics.median(pair.measured for pair in found)) + unit,
        "yes" if inside(found) else "no",
        "{:.0%}, {:.0%}".format(*waited),
        number(statistics.median(pair.at_the_same_share for pair in found)) + unit,
        "yes" if inside(found, shared=True) else "NO",
        f"{named}/{len(found)}",
    )


def inside(found: Sequence[Pair], *, shared: bool = False) -> bool:
    """Whether what was measured lies inside of what was promised, each the median of the pairs."""
    promised = medians(found)
    if promised is None:
        return False
    _, _, low, high = promised
    got = statistics.median(pair.at_the_same_share if shared else pair.measured for pair in found)
    return low <= got <= high


def medians(found: Sequence[Pair]) -> tuple[float, float, float, float] | None:
    """Before, after, low and high; None where a pair has no prediction."""
    said = [pair.predicted for pair in found if pair.predicted is not None]
    if len(said) < len(found):
        return None
    columns = ([p.before, p.after, p.low, p.high] for p in said)
    before, after, low, high = (statistics.median(column) for column in zip(*columns, strict=True))
    return before, after, low, high


if __name__ == "__main__":
    sys.exit(main())
