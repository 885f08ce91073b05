"""The GenAI conventions' server histograms, in a meter provider of our own: the global one is not ours."""

from __future__ import annotations

import os
import time

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExporter
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

from phasetrace import __version__
from phasetrace.emit.sdk_spans import to_resource
from phasetrace.mapping import Attributes
from phasetrace.model import Request, RequestStatus
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Metric, Scope

_NS = 1e9


class Metrics:
    """Collects requests into histograms and sends these now and then."""

    def __init__(self, exporter: MetricExporter, resource: Attributes) -> None:
        self._exporter = exporter
        self._reader = InMemoryMetricReader(
            exporter._preferred_temporality,  # what OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE says
            exporter._preferred_aggregation,
        )
        views = [
            View(instrument_name=m.value, aggregation=ExplicitBucketHistogramAggregation(m.bounds))
            for m in Metric
        ]
        self._provider = MeterProvider(
            [self._reader], resource=to_resource(resource), views=views, shutdown_on_exit=False
        )
        meter = self._provider.get_meter(Scope.ALL.value, __version__)
        self._histograms = {
            m: meter.create_histogram(m.value, unit=m.unit, description=m.meaning) for m in Metric
        }
        self._interval = _interval()
        self._next = time.monotonic() + self._interval

    def record(self, request: Request, model: str | None) -> None:
        """Count a request that has ended; one that was only cut off has no duration."""
        if request.finished_ns is None or request.status is RequestStatus.CUT_OFF:
            return
        attributes = {A.OPERATION.value: request.operation, A.PROVIDER.value: request.engine}
        if model is not None:
            attributes[A.REQUEST_MODEL.value] = model
        duration = request.finished_ns - request.arrival_ns
        failed = {A.ERROR_TYPE.value: request.error_type or "_OTHER"} if _has_failed(request) else {}
        self._histograms[Metric.DURATION].record(duration / _NS, attributes | failed)
        if request.first_token_ns is None:
            return
        ttft = request.first_token_ns - request.arrival_ns
        self._histograms[Metric.TTFT].record(ttft / _NS, attributes)
        if request.longest_output is not None and request.longest_output > 1:
            per_token = (duration - ttft) / (request.longest_output - 1)
            self._histograms[Metric.TPOT].record(per_token / _NS, attributes)

    def export_if_due(self) -> None:
        """Send what was collected, once every OTEL_METRIC_EXPORT_INTERVAL."""
        if time.monotonic() >= self._next:
            self.export()

    def export(self) -> None:
        """Send what was collected."""
        self._next = time.monotonic() + self._interval
        data = self._reader.get_metrics_data()
        if data is not None:
            self._exporter.export(data)

    def close(self) -> None:
        """Let go of the connection."""
        self._provider.shutdown()
        self._exporter.shutdown()


def _has_failed(request: Request) -> bool:
    return request.status is RequestStatus.FAILED


def _interval() -> float:
    try:
        return max(0.1, float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "60000")) / 1000)
    except ValueError:
        return 60.0
