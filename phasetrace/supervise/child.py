"""The supervised command as a child process."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable, Mapping, Sequence

from phasetrace.errors import UsageError
from phasetrace.supervise.signals import CHANGED_BY_PYTHON

SHELL = "/bin/sh"


class Child:
    """The command's process. As PID 1 we are everybody's parent in the end and reap whatever has ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._exit_code: int | None = None

    def poll(self) -> int | None:
        """The exit code once it has ended, as a shell gives it: 128 + n for signal n."""
        which = -1 if os.getpid() == 1 else self.pid
        while self._exit_code is None or which == -1:
            try:
                pid, status = os.waitpid(which, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == self.pid:
                code = os.waitstatus_to_exitcode(status)
                self._exit_code = code if code >= 0 else 128 - code
        return self._exit_code

    def send(self, number: int) -> None:
        """Pass a signal on. The process is there even when it has ended, until `poll` says so."""
        if self._exit_code is None:
            os.kill(self.pid, number)


def start(command: Sequence[str], environment: Mapping[str, str], mask: Iterable[int]) -> Child:
    """Start the command with the signal mask and dispositions that it would have without us."""
    try:
        return Child(_spawn(command, environment, mask))
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # a script without a first line: a shell runs it, and so do we
            return Child(_spawn([SHELL, *command], environment, mask))
        raise UsageError(why_not(command[0], error)) from None


def replace(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become the command. Returns only by raising."""
    for number in CHANGED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], list(command), dict(environment))
    except OSError as error:
        raise UsageError(why_not(command[0], error)) from None


def why_not(program: str, error: OSError) -> str:
    """One line on why a program could not be started."""
    if error.errno == errno.ENOENT:
        return f"command not found: {program}"
    return f"cannot run {program}: {error.strerror}"


def _spawn(command: Sequence[str], environment: Mapping[str, str], mask: Iterable[int]) -> int:
    return os.posix_spawnp(
        command[0], list(command), environment, setsigmask=mask, setsigdef=CHANGED_BY_PYTHON
    )
