"""Slow requests by phase, and one of them whole, from Tempo."""

from __future__ import annotations

from grafana_foundation_sdk.builders import tempo
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, Panel, TextBoxVariable

from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName
from scripts.dashboards.panels import TEMPO, empty, traces

LONG = {SpanName.QUEUE: "500ms", SpanName.PREFILL: "500ms", SpanName.DECODE: "5s", SpanName.PREEMPTED: "1ms"}


def trace() -> Dashboard:
    """The dashboard."""
    made = empty("phasetrace: one trace", "phasetrace-trace", "Slow requests by phase; one of them whole.")
    made.with_variable(DatasourceVariable("tempo").label("Tempo").type("tempo"))
    made.with_variable(TextBoxVariable("trace").label("Trace id").default_value(""))
    made.with_panel(whole())
    for span, least in LONG.items():
        query = f'{{ name = "{span}" && duration > {least} }}'
        made.with_panel(traces(f"Long {span}", f"{span.meaning}: over {least}.", query))
    failed = f'{{ status = error && span."{A.OPERATION}" != nil }}'
    late = f'{{ span."{A.LATENCY_TTFT}" > 0.5 }}'
    made.with_panel(traces("Failed", "Requests that failed.", failed))
    made.with_panel(traces("Late first tokens", "TTFT over half a second.", late))
    return made


def whole() -> Panel:
    """One trace."""
    target = tempo.TempoQuery().query_type("traceql").query("$trace").datasource(TEMPO)
    panel = Panel().type("traces").title("Trace").description("A request: its phases, chunks and tokens.")
    return panel.datasource(TEMPO).height(16).span(24).with_target(target)
