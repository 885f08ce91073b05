"""One engine: its steps as phasetrace records them, then what vLLM says itself."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Metric
from scripts.dashboards.panels import (
    each,
    empty,
    label,
    lines,
    quantiles,
    queue_reasons,
    rate,
    rate_or_zero,
    share,
    stack,
    variable,
    where,
)

PROCESS = label(A.PROCESS_KEY)
JOBS = 'job=~"$job"'
ENGINE = where(JOBS, f'{PROCESS}=~"$engine"')
OF_VLLM = where('job=~"$vllm"')
STEP = Metric.STEP_DURATION.prometheus


def engine() -> Dashboard:
    """The dashboard."""
    meaning = "The steps of one engine, and what vLLM says itself."
    made = empty("phasetrace: one engine", "phasetrace-engine", meaning)
    made.with_variable(variable("job", "Service", f"label_values({STEP}_count, job)"))
    made.with_variable(variable("engine", "Engine", f"label_values({STEP}_count{where(JOBS)}, {PROCESS})"))
    made.with_variable(variable("vllm", "vLLM", "label_values(vllm:num_requests_running, job)"))
    steps(made)
    said_by_vllm(made)
    return made


def steps(made: Dashboard) -> None:
    kind = label(A.PAUSE_KIND)
    batch = [
        (f"{Metric.RUNNING.prometheus}{ENGINE}", "running"),
        (f"{Metric.WAITING.prometheus}{ENGINE}", "waiting"),
    ]
    paused = rate_or_zero(Metric.PAUSED.prometheus, where(JOBS), kind)
    in_use = f"{Metric.KV_USAGE.prometheus}{ENGINE}"
    used = [
        (rate(Metric.CPU.prometheus, where(JOBS), PROCESS), each(PROCESS)),
        (f"{rate(Metric.CPU_DELAY.prometheus, where(JOBS), PROCESS)}", f"{each(PROCESS)}: had none"),
    ]
    memory = [(f"{Metric.MEMORY.prometheus}{where(JOBS)}", each(PROCESS))]
    made.with_row(Row("Steps"))
    made.with_panel(lines("Step", "s", Metric.STEP_DURATION.meaning, quantiles(STEP, ENGINE)))
    made.with_panel(lines("Steps", "ops", "Steps a second.", [(rate(f"{STEP}_count", ENGINE), "steps")]))
    made.with_panel(lines("Batch", "short", "Sequences in the last step; requests that wait.", batch))
    made.with_panel(queue_reasons(ENGINE))
    made.with_panel(share("KV cache", Metric.KV_USAGE.meaning, (in_use, "in use")))
    made.with_panel(lines("CPUs", "short", "In use, and those that threads waited for.", used))
    made.with_panel(lines("Memory", "bytes", Metric.MEMORY.meaning, memory))
    made.with_panel(stack("Pauses", Metric.PAUSED.meaning, (paused, each(kind))))


def said_by_vllm(made: Dashboard) -> None:
    requests = [
        (f"sum (vllm:num_requests_running{OF_VLLM})", "running"),
        (f"sum by (reason) (vllm:num_requests_waiting_by_reason{OF_VLLM})", each("reason")),
    ]
    tokens = [(rate(f"vllm:{kind}_tokens_total", OF_VLLM), kind) for kind in ("prompt", "generation")]
    looked_up = rate("vllm:prefix_cache_queries_total", OF_VLLM)
    found = f"{rate('vllm:prefix_cache_hits_total', OF_VLLM)} / {looked_up}"
    phases = [(mean(f"vllm:request_{name}_time_seconds"), name) for name in ("queue", "prefill", "decode")]
    counted = "Of a request, as vLLM counts: without the frontend and the wait for the step that runs."
    evicted = [(rate("vllm:num_preemptions_total", OF_VLLM), "preemptions")]
    made.with_row(Row("What vLLM says"))
    made.with_panel(lines("TTFT", "s", "", quantiles("vllm:time_to_first_token_seconds", OF_VLLM)))
    made.with_panel(lines("ITL", "s", "", quantiles("vllm:inter_token_latency_seconds", OF_VLLM)))
    made.with_panel(lines("Phases, mean", "s", counted, phases))
    made.with_panel(lines("Requests", "short", "Running, and waiting by reason.", requests))
    made.with_panel(share("KV cache", "Share in use.", (f"vllm:kv_cache_usage_perc{OF_VLLM}", "in use")))
    made.with_panel(lines("Preemptions", "ops", "A second.", evicted))
    made.with_panel(share("Prefix cache", "Prompt tokens found, of those looked up.", (found, "hits")))
    made.with_panel(lines("Tokens", "short", "A second.", tokens))
    made.with_panel(lines("Tokens a step", "short", "", quantiles("vllm:iteration_tokens_total", OF_VLLM)))


def mean(histogram: str) -> str:
    """The mean over the window."""
    return f"{rate(f'{histogram}_sum', OF_VLLM)} / {rate(f'{histogram}_count', OF_VLLM)}"
