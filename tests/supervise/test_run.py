"""The command's end in all its forms: the trace is there, and the exit code is the command's."""

import shlex
import signal
import subprocess
from collections.abc import Sequence

import pytest

from phasetrace.emit.trace_file import pieces
from phasetrace.model import RequestStatus
from phasetrace.read import read
from tests.conftest import OtherPython
from tests.supervise.fake_app import STEPS
from tests.supervise.runs import APP, PYTHON, Runs, app


def statuses(runs: Runs) -> list[RequestStatus]:
    return sorted(request.status for request in runs.recording().requests)


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_code_is_the_commands(runs: Runs, code: int) -> None:
    assert runs.run(app("nothing", code)).returncode == code


def test_requests_are_recorded_whole(runs: Runs) -> None:
    done = runs.run(app("generate", 3))
    assert (done.returncode, done.stdout) == (0, "")
    recording = runs.recording()
    assert len(recording.requests) == 3
    assert sum(len(steps) for steps in recording.steps) == 3 * STEPS
    assert runs.left == []


@pytest.mark.soak(100)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_application_leaves_what_it_did(runs: Runs, number: signal.Signals) -> None:
    done = runs.run(app("killed", number))
    assert done.returncode == 128 + number
    assert statuses(runs) == [RequestStatus.CUT_OFF, RequestStatus.OK]
    assert sum(len(steps) for steps in runs.recording().steps) == STEPS + 5


def test_uncaught_exception(runs: Runs) -> None:
    done = runs.run(app("raises"))
    assert done.returncode == 1
    assert "RuntimeError" in done.stderr
    assert statuses(runs) == [RequestStatus.OK]


def test_os_exit(runs: Runs) -> None:
    assert runs.run(app("os-exit", 7)).returncode == 7
    assert statuses(runs) == [RequestStatus.OK]


def test_exec_is_recorded_before_and_after(runs: Runs) -> None:
    assert runs.run(app("execs")).returncode == 0
    recording = runs.recording()
    assert len(recording.requests) == 2
    assert len({request.process for request in recording.requests}) == 2
    assert len({process.pid for process in recording.processes}) == 1


@pytest.mark.parametrize(("mode", "expected"), [("forks", 4), ("spawns", 3)])
def test_children_are_recorded(runs: Runs, mode: str, expected: int) -> None:
    assert runs.run(app(mode, 3)).returncode == 0
    assert len({request.process for request in runs.recording().requests}) == expected


def test_children_get_signals_as_without_us(runs: Runs) -> None:
    # The lower 31 bits: glibc leaves its own two signals, 32 and 33, ignored in whatever it spawns.
    show = """awk '/Sig(Blk|Ign)/ { print $1, substr($2, 10) }' /proc/self/status"""
    plain = subprocess.run(["sh", "-c", show], capture_output=True, text=True)
    assert runs.run(["sh", "-c", show]).stdout == plain.stdout


def test_stdin_and_stdout_are_the_commands(runs: Runs) -> None:
    assert runs.run(["cat"], input="through and through").stdout == "through and through"


def test_nothing_recorded_says_why(runs: Runs) -> None:
    for command, why in (
        (["true"], "no Python process was seen"),
        ([PYTHON, "-I", "-c", "pass"], "-I ignores PYTHONPATH"),
        ([PYTHON, "-c", "pass"], "no process imported transformers"),
    ):
        done = runs.run(command)
        assert done.returncode == 0
        assert "nothing was recorded" in done.stderr
        assert why in done.stderr


def test_quiet_says_nothing(runs: Runs) -> None:
    assert runs.run(app("generate", 1), "--quiet").stderr == ""


def test_summary_names_phases_and_the_next_command(runs: Runs) -> None:
    done = runs.run(app("generate", 3))
    assert "decode" in done.stderr
    assert f"phasetrace diagnose {runs.trace}" in done.stderr


def test_a_second_run_can_be_compared_with_the_first(runs: Runs) -> None:
    assert "compare" not in runs.run(app("generate", 3)).stderr
    again = runs.run(app("generate", 3))
    assert f"phasetrace compare {runs.trace.with_name('trace.1.json')} {runs.trace}" in again.stderr


def test_existing_trace_is_kept(runs: Runs) -> None:
    runs.trace.write_text("mine")
    runs.run(app("generate", 1))
    assert runs.trace.with_name("trace.1.json").read_text() == "mine"


@pytest.mark.parametrize(
    "command", [["pyton", "app.py"], [PYTHON, "typo.py"], [PYTHON, "-c", "1/0"], ["true"]]
)
def test_existing_trace_stays_where_nothing_was_recorded(runs: Runs, command: list[str]) -> None:
    runs.trace.write_text("mine")
    for options in ([], ["--quiet"]):
        done = runs.run(command, *options)
        started = command[0] != "pyton"
        assert (f"{runs.trace} is as it was: this run recorded nothing" in done.stderr) is started
        assert "mine" == runs.trace.read_text()
    assert list(runs.folder.glob("trace*")) == [runs.trace] and runs.left == []


def test_nothing_recorded_leaves_no_trace(runs: Runs) -> None:
    assert "as it was" not in runs.run(["true"]).stderr
    assert not runs.trace.exists()


def test_a_trace_that_may_not_grow_keeps_the_newest(runs: Runs) -> None:
    done = runs.run(app("goes-on", 3), "--max-size", "1MB")
    kept = pieces(runs.trace)
    assert [path.name for path in kept] == ["trace.earlier.json", "trace.json"]
    assert sum(path.stat().st_size for path in kept) < 2_000_000  # a part that is under way is never cut
    assert "(--max-size)" in done.stderr
    assert f"phasetrace diagnose {shlex.join(map(str, kept))}" in done.stderr
    assert all(read(path).processes and read(path).requests for path in kept)


def test_run_inside_run_joins(runs: Runs) -> None:
    inner = Runs(runs.folder / "inner")
    done = runs.run(inner.words(app("generate", 2)))
    assert done.returncode == 0
    assert "joins the run" in done.stderr
    assert len(runs.recording().requests) == 2
    assert not inner.folder.exists()


def test_empty_pythonpath_does_not_put_the_folder_on_the_path(runs: Runs) -> None:
    show = "import os, sys; print(os.environ['PYTHONPATH'].count(':'), os.getcwd() in sys.path[1:])"
    for value in ({"PYTHONPATH": ""}, {}):
        assert runs.run([PYTHON, "-c", show], env=value).stdout == "0 False\n"


def test_secrets_are_in_no_file(runs: Runs) -> None:
    secret = "hf_planted"
    command = [*app("raises"), f"--token={secret}_in_argv"]
    env = {"HF_TOKEN": f"{secret}_in_environment", "OTEL_EXPORTER_OTLP_HEADERS": f"key={secret}_in_headers"}
    runs.run(command, env=env)
    with runs.start([*app("goes-on", 30), f"--token={secret}_in_argv"], env=env) as started:
        assert started.stdout is not None
        started.stdout.readline()
        started.kill()  # the spool stays, and leaving `with` closes the pipe, which ends the application
        files = [path for path in runs.folder.rglob("*") if path.is_file()]
        assert any(path.suffix == ".seg" for path in files)
        for path in files:
            assert secret.encode() not in path.read_bytes(), path


def test_every_python_from_3_9_on_is_recorded_and_older_ones_run_untouched(
    runs: Runs, other_pythons: Sequence[OtherPython]
) -> None:
    for python in other_pythons:
        if python.version >= (3, 9):
            done = runs.run([str(python.path), str(APP), "generate", "1"], "--quiet")
            assert len(runs.recording().requests) == 1, python
        else:
            done = runs.run([str(python.path), "-c", "print('')"], "--quiet")
        assert (done.returncode, done.stderr) == (0, ""), python
