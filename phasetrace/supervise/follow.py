"""The process that drains for `phasetrace.instrument()`, until the application has ended.

It detaches itself, so that the application, which started it, is not its parent: `os.wait()` there must not
see it, and Ctrl-C not reach it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path

from phasetrace.supervise.background import TURN_S, Background
from phasetrace.supervise.folder import Folder
from phasetrace.supervise.options import RunOptions
from phasetrace.supervise.processes import is_alive

FINISH = "finish"  # a file by which the application says that it has done recording
FINISHED = "finished"  # and we, that all it recorded is in the trace
LOG = "follow.log"
LOOK_S = TURN_S / 10


def detach() -> None:
    """Leave the application's process tree, session and folder."""
    if os.fork():
        os._exit(0)
    os.setsid()
    for number in (
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGTERM,
    ):  # a service manager's are for the application
        signal.signal(number, signal.SIG_IGN)


def follow(folder: Folder, options: RunOptions, pid: int, start: int) -> None:
    """Drain until process `pid` has ended or says so."""
    folder.leave_note(options.output, os.getpid())
    background = Background(folder, options)
    background.start()
    while is_alive(pid, start) and not (folder.base / FINISH).exists():
        time.sleep(LOOK_S)
    background.finish(left_off=pid)
    background.caught_up.wait()
    (folder.base / FINISHED).touch()
    background.join()
    if background.error:
        traceback.print_exception(background.error)
    elif background.written.failure:
        print(f"phasetrace: {background.written.failure}", file=sys.stderr)
    elif not background.still_running:
        folder.remove()


def main(
    base: str, output: str, detail: str, pid: str, start: str, max_size: str, otlp: str | None = None
) -> None:
    """Called with what `instrument` was asked for."""
    detach()
    most = int(max_size) if max_size else None
    options = RunOptions(output=Path(output), otlp=otlp, detail=detail, max_size=most)
    follow(Folder(Path(base)), options, int(pid), int(start))
