"""`phasetrace diagnose`, as a process, on a trace file of 10 million output tokens: time and peak memory.

Three shapes: calls of `generate()` with 64 rows (a stream a call); 20,000 requests that share one engine's
stream; and the worst case, calls of one row, where every token is a step with columns of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure, figure

TOKENS = 10_000_000
SECONDS, MEGABYTES = 10.0, 500.0
SHAPES = {
    "calls": "generate() calls of 64 rows",
    "engine": "one engine's stream",
    "single": "generate() calls of one row",
}
WRITE = [sys.executable, "-m", "benchmarks.ten_million"]
DIAGNOSE = [sys.executable, "-c", "import sys; from phasetrace.cli import main; sys.exit(main())", "diagnose"]


def measure(quick: bool = False) -> Iterator[Figure]:
    """Wall and CPU time and peak memory a shape, over rounds."""
    yield from of_size(TOKENS // 10 if quick else TOKENS, 1 if quick else 3)


def of_size(tokens: int, rounds: int) -> Iterator[Figure]:
    """A figure of each kind a shape."""
    with tempfile.TemporaryDirectory() as folder:
        for shape, name in SHAPES.items():
            path = Path(folder) / f"{shape}.json"
            subprocess.run([*WRITE, shape, str(tokens), str(path)], check=True)
            walls, cpus, memory, cause = [], [], [], ""
            for _ in range(1 if shape == "single" else rounds):
                wall, cpu, peak, cause = diagnose(path)
                walls.append(wall)
                cpus.append(cpu)
                memory.append(peak)
            print(f"  {name}: {tokens:,} tokens, a file of {path.stat().st_size / 1e6:,.0f} MB: {cause}")
            yield figure(f"diagnose, {name}: time", walls, "s", SECONDS)
            yield figure(f"diagnose, {name}: CPU time", cpus, "s", SECONDS)
            yield figure(f"diagnose, {name}: peak memory", memory, "MB", MEGABYTES)
            path.unlink()


def diagnose(path: Path) -> tuple[float, float, float, str]:
    """(seconds, of them on a CPU, peak MB, cause) of one process."""
    begin = time.monotonic()
    child = subprocess.Popen([*DIAGNOSE, "--format", "json", str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    if child.returncode:
        raise SystemExit(f"diagnose failed on {path.name}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, str(json.loads(text)["cause"])
