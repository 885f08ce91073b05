"""What phasetrace adds to the start of a Python process, and how long its commands take to begin.

The process is started with and without the run directory in turns, so that a busy moment hits both, and
each pair gives one difference. It is the Python of a virtual environment with nothing in it: what
others put into site-packages would add its own noise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.figure import Figure, figure
from phasetrace.supervise.environment import PYTHONPATH, RUN, SPOOL
from phasetrace_agent import rundir

MILLISECONDS = 5.0
PHASETRACE = [sys.executable, "-c", "import sys; from phasetrace.cli import main; sys.exit(main())"]
Measure = Callable[[Sequence[str], Mapping[str, str]], float]
STAMP = "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))"


def measure(quick: bool = False) -> Iterator[Figure]:
    """A figure of added start-up, then what a user waits for."""
    yield from of_size(*((5, 3) if quick else (100, 15)))


def of_size(pairs: int, few: int) -> Iterator[Figure]:
    """The same with so many pairs, and few rounds of what takes longer."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "bare", symlinks=True)
        python = [str(Path(folder) / "bare/bin/python"), "-c"]
        environment = recorded(Path(folder))
        walls = added(pairs, python, environment, took)
        yield figure("added start-up of a Python process", walls, "ms", MILLISECONDS)
        cpus = added(pairs, python, environment, cost)
        yield figure("added start-up, CPU time", cpus, "ms", MILLISECONDS)
        yield figure("phasetrace --help", [took([*PHASETRACE, "--help"]) for _ in range(few)], "ms")
        waits = [until_it_starts(Path(folder), python) for _ in range(few)]
        yield figure("phasetrace run: until the command runs", waits, "ms")


def recorded(folder: Path) -> dict[str, str]:
    """The environment that `phasetrace run` gives to a command."""
    rundir.make(folder / "run")
    rundir.make_spool(folder / "spool")
    return {
        **os.environ,
        SPOOL: str(folder / "spool"),
        RUN: str(folder / "run"),
        PYTHONPATH: str(folder / "run"),
    }


def added(pairs: int, python: list[str], environment: Mapping[str, str], measured: Measure) -> list[float]:
    """Milliseconds that recording adds to a process which does nothing, pair by pair."""
    bare = {name: value for name, value in environment.items() if name not in (SPOOL, RUN, PYTHONPATH)}
    measured([*python, "pass"], environment)  # compiles the agent
    found = []
    for number in range(pairs):
        if number % 2:
            first = measured([*python, "pass"], environment)
            found.append(first - measured([*python, "pass"], bare))
        else:
            first = measured([*python, "pass"], bare)
            found.append(measured([*python, "pass"], environment) - first)
    return found


def took(command: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """Milliseconds from start to end of a command."""
    begin = time.monotonic()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic() - begin) * 1000


def cost(command: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """Milliseconds of CPU time of a command."""
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1000


def until_it_starts(folder: Path, python: list[str]) -> float:
    """Milliseconds that `phasetrace run` takes before its command, beyond what the command takes alone."""
    output = str(folder / "trace.json")
    run = [*PHASETRACE, "run", "--quiet", "-o", output, "--", *python, STAMP]
    with_us, without = time_to_stamp(run), time_to_stamp([*python, STAMP])
    return with_us - without


def time_to_stamp(command: Sequence[str]) -> float:
    """Milliseconds until the command's script runs."""
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return (int(done.stdout) - begin) / 1e6
