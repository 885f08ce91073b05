"""Sends a run's metrics to an OTLP endpoint now and then."""

from __future__ import annotations

import os
import time

from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExporter

from phasetrace.emit.meters import Meters
from phasetrace.model import Recording


class Metrics:
    """Collects a recording's parts into metrics and sends these now and then."""

    def __init__(self, exporter: MetricExporter) -> None:
        self._exporter = exporter
        self._reader = InMemoryMetricReader(
            exporter._preferred_temporality,  # what OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE says
            exporter._preferred_aggregation,
        )
        self._meters = Meters(self._reader)
        self._interval = _interval()
        self._next = time.monotonic() + self._interval

    def record(self, recording: Recording) -> None:
        """Count one part of a recording."""
        self._meters.record(recording)

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
        self._meters.close()
        self._exporter.shutdown()


def _interval() -> float:
    try:
        return max(0.1, float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "60000")) / 1000)
    except ValueError:
        return 60.0
