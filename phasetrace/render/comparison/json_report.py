"""A comparison as JSON, schema `phasetrace.comparison/1` (comparison.schema.json beside that of a diagnosis).

Seconds, not nanoseconds; seconds of phases are means a request. Unknown is null. The output is ASCII.
"""

from __future__ import annotations

import json
from typing import Any

from phasetrace.model import (
    Comparison,
    Diagnosis,
    Difference,
    Finding,
    FindingChange,
    MetricChange,
    Mix,
    PhaseChange,
)
from phasetrace.render import context
from phasetrace.render.comparison import sentences
from phasetrace.render.json_report import finite, prediction
from phasetrace.render.units import seconds

SCHEMA = "phasetrace.comparison/1"

Json = dict[str, Any]


def comparison(c: Comparison) -> str:
    """The report as text, one document, with a line end."""
    return json.dumps(document(c), indent=2, allow_nan=False) + "\n"


def document(c: Comparison) -> Json:
    """The report as plain data."""
    goal = c.of_goal()
    return {
        "schema": SCHEMA,
        "word": goal.word.value if goal else None,
        "verdict": sentences.verdict(c),
        "goal": c.before.goal.value,
        "before": _run(c.before, c.names[0]),
        "after": _run(c.after, c.names[1]),
        "requests": _mix(c.mix),
        "metrics": [_metric(m) for m in sentences.in_order(c)],
        "e2e_difference_s": seconds(c.difference_ns),
        "phases": [_phase(p, c.difference_ns) for p in c.phases],
        "findings": [_finding(f) for f in c.findings],
        "set": [_difference(d) for d in c.knobs],
        "measured": [_difference(d) for d in c.measured],
        "runs_differ": c.runs_differ,
        "starved": _pair(c.starved),
        "widened_by_machine": c.widened,
    }


def _run(d: Diagnosis, name: str) -> Json:
    return {
        "name": name,
        "cause": str(d.cause),
        "verdict": d.verdict,
        "engine": context.engine(d.breakdown)._asdict(),
        "requests": context.counts(d.breakdown)._asdict(),
    }


def _mix(mix: Mix) -> Json:
    return {
        "matched": mix.matched.value,
        "compared": _pair(mix.compared),
        "prompt_tokens": _pair(mix.prompt_tokens),
        "output_tokens": _pair(mix.output_tokens),
        "prompts": _pair(mix.prompts),
        "cap_changed": mix.cap_changed,
        "load_ratio": finite(mix.load_ratio),
    }


def _pair(values: tuple[float, float] | None) -> Json | None:
    return None if values is None else {"before": finite(values[0]), "after": finite(values[1])}


def _metric(m: MetricChange) -> Json:
    timed = m.metric.endswith("_ns")
    unit = seconds if timed else finite
    return {
        "metric": m.metric.removesuffix("_ns") + "_s" if timed else m.metric,
        "statistic": m.statistic.value,
        "before": unit(m.before),
        "after": unit(m.after),
        "ratio": finite(m.ratio),
        "low": finite(m.low),
        "high": finite(m.high),
        "word": m.word.value,
        "enough": m.enough,
    }


def _phase(p: PhaseChange, total_ns: float) -> Json:
    parts = [{"part": t.part.value, **_times(t.before_ns, t.after_ns, total_ns)} for t in p.parts]
    return {"phase": p.phase.value, **_times(p.before_ns, p.after_ns, total_ns), "parts": parts}


def _times(before_ns: float, after_ns: float, total_ns: float) -> Json:
    """Shares of phases and of parts are both of the whole difference; null where there is none."""
    difference = after_ns - before_ns
    return {
        "before_s": seconds(before_ns),
        "after_s": seconds(after_ns),
        "difference_s": seconds(difference),
        "share": finite(difference / total_ns) if total_ns else None,
    }


def _finding(f: FindingChange) -> Json:
    return {
        "cause": str(f.cause),
        "fate": f.fate.value,
        "before": _found(f.before),
        "after": _found(f.after),
        "prediction": prediction(f.before.prediction) if f.before else None,
        "measured": finite(f.measured),
        "at_share": finite(f.at_share),
        "inside": f.inside,
    }


def _found(f: Finding | None) -> Json | None:
    if f is None:
        return None
    return {"phase": str(f.phase), "seconds": seconds(f.ns), "share": finite(f.share)}


def _difference(d: Difference) -> Json:
    values = {
        name: finite(value) if isinstance(value, float) else value
        for name, value in (("before", d.before), ("after", d.after))
    }
    return {"name": d.name, **values}
