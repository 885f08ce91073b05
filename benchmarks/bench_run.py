"""What recording costs a real `generate()` run: transformers on CPU torch, through `phasetrace run`.

Two models: a small one whose step takes some ten milliseconds, and a tiny one whose step is hardly more than
Python, the worst case. The same seeded calls run with and without recording in turns; a pair gives one
ratio of throughput, by the application's own clock. Beside that stands what the recording says of itself.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.figure import Figure, figure
from phasetrace.model import Recording
from phasetrace.read import read

ROOT = Path(__file__).resolve().parents[1]
TORCH_PYTHON = ROOT / ".engines/torch/bin/python"
TRANSFORMERS = ROOT / ".engines/transformers-5.24.0"
APPLICATION = Path(__file__).with_name("generating.py")
PHASETRACE = [sys.executable, "-c", "import sys; from phasetrace.cli import main; sys.exit(main())"]
HOOKS_PERCENT = 0.1
# hidden, layers, rows, tokens, calls
SMALL = (512, 8, 4, 64, 3)
TINY = (64, 1, 1, 256, 4)


def measure(quick: bool = False) -> Iterator[Figure]:
    """Figures of both models; none where the engine is not set up."""
    if not (TORCH_PYTHON.exists() and TRANSFORMERS.exists()):
        print("  skipped: `make engines` sets up what this records")
        return
    for name, size, budget in (("small model", SMALL, HOOKS_PERCENT), ("tiny model", TINY, None)):
        yield from of_model(name, size, 2 if quick else 5, budget)


def of_model(name: str, size: Sequence[int], pairs: int, budget: float | None) -> Iterator[Figure]:
    """Share of hooks, added time, and the length of a step, of one model."""
    command = [str(TORCH_PYTHON), str(APPLICATION), *map(str, size)]
    environment = {**os.environ, "PYTHONPATH": str(TRANSFORMERS)}
    shares, of_calls, walls, cpus, steps = [], [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        for number in range(pairs):
            runs = [plain, recorded] if number % 2 else [recorded, plain]
            found = {run: run(command, environment, trace) for run in runs}
            walls.append(added(found[recorded]["wall"], found[plain]["wall"]))
            cpus.append(added(found[recorded]["cpu"], found[plain]["cpu"]))
            recording = read(trace)
            trace.unlink()
            shares.append(share_of_run(recording))
            of_calls.append(share_of_calls(recording))
            steps.append(step_ms(recording))
    yield figure(f"{name}: a step, recorded", steps, "ms")
    yield figure(f"{name}: time in hooks / wall time of the run", shares, "%", budget)
    yield figure(f"{name}: time in hooks / time in generate()", of_calls, "%", budget)
    yield figure(f"{name}: time added to generate(), in pairs", walls, "%")
    yield figure(f"{name}: CPU time added to generate(), in pairs", cpus, "%")


def plain(command: Sequence[str], environment: Mapping[str, str], _: Path) -> dict[str, list[float]]:
    """The application's times without phasetrace."""
    return timed(command, environment)


def recorded(command: Sequence[str], environment: Mapping[str, str], trace: Path) -> dict[str, list[float]]:
    """The application's times under `phasetrace run`."""
    return timed([*PHASETRACE, "run", "--quiet", "-o", str(trace), "--", *command], environment)


def timed(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, list[float]]:
    """What the application says at its end."""
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def added(recorded_s: Sequence[float], plain_s: Sequence[float]) -> float:
    """Percent that recording adds to a call, by the median call of each run."""
    return (statistics.median(recorded_s) / statistics.median(plain_s) - 1) * 100


def share_of_run(recording: Recording) -> float:
    """Percent of the run's wall time that its processes say they spent inside hooks."""
    begin, end = recording.begin_ns or 0, recording.end_ns or 0
    return hook_ns(recording) / (end - begin) * 100


def share_of_calls(recording: Recording) -> float:
    """The same as percent of the time inside `generate()` alone."""
    inside = sum((r.finished_ns or r.arrival_ns) - r.arrival_ns for r in recording.requests)
    return hook_ns(recording) / inside * 100


def hook_ns(recording: Recording) -> int:
    """Calls times what each costs, calibrated in the process."""
    return sum(process.hook_ns for process in recording.processes)


def step_ms(recording: Recording) -> float:
    """The median step, as recorded."""
    lengths = [ns for steps in recording.steps for ns in (steps.end_ns - steps.begin_ns).tolist()]
    return statistics.median(lengths) / 1e6
