"""`phasetrace.instrument()`: records the process that calls it, for those who cannot use `phasetrace run`.

The same agent, the same spool. The drain is a process of its own, so that the application gets no thread of
ours, and the trace is written even when it is killed.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from pathlib import Path

from phasetrace.emit import address
from phasetrace.errors import PhasetraceError
from phasetrace.supervise import environment, follow, output
from phasetrace.supervise.folder import Folder, make_folder
from phasetrace.supervise.options import RunOptions
from phasetrace.supervise.processes import start_of
from phasetrace_agent import bootstrap

PATIENCE_S = 10.0  # for the trace to be whole when the application ends
LOOK_S = 0.01
PACKAGES = [str(Path(__file__).parents[2]), str(Path(bootstrap.__file__).parents[1])]


class _Attached:
    """The recording of this process, while there is one."""

    folder: Folder | None = None
    owner = 0  # the process that called; a forked child is recorded, and must not end the recording
    ended = False


def instrument(options: RunOptions) -> None:
    """Record this process and the Python processes it starts from now on.

    Raises:
        UsageError: the trace cannot be written.
        PhasetraceError: the recording of this process has been ended before.
    """
    if _Attached.ended:
        raise PhasetraceError("the recording of this process has ended; it cannot be begun again")
    if _Attached.folder is not None or environment.joined(os.environ) is not None:
        return
    output.check(options.output)
    address.check(options.otlp)
    folder = make_folder(options.spool)
    _start_follower(folder, options)
    _Attached.folder, _Attached.owner = folder, os.getpid()
    os.environ.update(environment.recorded(os.environ, folder))
    bootstrap.start(folder.spool, covers_children=True)
    atexit.register(uninstrument)


def uninstrument() -> None:
    """End the recording, and wait until its trace is written."""
    folder = _Attached.folder
    if folder is None or _Attached.owner != os.getpid():
        return
    _Attached.folder, _Attached.ended = None, True
    bootstrap.stop()
    environment.forget(os.environ, folder)
    (folder.base / follow.FINISH).touch()
    _wait_for_follower(folder)


def _wait_for_follower(folder: Folder) -> None:
    """Wait until all is written; not for a follower that was killed."""
    end = time.monotonic() + PATIENCE_S
    while folder.base.exists() and not (folder.base / follow.FINISHED).exists() and time.monotonic() < end:
        note = folder.note()
        if note and not note.is_running:
            break
        time.sleep(LOOK_S)
    log = folder.base / follow.LOG
    if log.exists() and (said := log.read_text(errors="replace").split("\n")[-2:]) and any(said):
        print(f"phasetrace: the recording failed: {' '.join(said).strip()}; see {log}", file=sys.stderr)


def _start_follower(folder: Folder, options: RunOptions) -> None:
    pid = os.getpid()
    arguments = [
        str(folder.base),
        str(options.output.absolute()),
        options.detail,
        str(pid),
        str(start_of(pid)),
        str(options.max_size or ""),
    ]
    path = [*PACKAGES, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    with open(folder.base / follow.LOG, "wb") as log:  # its own: an application's pipe would stay open
        subprocess.run(
            [sys.executable, "-m", "phasetrace.supervise", *arguments, *filter(None, [options.otlp])],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
        )
