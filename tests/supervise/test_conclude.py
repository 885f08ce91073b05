"""Whatever happens after the command's end, its exit code stays and nothing is left without a word."""

import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from phasetrace.supervise import RunOptions, run, summary
from tests.supervise.runs import Runs, app, until


def test_failing_summary_leaves_exit_code_and_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(summary, "of_run", fail)
    monkeypatch.delenv("PHASETRACE_SPOOL", raising=False)
    options = RunOptions(output=tmp_path / "trace.json", spool=tmp_path / "spools")
    result = run(["sh", "-c", "exit 9"], options)
    assert (result.exit_code, result.left) == (9, None)
    assert "the trace is in" in capsys.readouterr().err
    assert list((tmp_path / "spools").iterdir()) == []


def test_stderr_that_nobody_reads(runs: Runs) -> None:
    words = runs.words(app("nothing", 6))
    shell = f"({shlex.join(words)}; echo $? > code) 2>&1 | true"
    subprocess.run(["bash", "-c", shell], cwd=runs.folder, env=runs.environment({}), timeout=60, check=True)
    until((runs.folder / "code").exists)
    assert until((runs.folder / "code").read_text) == "6\n"
    assert runs.left == []


def test_asking_to_end_while_an_orphan_is_waited_for(runs: Runs) -> None:
    started = runs.start(["sh", "-c", f"{shlex.join(app('orphan', 30))}; echo ended"])
    assert started.stdout is not None
    assert started.stdout.readline() == "ended\n"
    until(lambda: ended_children(started.pid))
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=60)
    assert started.returncode == 0
    assert "phasetrace recover" in said


def ended_children(pid: int) -> bool:
    """Whether the process has no child left."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text() == ""
