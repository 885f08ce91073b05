"""`phasetrace.instrument()`: the same recording from inside, drained by a process that is not seen."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from phasetrace.model import RequestStatus
from phasetrace.read import read
from tests.supervise.runs import Runs, until

HERE = Path(__file__).parent
PREPARE = f"""
import os, sys, phasetrace
sys.path.insert(0, {str(HERE)!r})
import fake_app
phasetrace.instrument("trace.json", spool="spools")
phasetrace.instrument("other.json")
"""


def script(runs: Runs, code: str, prepare: str = PREPARE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", prepare + code],
        cwd=runs.folder,
        env=runs.environment({}),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_trace_is_whole_when_the_application_has_ended(runs: Runs) -> None:
    done = script(runs, "fake_app.generates(3)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(runs.recording().requests) == 3
    assert not (runs.folder / "other.json").exists()
    until(lambda: not runs.left)


def test_a_trace_that_may_not_grow(runs: Runs) -> None:
    limited = PREPARE.replace('spool="spools"', 'spool="spools", max_size=1')
    code = "import time\nfor _ in range(3): fake_app.generates(1); time.sleep(0.5)"
    assert script(runs, code, limited).stderr == ""
    assert (runs.folder / "trace.earlier.json").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_application(runs: Runs, number: signal.Signals) -> None:
    assert script(runs, f"fake_app.killed({int(number)})").returncode == -number
    until(lambda: not runs.left)
    statuses = sorted(request.status for request in runs.recording().requests)
    assert statuses == [RequestStatus.CUT_OFF, RequestStatus.OK]


def test_children_are_recorded(runs: Runs) -> None:
    child = f"[sys.executable, {str(HERE / 'fake_app.py')!r}, 'generate', '2']"
    script(runs, f"fake_app.generates(1); import subprocess; subprocess.run({child}); fake_app.forks(2)")
    assert len({request.process for request in runs.recording().requests}) == 4


def test_application_has_no_child_thread_or_open_pipe_of_ours(runs: Runs) -> None:
    done = script(
        runs,
        "import threading; print(threading.active_count())\n"
        "try: os.wait()\n"
        "except ChildProcessError: print('no child')",
    )
    assert done.stdout == "1\nno child\n"


def test_uninstrument_ends_it(runs: Runs) -> None:
    done = script(
        runs,
        "fake_app.generates(1); phasetrace.uninstrument(); phasetrace.uninstrument()\n"
        "from phasetrace.read import read; print(len(read('trace.json').requests))\n"
        "print(sorted(name for name in os.environ if name.startswith(('PHASETRACE', 'PYTHONPATH'))))\n"
        "try: phasetrace.instrument()\n"
        "except phasetrace.errors.PhasetraceError as error: print(error)",
    )
    assert done.stdout.splitlines()[:2] == ["1", "[]"]
    assert "cannot be begun again" in done.stdout


def test_under_run_it_joins(runs: Runs) -> None:
    code = PREPARE + "fake_app.generates(2)"
    done = runs.run([sys.executable, "-c", code], cwd=runs.folder)
    assert done.returncode == 0
    assert len(read(runs.trace).requests) == 2
    assert os.listdir(runs.folder).count("other.json") == 0
