"""Sends spans and metrics to an OTLP endpoint while a run goes on, without ever holding it up."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrace.emit.address import is_configured
from phasetrace.emit.backlog import Backlog, Part, values
from phasetrace.emit.exporters import (
    Listening,
    brief,
    metric_exporter,
    span_exporter,
    wants_metrics,
)
from phasetrace.mapping import Detail, SpanMaker
from phasetrace.model import Recording, Stall

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

    from phasetrace.emit.metrics import Metrics

MOST_WAITING = 64 << 20  # bytes that may wait for a slow endpoint: as requests, some 50,000 spans
PATIENCE_S = 5.0  # how long `close` waits for what is on its way
_GIVING_UP_S = 1.0  # and then for the exporter to notice
_LOOK_S = 1.0  # without spans, how often it is asked whether metrics are due
_BATCH_SPANS = 512
_BATCH_VALUES = (
    65_536  # attribute values in a request: keeps it well under the 4 MiB that gRPC receivers accept
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the spans. One whose answer did not come in time counts as undelivered."""

    delivered: int
    undelivered: int
    error: str | None = None


class Endpoint:
    """An OTLP endpoint and the one thread that talks to it.

    When it is down or slow, spans wait, up to MOST_WAITING bytes of them; beyond that the oldest are dropped
    and count as undelivered. A recording that is `whole` has room for all: its spans are in memory anyway.
    Metrics need not wait: each part is counted at once.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        detail: Detail | str = Detail.AUTO,
        metrics: Metrics | None = None,
        whole: bool = False,
    ) -> None:
        self._exporter = exporter
        self._metrics = metrics
        self._spans = SpanMaker(Detail(detail), for_file=False)
        self._backlog = Backlog(None if whole else MOST_WAITING)
        self._lock = threading.Lock()
        self._total = self._delivered = 0
        self._rejected = 0  # of the batch on its way
        self._error: str | None = None
        self._gave_up = False
        self._down = False  # the last batch failed
        self._listening = Listening()
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
        endpoint = cls(span_exporter(url, refusals), detail, _metrics(url), whole)
        refusals.endpoint = endpoint
        return endpoint

    def send(self, recording: Recording, stalls: Iterable[Stall] = ()) -> None:
        """Hand over a part of the recording; returns at once. `stalls` explain some of its tokens."""
        part = Part(list(self._spans.spans(recording, stalls)))
        with suppress(Exception):  # metrics are worth less than spans: what goes wrong with them is not told
            if self._metrics is not None:
                self._metrics.record(recording)
        if len(part):
            dropped = self._backlog.put(part)
            with self._lock:
                self._total += len(part)
                if dropped:
                    self._error = self._error or "the endpoint is too slow"

    def close(self, patience_s: float = PATIENCE_S) -> Delivery:
        """Wait a little for what is on its way, then say what became of it all."""
        self._backlog.end()
        self._thread.join(patience_s)
        if self._thread.is_alive():
            self._error = self._listening.last or self._error or "no answer in time"
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
        self._error = brief(message) or "the endpoint rejected some spans"

    # ---- in the thread ----

    def _work(self) -> None:
        self._listening.start()
        try:
            while (part := self._backlog.take(_LOOK_S)) is not None and not self._gave_up:
                self._deliver(part)
            if not self._gave_up:
                self._send_metrics(at_last=True)
                self._exporter.shutdown()
        finally:
            self._listening.stop()

    def _deliver(self, part: Part) -> None:
        from phasetrace.emit.sdk_spans import to_sdk_spans

        for group in part.groups:
            for batch in _batches(to_sdk_spans(group)):
                if not self._gave_up:
                    self._export(batch)
        self._send_metrics()

    def _export(self, batch: list[ReadableSpan]) -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        self._rejected = 0
        try:
            taken = self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception as error:  # whatever an exporter does, the run goes on
            taken = False
            self._error = type(error).__name__
        with self._lock:
            self._down = not taken
            if taken:
                self._delivered += len(batch) - min(self._rejected, len(batch))
            elif not self._gave_up:
                self._error = self._listening.last or self._error or "the endpoint did not take them"

    def _send_metrics(self, at_last: bool = False) -> None:
        last = self._listening.last  # what is told at the end is why spans did not arrive
        with suppress(Exception):
            if self._metrics is not None and not self._down:
                if at_last:
                    self._metrics.export()
                    self._metrics.close()
                else:
                    self._metrics.export_if_due()
        self._listening.last = last


class _Refusals:
    """Passes on what a receiver rejected, to an endpoint that is made after its exporter."""

    endpoint: Endpoint | None = None

    def __call__(self, spans: int, message: str) -> None:
        if self.endpoint is not None:
            self.endpoint.count_rejected(spans, message)


def _metrics(url: str | None) -> Metrics | None:
    """Whatever keeps metrics from being sent, spans are."""
    with suppress(Exception):
        if wants_metrics():
            from phasetrace.emit.metrics import Metrics

            return Metrics(metric_exporter(url))
    return None


def _batches(spans: Iterable[ReadableSpan]) -> Iterator[list[ReadableSpan]]:
    batch: list[ReadableSpan] = []
    held = 0
    for span in spans:
        batch.append(span)
        held += values(span.name, span.attributes)
        if len(batch) >= _BATCH_SPANS or held >= _BATCH_VALUES:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
