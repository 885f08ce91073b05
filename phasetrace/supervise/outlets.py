"""Where a recording goes: its trace, an endpoint if asked, views."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from phasetrace.emit import scrape
from phasetrace.emit.endpoint import Delivery, Endpoint
from phasetrace.errors import UsageError
from phasetrace.model import Recording
from phasetrace.supervise.trace import Trace


class Outlet(Protocol):
    """Takes recordings as they come, each a part of the whole."""

    def write(self, recording: Recording) -> None:
        """Take one part."""


@dataclass(frozen=True, slots=True)
class Written:
    """How the writing went."""

    begun: bool = True  # there was something to write
    dropped: int = 0  # bytes that are older than what may be kept
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
    """Writes each part to the trace, sends it to the endpoint, shows it."""

    def __init__(
        self,
        trace: Trace,
        otlp: str | None,
        detail: str,
        metrics: str | None = None,
        live: Watcher | None = None,
    ) -> None:
        self._trace = trace
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

    def write(self, recording: Recording) -> None:
        """Take one part."""
        self._trace.write(recording)
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
        self._trace.close()
        delivery = self._endpoint.close() if self._endpoint is not None else None
        for watcher in self._watchers:
            with suppress(Exception):
                watcher.close()
        return Written(
            self._trace.is_begun,
            self._trace.dropped,
            self._trace.failure,
            self._trace.rest_failure,
            self._endpoint_failure,
            self._page_failure,
            delivery,
        )
