"""The trace of a run: a file that is begun with the first part, and a place of refuge when that fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from phasetrace.emit.trace_file import TraceFile
from phasetrace.model import Recording


class Trace:
    """Writes each part to `output`, or once that failed to `rest`.

    An earlier trace at `output` is moved aside by the first part: a run that records nothing leaves it there.

    Args:
        output: where the trace goes.
        rest: where what cannot be written there goes.
        detail: how many spans a request gets.
        begun: told each time that `output` is a file of this run, before anything is in it.
        max_size: about how long the trace may become; what is older is dropped.
    """

    def __init__(
        self,
        output: Path,
        rest: Path,
        detail: str,
        begun: Callable[[], None] = lambda: None,
        max_size: int | None = None,
    ) -> None:
        self._output = output
        self._rest = rest
        self._detail = detail
        self._begun = begun
        self._max_size = max_size
        self._file: TraceFile | None = None
        self.failure: str | None = None  # why the trace is not whole
        self.rest_failure: str | None = None  # why not even the rest could be kept

    @property
    def is_begun(self) -> bool:
        """Whether anything was there to write."""
        return self._file is not None or self.failure is not None

    @property
    def dropped(self) -> int:
        """Bytes of the run that were dropped because they are older than what may be kept."""
        return self._file.dropped if self._file is not None else 0

    def write(self, recording: Recording) -> None:
        """Write one part, wherever that is possible."""
        if self.rest_failure is None:
            try:
                self._open().write(recording)
            except OSError as error:
                self._take_refuge(error, recording)
        self._flee_if_deleted()

    def close(self) -> None:
        """Finish the file."""
        self._flee_if_deleted()
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self.failure = self.failure or f"cannot write {self._output}: {error.strerror}"

    def _open(self) -> TraceFile:
        if self._file is None:
            self._file = TraceFile(self._output, self._detail, self._max_size, self._begun)
        return self._file

    def _take_refuge(self, error: OSError, recording: Recording) -> None:
        if self.failure is not None:  # it is in the rest already
            self._give_up(error)
            return
        self._let_go()
        self.failure = f"cannot write {self._output}: {error.strerror}"
        try:
            self._file = TraceFile(self._rest, self._detail, self._max_size)
            self._file.write(recording)
        except OSError as further:
            self._give_up(further)

    def _flee_if_deleted(self) -> None:
        """What is in a deleted file is lost once we close it: take it along."""
        if self._file is None or not self._file.is_deleted:
            return
        self.failure = self.failure or f"{self._output} was deleted while the command ran"
        try:
            self._file.continue_in(self._rest)
        except OSError as further:
            self._give_up(further)

    def _give_up(self, error: OSError) -> None:
        self._let_go()
        self.rest_failure = f"cannot write {self._rest}: {error.strerror}"

    def _let_go(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
