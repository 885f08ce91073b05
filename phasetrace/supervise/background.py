"""The drain in a thread of its own, so that a slow disk never holds a signal back."""

from __future__ import annotations

import os
import threading
import time

from phasetrace.supervise.folder import Folder
from phasetrace.supervise.options import RunOptions

TURN_S = 0.2  # what is lost of the trace (not of the spool) when we are killed
FINISHING_TURN_S = 0.02
GRACE_S = 5.0  # for processes that outlive the command


class Background(threading.Thread):
    """Drains until told to finish, then gives what still runs its grace. Results hold once it has ended."""

    def __init__(self, folder: Folder, options: RunOptions) -> None:
        super().__init__(name="phasetrace-drain", daemon=True)
        self._folder = folder
        self._options = options
        self._finishing = threading.Event()
        self._hurrying = threading.Event()
        self._left_off: set[int] = set()
        self.caught_up = threading.Event()  # all that was recorded until `finish` is written
        self.still_running = 0
        self.error: BaseException | None = None

    def finish(self, left_off: int | None = None) -> None:
        """Write out the rest and end: the command has ended, or process `left_off` has stopped recording."""
        if left_off is not None:
            self._left_off.add(left_off)
        self._finishing.set()

    def hurry(self) -> None:
        """Do not wait for processes that outlive the command."""
        self._hurrying.set()

    def run(self) -> None:
        """Drain. An error ends the recording, never the command."""
        try:
            self._drain()
        except BaseException as error:
            self.error = error
        finally:
            self.caught_up.set()

    def _drain(self) -> None:
        from phasetrace.supervise.drain import Drain
        from phasetrace.supervise.live import Live
        from phasetrace.supervise.outlets import Outlets
        from phasetrace.supervise.trace import Trace

        options = self._options
        live = Live() if options.live else None
        trace = Trace(options.output, self._folder.rest, options.detail, self._begun, options.max_size)
        outlets = Outlets(trace, options.otlp, options.detail, options.metrics, live)
        drain = Drain(self._folder.spool, outlets, self._left_off)
        while not self._finishing.wait(TURN_S):
            drain.turn()
            if live is not None:
                live.draw(drain.under_way)
        drain.turn()
        self.caught_up.set()
        end = time.monotonic() + GRACE_S
        while drain.running and time.monotonic() < end and not self._hurrying.wait(FINISHING_TURN_S):
            drain.turn()
        drain.close()
        self.still_running = drain.running
        self.written = outlets.close()

    def _begun(self) -> None:
        self._folder.leave_note(self._options.output, os.getpid(), begun=True)
