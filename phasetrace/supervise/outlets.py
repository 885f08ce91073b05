"""Where a recording goes: its trace file, a place of refuge when that fails, an endpoint if asked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from phasetrace.emit import scrape
from phasetrace.emit.endpoint import Delivery, Endpoint
from phasetrace.emit.trace_file import TraceFile
from phasetrace.errors import UsageError
from phasetrace.model import Recording


class Outlet(Protocol):
    """Takes recordings as they come, each a part of the whole."""

    def write(self, recording: Recording) -> None:
        """Take one part."""


@dataclass(frozen=True, slots=True)
class Written:
    """How the writing went."""

    failure: str | None = None  # why the trace is not whole
    rest_failure: str | None = None  # why not even the rest could be kept
    endpoint_failure: str | None = None  # why nothing could be sent
    page_failure: str | None = None  # why no metrics could be scraped
    delivery: Delivery | None = None  # to the endpoint, if there was one


class Watcher(Protocol):
    """Shows what happens while it happens; of less worth than the trace."""

    def record(self, recording: Recording) -> None:
        """Take one part."""

    def close(self) -> None:
        """Nothing more comes."""


class Outlets:
    """Writes each part to the trace, or once that failed to `rest`; sends it to the endpoint, shows it."""

    def __init__(
        self,
        output: Path,
        rest: Path,
        otlp: str | None,
        detail: str,
        metrics: str | None = None,
        live: Watcher | None = None,
    ) -> None:
        self._output = output
        self._rest = rest
        self._detail = detail
        self._watchers: list[Watcher] = [live] if live is not None else []
        self._page_failure: str | None = None
        try:
            if (where := scrape.address(metrics)) is not None:
                self._watchers.append(scrape.Scrape(where))
        except (OSError, UsageError) as error:
            self._page_failure = f"no metrics are served: {error}"
        self._endpoint: Endpoint | None = None
        self._endpoint_failure: str | None = None
        try:
            self._endpoint = Endpoint.from_environment(otlp, detail)
        except Exception as error:  # a certificate that is not there, for one: the file will have everything
            self._endpoint_failure = f"nothing is sent to the endpoint: {error}"
        self._file: TraceFile | None = None
        self._failure: str | None = None
        self._rest_failure: str | None = None
        try:
            self._file = TraceFile(output, detail=detail)
        except OSError as error:
            self._take_refuge(error)

    def write(self, recording: Recording) -> None:
        """Write one part, wherever that is possible."""
        if self._file is not None:
            try:
                self._file.write(recording)
            except OSError as error:
                self._take_refuge(error)
                self._write_rest(recording)
        self._flee_if_deleted()
        if self._endpoint is not None:
            self._endpoint.send(recording)
        for watcher in list(self._watchers):
            try:
                watcher.record(recording)
            except Exception as error:  # whatever a view does, the trace goes on
                self._page_failure = f"the live numbers ended: {type(error).__name__}"
                self._watchers.remove(watcher)

    def close(self) -> Written:
        """Finish the files and the deliveries."""
        self._flee_if_deleted()
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._failure = self._failure or f"cannot write {self._output}: {error.strerror}"
        delivery = self._endpoint.close() if self._endpoint is not None else None
        for watcher in self._watchers:
            with suppress(Exception):
                watcher.close()
        return Written(
            self._failure, self._rest_failure, self._endpoint_failure, self._page_failure, delivery
        )

    def _flee_if_deleted(self) -> None:
        """What is in a deleted file is lost once we close it: take it along."""
        if self._file is None or not self._file.is_deleted:
            return
        self._failure = self._failure or f"{self._output} was deleted while the command ran"
        try:
            self._file.continue_in(self._rest)
        except OSError as further:
            self._rest_failure = f"cannot write {self._rest}: {further.strerror}"

    def _take_refuge(self, error: OSError) -> None:
        self._failure = f"cannot write {self._output}: {error.strerror}"
        try:
            self._file = TraceFile(self._rest, detail=self._detail)
        except OSError as further:
            self._file = None
            self._rest_failure = f"cannot write {self._rest}: {further.strerror}"

    def _write_rest(self, recording: Recording) -> None:
        try:
            if self._file is not None:
                self._file.write(recording)
        except OSError as further:
            self._file = None
            self._rest_failure = f"cannot write {self._rest}: {further.strerror}"
