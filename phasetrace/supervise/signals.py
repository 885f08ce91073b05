r"""Signals of a supervised run: which are passed on to the command.

The command shares our terminal and process group, so Ctrl-C and Ctrl-\ reach it from the kernel already:
passing those on as well would deliver them twice. What a process sent to us was meant for the command.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT})
PASSED_ON = frozenset({signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})
WATCHED = FROM_TERMINAL | PASSED_ON | {signal.SIGCHLD}
# Python ignores these for itself; the command gets the default, as it would from a shell.
CHANGED_BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})


@contextmanager
def held() -> Iterator[set[signal.Signals | int]]:
    """Block the watched signals, so that only `next_signal` sees them; gives the mask from before.

    To be entered before any thread starts, for a signal goes to whichever thread does not block it.
    """
    chld = signal.signal(
        signal.SIGCHLD, signal.SIG_DFL
    )  # ignored by our parent, children could not be waited for
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    try:
        yield before
    finally:
        while signal.sigtimedwait(WATCHED, 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, chld or signal.SIG_DFL)


def next_signal(seconds: float) -> signal.struct_siginfo | None:
    """Wait for one of the held signals."""
    return signal.sigtimedwait(WATCHED, seconds)


def is_for_command(info: signal.struct_siginfo) -> bool:
    """Whether the command has not got this signal by itself."""
    sent_by_process = info.si_code <= 0  # SI_USER, SI_QUEUE, SI_TKILL; the kernel's own codes are positive
    return info.si_signo in PASSED_ON or (info.si_signo in FROM_TERMINAL and sent_by_process)


def asks_to_end(info: signal.struct_siginfo) -> bool:
    """Whether this signal, after the command's end, means that we should not wait any longer."""
    return info.si_signo in FROM_TERMINAL | {signal.SIGTERM, signal.SIGHUP}
