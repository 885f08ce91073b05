"""The official OTLP exporters, made as the environment and the user say.

They know OTEL_EXPORTER_OTLP_* (headers, TLS, compression, timeout) and retry by themselves. Two things they
do not tell are learned here: how many spans a receiver rejected of a request it accepted, and why one failed.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from phasetrace.emit import address

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace.export import SpanExporter

Rejected = Callable[[int, str], None]  # spans that a receiver did not take, and what it said
_LONGEST = 160  # characters of an error that is told
_GAVE_UP = "due to timeout, max retries or shutdown"
_CAUSES = "Connection refused|Name or service not known|timed out|certificate verify failed"


def metrics_exporters() -> set[str]:
    """What the environment wants metrics to be exported with; OTLP unless it says otherwise."""
    names = os.environ.get("OTEL_METRICS_EXPORTER", "").strip().lower() or "otlp"
    return {name.strip() for name in names.split(",")}


def wants_metrics() -> bool:
    """Whether the user left metrics on for the OTLP endpoint."""
    return "otlp" in metrics_exporters()


def span_exporter(url: str | None, rejected: Rejected) -> SpanExporter:
    """An exporter to `url`, or to where the environment says.

    Raises:
        UsageError: the address or the protocol cannot be used.
    """
    if address.protocol(url, "TRACES") == address.GRPC:
        return _grpc_span_exporter(address.grpc_address(url), rejected)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=address.http_address(url, "traces"), session=_session(rejected))


def metric_exporter(url: str | None) -> MetricExporter:
    """The same for metrics."""
    if address.protocol(url, "METRICS") == address.GRPC:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as Grpc

        return Grpc(**address.grpc_address(url))
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as Http

    return Http(endpoint=address.http_address(url, "metrics"), session=_session(None))


def _session(rejected: Rejected | None) -> Any:
    """A session that looks into the answers, which the exporter does not."""
    import requests
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    def look(response: requests.Response, *_: object, **__: object) -> None:
        if rejected is not None and response.ok and response.content:
            try:
                answer = ExportTraceServiceResponse.FromString(response.content)
            except Exception:  # an answer in another encoding tells of no rejection that we could count
                return
            if answer.partial_success.rejected_spans:
                rejected(answer.partial_success.rejected_spans, answer.partial_success.error_message)

    class Session(requests.Session):
        """Lets OTEL_EXPORTER_OTLP_CERTIFICATE count although REQUESTS_CA_BUNDLE is set (requests #3829)."""

        def merge_environment_settings(
            self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
        ) -> Any:
            chosen = self.verify if verify is None and self.verify is not True else verify
            return super().merge_environment_settings(url, proxies, stream, chosen, cert)

    session = Session()
    if rejected is not None:
        session.hooks["response"].append(look)
    return session


def _grpc_span_exporter(where: dict[str, Any], rejected: Rejected) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    class Looking(OTLPSpanExporter):
        """Looks into the answers; the exporter makes its client anew when a connection breaks."""

        def _initialize_channel_and_stub(self) -> None:
            super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
            if self._client is not None:
                self._client = _LookingClient(self._client, rejected)

    return Looking(**where)


class _LookingClient:
    def __init__(self, client: Any, rejected: Rejected) -> None:
        self._inner = client
        self._rejected = rejected

    def Export(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - the name is the protocol's
        answer = self._inner.Export(*args, **kwargs)
        if answer.partial_success.rejected_spans:
            self._rejected(answer.partial_success.rejected_spans, answer.partial_success.error_message)
        return answer


class Listening(logging.Filter):
    """Keeps what the exporters log in one thread from the terminal, and remembers the last of it."""

    def __init__(self) -> None:
        super().__init__()
        self.last: str | None = None
        self._thread: int | None = None
        self._loggers: list[logging.Logger] = []

    def start(self) -> None:
        """Begin, in the thread that exports."""
        self._thread = threading.get_ident()
        names = [name for name in logging.root.manager.loggerDict if name.startswith("opentelemetry.")]
        self._loggers = [logging.getLogger(name) for name in names]
        for logger in self._loggers:
            logger.addFilter(self)

    def stop(self) -> None:
        """Leave the loggers as they were."""
        for logger in self._loggers:
            logger.removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is for others."""
        if record.thread != self._thread:
            return True
        message = record.getMessage()
        if self.last is None or _GAVE_UP not in message:  # why the last attempt failed was said before
            self.last = brief(message)
        return False


def brief(message: str) -> str:
    """What a person needs of an exporter's message: its cause, where that is told, else its beginning."""
    caused = re.search(_CAUSES, message)
    if caused:
        return caused[0].lower()
    line = message.partition("\n")[0]
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
