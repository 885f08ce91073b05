"""What the dashboards are made of: names as Prometheus has them, queries, panels."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import common, prometheus, stat, tempo, timeseries
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, Panel, QueryVariable
from grafana_foundation_sdk.models.common import (
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
)
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef, DynamicConfigValue

from phasetrace.render.colors import LOOKS
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Metric

PROMETHEUS = DataSourceRef(type_val="prometheus", uid="${prometheus}")
TEMPO = DataSourceRef(type_val="tempo", uid="${tempo}")
WINDOW = "[$__rate_interval]"
QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
TTFT_MEANING = "Frontend, queue and prefill: what somebody waits before anything is to be seen."
Query = tuple[str, str]  # PromQL, legend


def label(attribute: A) -> str:
    """An attribute's name as a label of Prometheus."""
    return attribute.replace(".", "_")


def each(name: str) -> str:
    """A legend: the value of a label."""
    return f"{{{{{name}}}}}"


def where(*matches: str) -> str:
    """A selector."""
    return f"{{{', '.join(matches)}}}"


def rate(counter: str, which: str, by: str = "") -> str:
    """How much a counter grows a second, summed or by a label."""
    return f"sum {f'by ({by}) ' if by else ''}(rate({counter}{which}{WINDOW}))"


def rate_or_zero(counter: str, which: str, by: str = "") -> str:
    """The same; a counter that nothing has counted yet is not there, and means zero."""
    return f"{rate(counter, which, by)} or vector(0)"


def quantile(q: float, histogram: str, which: str, by: str = "") -> str:
    """A quantile of a histogram over the window."""
    return f"histogram_quantile({q}, {rate(f'{histogram}_bucket', which, f'le, {by}' if by else 'le')})"


def quantiles(histogram: str, which: str) -> list[Query]:
    """The middle and the tail."""
    return [(quantile(q, histogram, which), name) for name, q in QUANTILES]


def lines(title: str, unit: str, meaning: str, queries: Sequence[Query]) -> timeseries.Panel:
    """Values over time."""
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True)
    panel = timeseries.Panel().title(title).description(meaning).datasource(PROMETHEUS).unit(unit).min(0)
    panel.height(8).span(8).fill_opacity(8).line_width(1).legend(legend.placement(LegendPlacement.BOTTOM))
    for query, name in queries:
        panel.with_target(prometheus.Dataquery().expr(query).legend_format(name))
    return panel


def stack(title: str, meaning: str, query: Query) -> timeseries.Panel:
    """Shares of one whole over time."""
    panel = lines(title, "percentunit", meaning, [query]).fill_opacity(70)
    return panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL))


def share(title: str, meaning: str, query: Query) -> timeseries.Panel:
    """One value from 0 to 1 over time."""
    return lines(title, "percentunit", meaning, [query]).max(1)


def number(title: str, unit: str, meaning: str, query: str) -> stat.Panel:
    """The value of now, large."""
    panel = stat.Panel().title(title).description(meaning).datasource(PROMETHEUS).unit(unit)
    panel.height(4).span(4).graph_mode(BigValueGraphMode.AREA)
    return panel.with_target(prometheus.Dataquery().expr(query))


def in_phase_colors(panel: timeseries.Panel) -> timeseries.Panel:
    """The phases in the colours that they have everywhere."""
    for phase, look in LOOKS.items():
        color = DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": look.hex})
        panel.override_by_name(phase.value, [color])
    return panel


def queue_reasons(which: str) -> timeseries.Panel:
    """Why requests are not scheduled."""
    reason = label(A.WAIT_REASON)
    meaning = (
        "Seconds a second in which the head of the queue waited. slots: as many sequences run as may; "
        "kv: no free KV blocks; budget: the tokens of a step are used up."
    )
    query = rate_or_zero(Metric.QUEUE_BLOCKED.prometheus, which, reason)
    return stack("Why the queue waits", meaning, (query, each(reason)))


def traces(title: str, meaning: str, query: str) -> Panel:
    """A table of traces; a click opens one."""
    target = tempo.TempoQuery().query_type("traceql").query(query).limit(20).datasource(TEMPO)
    panel = Panel().type("table").title(title).description(meaning).datasource(TEMPO)
    return panel.height(9).span(12).with_target(target)


def empty(title: str, uid: str, meaning: str) -> Dashboard:
    """A dashboard without panels."""
    source = DatasourceVariable("prometheus").label("Prometheus").type("prometheus")
    made = Dashboard(title).uid(uid).description(meaning).tags(["phasetrace", "llm"]).editable()
    made.tooltip(DashboardCursorSync.CROSSHAIR).refresh("10s").time("now-30m", "now")
    return made.with_variable(source)


def variable(name: str, shown: str, query: str) -> QueryVariable:
    """A choice among the values of a label, all at first."""
    made = QueryVariable(name).label(shown).query({"query": query, "refId": name}).datasource(PROMETHEUS)
    current = {"selected": True, "text": "All", "value": "$__all"}
    return made.multi(True).include_all(True).all_value(".*").current(current).refresh(2)
