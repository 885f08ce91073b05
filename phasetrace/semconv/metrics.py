"""Metrics, how they add up, and their buckets."""

from __future__ import annotations

from enum import StrEnum

from phasetrace.semconv.described import Described


class MetricKind(StrEnum):
    """How a metric adds up."""

    HISTOGRAM = "histogram"
    COUNTER = "counter"
    GAUGE = "gauge"


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_STEPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metric(Described):
    """Metrics: those of the GenAI conventions, with the buckets that they prescribe, then our own."""

    kind: MetricKind
    bounds: tuple[float, ...]

    def __new__(cls, value: str, unit: str, meaning: str, how: MetricKind | tuple[float, ...]) -> Metric:
        """Make the member equal to its name. Bucket bounds make it a histogram."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.unit = unit
        member.meaning = meaning
        member.kind = how if isinstance(how, MetricKind) else MetricKind.HISTOGRAM
        member.bounds = () if isinstance(how, MetricKind) else how
        return member

    @property
    def prometheus(self) -> str:
        """Its name in Prometheus, as OpenTelemetry specifies; a histogram's adds `_bucket` and so on."""
        unit = {"s": "_seconds", "By": "_bytes"}.get(self.unit, "")
        return self.replace(".", "_") + unit + ("_total" if self.kind is MetricKind.COUNTER else "")

    DURATION = ("gen_ai.server.request.duration", "s", "arrival of a request until its end", _SECONDS)
    TTFT = (
        "gen_ai.server.time_to_first_token",
        "s",
        "arrival of a request until its first token",
        (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    )
    TPOT = (
        "gen_ai.server.time_per_output_token",
        "s",
        "time per token after the first, of the longest sequence",
        (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5),
    )
    PHASE_DURATION = ("phasetrace.phase.duration", "s", "a request's time in one phase", _SECONDS)
    TOKENS = ("phasetrace.tokens", "{token}", "tokens of requests that ended, by kind", MetricKind.COUNTER)
    PREEMPTIONS = (
        "phasetrace.preemptions",
        "{preemption}",
        "times that a running request was put aside",
        MetricKind.COUNTER,
    )
    STEP_DURATION = ("phasetrace.step.duration", "s", "one step of an engine", _STEPS)
    QUEUE_BLOCKED = (
        "phasetrace.queue.blocked",
        "s",
        "time in which the head of an engine's queue had to wait, by reason",
        MetricKind.COUNTER,
    )
    PAUSED = ("phasetrace.paused", "s", "time in which a whole process stood still", MetricKind.COUNTER)
    CPU = ("phasetrace.process.cpu", "s", "CPU time that a process took", MetricKind.COUNTER)
    CPU_DELAY = (
        "phasetrace.process.cpu.delay",
        "s",
        "time in which threads could run and had no CPU",
        MetricKind.COUNTER,
    )
    MEMORY = ("phasetrace.process.memory", "By", "resident memory of a process", MetricKind.GAUGE)
    RUNNING = ("phasetrace.running", "{sequence}", "sequences in the last step", MetricKind.GAUGE)
    WAITING = ("phasetrace.waiting", "{request}", "requests in an engine's queue", MetricKind.GAUGE)
    KV_USAGE = ("phasetrace.kv_cache.usage", "{fraction}", "share of the KV blocks in use", MetricKind.GAUGE)
