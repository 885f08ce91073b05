"""All engines together: what users feel, which phase owns it, and why."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Metric
from scripts.dashboards.panels import (
    TTFT_MEANING,
    each,
    empty,
    in_phase_colors,
    label,
    lines,
    number,
    quantile,
    quantiles,
    queue_reasons,
    rate,
    rate_or_zero,
    share,
    stack,
    variable,
    where,
)

MODEL, PHASE, KIND = label(A.REQUEST_MODEL), label(A.PHASE), label(A.TOKEN_KIND)
JOBS = 'job=~"$job"'
MODELS = f'{MODEL}=~"$model"'
REQUESTS = where(JOBS, MODELS)
DURATION, TTFT, TPOT = (m.prometheus for m in (Metric.DURATION, Metric.TTFT, Metric.TPOT))
ENDED = rate(f"{DURATION}_count", REQUESTS)


def fleet() -> Dashboard:
    """The dashboard."""
    made = empty("phasetrace: fleet", "phasetrace-fleet", "Where the time of LLM requests goes.")
    made.with_variable(variable("job", "Service", f"label_values({DURATION}_count, job)"))
    made.with_variable(variable("model", "Model", f"label_values({DURATION}_count{where(JOBS)}, {MODEL})"))
    felt(made)
    owners(made)
    reasons(made)
    return made


def felt(made: Dashboard) -> None:
    failed = rate_or_zero(f"{DURATION}_count", where(JOBS, MODELS, f'{label(A.ERROR_TYPE)}!=""'))
    made.with_row(Row("What users feel"))
    made.with_panel(number("TTFT, p95", "s", TTFT_MEANING, quantile(0.95, TTFT, REQUESTS)))
    made.with_panel(number("TPOT, p95", "s", Metric.TPOT.meaning, quantile(0.95, TPOT, REQUESTS)))
    made.with_panel(number("e2e, p95", "s", Metric.DURATION.meaning, quantile(0.95, DURATION, REQUESTS)))
    made.with_panel(number("Requests", "reqps", "Requests that ended, a second.", ENDED))
    made.with_panel(number("Tokens", "short", "Output tokens a second.", tokens("output")))
    made.with_panel(number("Failed", "percentunit", "Of the requests that ended.", f"({failed}) / {ENDED}"))


def owners(made: Dashboard) -> None:
    spent = f"{Metric.PHASE_DURATION.prometheus}_sum"
    of_all = f"{rate(spent, REQUESTS, PHASE)} / ignoring({PHASE}) group_left {rate(spent, REQUESTS)}"
    tail = quantile(0.95, Metric.PHASE_DURATION.prometheus, REQUESTS, PHASE)
    whole = "What 100 % of the requests' wall clock was. The phase that owns it is the one to change."
    other = "The tail of each phase: it often has another owner than the mean."
    made.with_row(Row("Which phase owns the time"))
    made.with_panel(in_phase_colors(stack("Where the time goes", whole, (of_all, each(PHASE))).span(16)))
    made.with_panel(in_phase_colors(lines("Phases, p95", "s", other, [(tail, each(PHASE))])))
    made.with_panel(lines("TTFT", "s", TTFT_MEANING, quantiles(TTFT, REQUESTS)))
    made.with_panel(lines("TPOT", "s", Metric.TPOT.meaning, quantiles(TPOT, REQUESTS)))
    made.with_panel(lines("e2e", "s", Metric.DURATION.meaning, quantiles(DURATION, REQUESTS)))


def reasons(made: Dashboard) -> None:
    jobs = where(JOBS)
    reused = f"({tokens('cached')} or vector(0)) / {tokens('prompt')}"
    evicted = rate_or_zero(Metric.PREEMPTIONS.prometheus, REQUESTS)
    made.with_row(Row("Why"))
    made.with_panel(queue_reasons(jobs))
    made.with_panel(
        share("KV cache", Metric.KV_USAGE.meaning, (f"{Metric.KV_USAGE.prometheus}{jobs}", each("job")))
    )
    made.with_panel(lines("Preemptions", "ops", Metric.PREEMPTIONS.meaning, [(evicted, "a second")]))
    made.with_panel(share("Prefix reuse", "Prompt tokens whose KV was there already.", (reused, "reused")))
    for title, metric in (("Running", Metric.RUNNING), ("Waiting", Metric.WAITING)):
        query = f"sum by (job) ({metric.prometheus}{jobs})"
        made.with_panel(lines(title, "short", metric.meaning, [(query, each("job"))]))


def tokens(kind: str) -> str:
    """Tokens of a kind a second."""
    return rate(Metric.TOKENS.prometheus, where(JOBS, MODELS, f'{KIND}="{kind}"'))
