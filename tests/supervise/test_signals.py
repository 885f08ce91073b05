"""Signals reach the command once, whoever sends them."""

import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.supervise.runs import Runs, app


def test_ctrl_c_in_a_terminal_arrives_once(runs: Runs) -> None:
    output = typed(runs, app("counts", signal.SIGINT), b"\x03")
    assert "counted 1" in output


def test_ctrl_backslash_in_a_terminal_arrives_once(runs: Runs) -> None:
    output = typed(runs, app("counts", signal.SIGQUIT), b"\x1c")
    assert "counted 1" in output


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]
)
def test_a_process_that_signals_us_means_the_command(runs: Runs, number: signal.Signals) -> None:
    started = runs.start(app("counts", number), "--quiet")
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    os.kill(started.pid, number)
    output, _ = started.communicate(timeout=60)
    assert (output, started.returncode) == ("counted 1\n", 0)


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGWINCH])
def test_what_concerns_only_us_is_not_passed_on(runs: Runs, number: signal.Signals) -> None:
    started = runs.start(app("counts", number), "--quiet")
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    os.kill(started.pid, number)
    os.kill(started.pid, signal.SIGCONT)
    os.kill(started.pid, signal.SIGTERM)
    output, _ = started.communicate(timeout=60)
    assert (output, started.returncode) == ("", 128 + signal.SIGTERM)


def test_command_killed_by_a_signal_passed_on(runs: Runs) -> None:
    started = runs.start(app("goes-on", 60))
    assert started.stdout is not None
    assert started.stdout.readline() == "finished 1\n"
    os.kill(started.pid, signal.SIGTERM)
    started.communicate(timeout=60)
    assert started.returncode == 128 + signal.SIGTERM
    assert len(runs.recording().requests) >= 1


def typed(runs: Runs, command: list[str], keys: bytes) -> str:
    """What is seen on a terminal in which `keys` are typed once the command is ready."""
    words = runs.words(command)
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, words, runs.environment({}))
    output = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the terminal's other side is closed
            break
        if b"ready" in output + piece and b"ready" not in output:
            os.write(terminal, keys)
        output += piece
    os.close(terminal)
    os.waitpid(pid, 0)
    return output.decode()


def test_as_pid_1_it_reaps(runs: Runs) -> None:
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.system(" ".join([*unshare, "true"]) + " 2>/dev/null"):
        pytest.skip("no right to make a PID namespace (unshare --pid)")
    # An orphan that ended and was not reaped is still listed, as defunct.
    gone = "ps -eo comm= | grep -q ^sleep || exit 5"
    script = f"(sleep 0.2 &) ; for n in $(seq 200); do {gone}; sleep 0.1; done; exit 6"
    words = [*unshare, *runs.words(["sh", "-c", script])]
    done = subprocess.run(words, env=runs.environment({}), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (5, "")
