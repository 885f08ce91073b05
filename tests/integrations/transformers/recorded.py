"""Runs a script with a real engine, recorded or not, and reads what was recorded."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from phasetrace.assemble.assembler import Assembler
from phasetrace.assemble.spool import Record, read_segment
from phasetrace.model import Recording
from phasetrace_agent import rundir

HERE = Path(__file__).parent


class Recorded(NamedTuple):
    """What a recorded script printed, and its recording."""

    output: str
    records: list[Record]
    recording: Recording


def run_plain(python: Path, engine: Path, script: str, *arguments: str) -> str:
    """What the script prints by itself."""
    return _run(python, [engine], script, arguments, {})


def run_recorded(base: Path, python: Path, engine: Path, script: str, *arguments: str) -> Recorded:
    """What the script prints while it is recorded, and what was recorded of it."""
    run, spool = base / "run", base / "spool"
    rundir.make(run, "0")
    rundir.make_spool(spool)
    names = {"PHASETRACE_RUN": str(run), "PHASETRACE_SPOOL": str(spool)}
    output = _run(python, [run, engine], script, arguments, names)
    assembler, records = Assembler(), []
    for path in spool.glob("*.seg"):
        info, found, _ = read_segment(path)
        assembler.feed(info, found)
        records += found
    return Recorded(output, records, assembler.close())


def _run(
    python: Path, folders: list[Path], script: str, arguments: tuple[str, ...], names: dict[str, str]
) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PHASETRACE"))}
    path = os.pathsep.join(str(folder) for folder in folders)
    done = subprocess.run(
        [python, HERE / script, *arguments],
        env={**kept, "PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", **names},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
