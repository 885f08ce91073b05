"""The instruments of `semconv.Metric`, in a meter provider of our own: the global one is not ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

from phasetrace import __version__
from phasetrace.emit.sdk_spans import to_resource
from phasetrace.emit.text import brief
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Metric, MetricKind, Scope

Labels = dict[str, str]
Observe = Callable[[CallbackOptions], Iterable[Observation]]


class Instruments:
    """One instrument a metric, read by `reader`; gauges ask `gauges` for what they show."""

    def __init__(self, reader: MetricReader, service: str, gauges: dict[Metric, Observe]) -> None:
        views = [
            View(instrument_name=m.value, aggregation=ExplicitBucketHistogramAggregation(m.bounds))
            for m in Metric
            if m.bounds
        ]
        resource = to_resource({A.SERVICE_NAME: service})
        self._provider = MeterProvider([reader], resource=resource, views=views, shutdown_on_exit=False)
        meter = self._provider.get_meter(Scope.ALL.value, __version__)
        self._histograms = {
            m: meter.create_histogram(m.value, unit=m.unit, description=m.meaning)
            for m in Metric
            if m.kind is MetricKind.HISTOGRAM
        }
        self._counters = {
            m: meter.create_counter(m.value, unit=m.unit, description=m.meaning)
            for m in Metric
            if m.kind is MetricKind.COUNTER
        }
        for m, observe in gauges.items():
            meter.create_observable_gauge(m.value, [observe], unit=m.unit, description=m.meaning)

    def add(self, metric: Metric, value: float, labels: Labels) -> None:
        """Take one value into a histogram or a counter."""
        labels = {key: brief(label) for key, label in labels.items()}
        if metric.kind is MetricKind.HISTOGRAM:
            self._histograms[metric].record(value, labels)
        else:
            self._counters[metric].add(value, labels)

    def close(self) -> None:
        """Let go of the reader."""
        self._provider.shutdown()
