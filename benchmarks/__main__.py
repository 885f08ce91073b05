"""`make bench`: every bench_*.py beside this, each in a process of its own, and one table of it all.

`python -m benchmarks [--quick] [NAME...]`; NAME is a module without its `bench_`. A module offers
`measure(quick)`, which yields figures and may print what is not worth a line of the table.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figure import Figure, dump, load, table

NAMES = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def main() -> int:
    """Run what is asked for, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all without")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    unknown = set(asked.names) - set(NAMES)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if asked.into is not None:
        run_here(asked.names[0], asked.quick, asked.into)
        return 0
    figures, failed = [], []
    for name in asked.names or NAMES:
        found, whole = run_apart(name, asked.quick)
        figures += found
        if not whole:
            failed.append(name)
    print("\n" + table(figures))
    print("ratio: the share of the budget that is used; above 1 is over it. " + machine())
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run_here(name: str, quick: bool, into: Path) -> None:
    """One benchmark in this process; each figure is printed and kept as it comes."""
    for each in importlib.import_module(f"benchmarks.bench_{name}").measure(quick):
        with into.open("a") as file:
            file.write(dump([each]))
        what, median, spread, _, _, ratio = each.cells()
        print(
            f"  {what}: {median} ({spread})" + ("" if ratio == "-" else f", {ratio} of the budget"),
            flush=True,
        )


def run_apart(name: str, quick: bool) -> tuple[list[Figure], bool]:
    """(figures, whether that is all); in a process of its own, so that none inherits another's memory."""
    print(f"== {name}", flush=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "figures"
        command = [sys.executable, "-m", "benchmarks", name, "--into", str(into)]
        done = subprocess.run([*command, "--quick"] if quick else command)
        print(f"   ({time.monotonic() - begin:.0f} s)", flush=True)
        return load(into.read_text()) if into.exists() else [], not done.returncode


def machine() -> str:
    """What it ran on, and how busy that was."""
    load_average = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{len(os.sched_getaffinity(0))} cores, {os.uname().machine}, load average {load_average}."


if __name__ == "__main__":
    sys.exit(main())
