"""The run's metrics as a page for Prometheus: `--metrics`, or OTEL_METRICS_EXPORTER=prometheus."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrace.emit.exporters import metrics_exporters
from phasetrace.errors import UsageError

if TYPE_CHECKING:
    from phasetrace.model import Recording

HOST, PORT = "localhost", 9464  # the specification's


@dataclass(frozen=True, slots=True)
class Address:
    """Where the page is served."""

    host: str
    port: int


def address(asked: str | None) -> Address | None:
    """What `[HOST:]PORT` says, else what the environment says; None where neither asks for a page.

    Raises:
        UsageError: it is no address.
    """
    if asked is None and "prometheus" not in metrics_exporters():
        return None
    host = os.environ.get("OTEL_EXPORTER_PROMETHEUS_HOST") or HOST
    port = os.environ.get("OTEL_EXPORTER_PROMETHEUS_PORT") or str(PORT)
    if asked is not None:
        before, _, port = asked.rpartition(":")
        host = before.strip("[]") or host
    if not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"{asked or port} is no address for metrics; give [HOST:]PORT, like 9464")
    return Address(host, int(port))


class Scrape:
    """Serves what the parts of a recording add up to, from a thread of its own until closed."""

    def __init__(self, where: Address) -> None:
        """Begin to serve.

        Raises:
            OSError: the address cannot be had.
        """
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from prometheus_client import CollectorRegistry, start_http_server

        from phasetrace.emit.meters import Meters

        registry = CollectorRegistry()  # the global one is the application's
        self._server, self._thread = start_http_server(where.port, where.host, registry)
        self._meters = Meters(PrometheusMetricReader(scope_info_enabled=False, registry=registry))

    @property
    def port(self) -> int:
        """The port that it serves at, where any free one was asked for."""
        return int(self._server.server_port)

    def record(self, recording: Recording) -> None:
        """Count one part of a recording."""
        self._meters.record(recording)

    def close(self) -> None:
        """End the page."""
        self._meters.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(1.0)
