"""Sends spans and metrics to an OTLP endpoint while a run goes on, without ever holding it up."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrace.emit.exporters import (
    Listening,
    is_configured,
    metric_exporter,
    span_exporter,
    wants_metrics,
)
from phasetrace.mapping import Detail, ResourceSpans, SpanMaker
from phasetrace.model import Recording, Stall

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

    from phasetrace.emit.metrics import Metrics

WAITING = 65_536  # spans that may wait for a slow endpoint; about 100 MB of them as requests
PATIENCE_S = 5.0  # how long `close` waits for what is on its way
_GIVING_UP_S = 1.0  # and then for the exporter to notice
_BATCH_SPANS = 512
_VALUE = 32  # bytes, about
_BATCH_VALUES = (
    65_536  # attribute values in a request: keeps it well under the 4 MiB that gRPC receivers accept
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the spans. One whose answer did not come in time counts as undelivered."""

    delivered: int
    undelivered: int
    error: str | None = None


@dataclass(slots=True)
class _Part:
    """What one `send` brought."""

    groups: list[ResourceSpans]
    recording: Recording


class Endpoint:
    """An OTLP endpoint and the one thread that talks to it.

    When it is down or slow, spans wait, up to WAITING of them; further ones count as undelivered at once.
    A recording that is whole has room for all: its spans are in memory anyway.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        detail: Detail | str = Detail.AUTO,
        url: str | None = None,
        whole: bool = False,
    ) -> None:
        self._whole = whole
        self._exporter = exporter
        self._url = url
        self._spans = SpanMaker(Detail(detail), for_file=False)
        self._queue: queue.SimpleQueue[_Part | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._total = self._delivered = self._waiting = 0
        self._rejected = 0  # of the batch on its way
        self._error: str | None = None
        self._gave_up = False
        self._down = False  # the last batch failed
        self._listening = Listening()
        self._metrics: Metrics | None = None
        self._thread = threading.Thread(target=self._work, name="phasetrace-otlp", daemon=True)
        self._thread.start()

    @classmethod
    def from_environment(
        cls, url: str | None = None, detail: Detail | str = Detail.AUTO, whole: bool = False
    ) -> Endpoint | None:
        """An endpoint at `url`, else where OTEL_EXPORTER_OTLP_* says; None where neither names one.

        Raises:
            UsageError: the address or the protocol cannot be used.
        """
        if url is None and not is_configured():
            return None
        refusals = _Refusals()
        endpoint = cls(span_exporter(url, refusals), detail, url, whole)
        refusals.endpoint = endpoint
        return endpoint

    def send(self, recording: Recording, stalls: Iterable[Stall] = ()) -> None:
        """Hand over a part of the recording; returns at once. `stalls` explain some of its tokens."""
        groups = list(self._spans.spans(recording, stalls))
        spans = sum(map(len, groups))
        with self._lock:
            self._total += spans
            if self._waiting + spans > WAITING and not self._whole:
                self._error = self._error or "the endpoint is too slow"
                return
            self._waiting += spans
        self._queue.put(_Part(groups, recording))

    def close(self, patience_s: float = PATIENCE_S) -> Delivery:
        """Wait a little for what is on its way, then say what became of it all."""
        self._queue.put(None)
        self._thread.join(patience_s)
        if self._thread.is_alive():
            self._error = self._error or self._listening.last or "no answer in time"
            self._gave_up = True
            with suppress(Exception):
                self._exporter.shutdown()  # ends the wait between two attempts
            self._thread.join(_GIVING_UP_S)
        with self._lock:
            undelivered = self._total - self._delivered
            return Delivery(self._delivered, undelivered, self._error if undelivered else None)

    def count_rejected(self, spans: int, message: str) -> None:
        """The receiver took the request and not all of its spans."""
        self._rejected += spans
        self._error = message or "the endpoint rejected some spans"

    # ---- in the thread ----

    def _work(self) -> None:
        self._listening.start()
        try:
            while (part := self._queue.get()) is not None and not self._gave_up:
                self._deliver(part)
            if not self._gave_up:
                if not self._down:
                    self._finish_metrics()
                self._exporter.shutdown()
        finally:
            self._listening.stop()

    def _deliver(self, part: _Part) -> None:
        from phasetrace.emit.sdk_spans import to_sdk_spans

        for group in part.groups:
            for batch in _batches(to_sdk_spans(group)):
                if not self._gave_up:
                    self._export(batch)
        self._record(part)

    def _export(self, batch: list[ReadableSpan]) -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        self._rejected = 0
        try:
            taken = self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception as error:  # whatever an exporter does, the run goes on
            taken = False
            self._error = type(error).__name__
        with self._lock:
            self._waiting -= len(batch)
            self._down = not taken
            if taken:
                self._delivered += len(batch) - min(self._rejected, len(batch))
            elif not self._gave_up:
                self._error = self._listening.last or self._error or "the endpoint did not take them"

    def _record(self, part: _Part) -> None:
        """Metrics are worth less than spans: what goes wrong with them is not told."""
        with suppress(Exception):
            if self._metrics is None and wants_metrics():
                from phasetrace.emit.metrics import Metrics

                self._metrics = Metrics(metric_exporter(self._url))
                self._listening.stop()
                self._listening.start()  # on the loggers of what was just imported, too
            if self._metrics is not None:
                self._metrics.record(part.recording)
                if not self._down:
                    self._metrics.export_if_due()

    def _finish_metrics(self) -> None:
        with suppress(Exception):
            if self._metrics is not None:
                last = self._listening.last
                self._metrics.export()
                self._metrics.close()
                self._listening.last = last


class _Refusals:
    """Passes on what a receiver rejected, to an endpoint that is made after its exporter."""

    endpoint: Endpoint | None = None

    def __call__(self, spans: int, message: str) -> None:
        if self.endpoint is not None:
            self.endpoint.count_rejected(spans, message)


def _weight(value: object) -> int:
    """How many values an attribute is worth: names in a trace may be of any length."""
    if isinstance(value, (tuple, list)):
        return len(value)
    return 1 + len(value) // _VALUE if isinstance(value, str) else 1


def _batches(spans: Iterable[ReadableSpan]) -> Iterator[list[ReadableSpan]]:
    batch: list[ReadableSpan] = []
    values = 0
    for span in spans:
        batch.append(span)
        values += len(span.name) // _VALUE + sum(map(_weight, (span.attributes or {}).values()))
        if len(batch) >= _BATCH_SPANS or values >= _BATCH_VALUES:
            yield batch
            batch, values = [], 0
    if batch:
        yield batch
