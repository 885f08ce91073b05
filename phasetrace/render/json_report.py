"""A diagnosis as JSON, schema `phasetrace.diagnosis/1` (diagnosis.schema.json beside this file).

Seconds, not nanoseconds. Unknown is null, never zero and never left out; NaN and Infinity are unknown too.
The output is ASCII: nothing in it can be obeyed by a terminal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from phasetrace.model import Breakdown, Ceilings, Diagnosis, Finding, Percentiles, PhaseTime, Prediction
from phasetrace.render import context
from phasetrace.render.units import seconds

SCHEMA = "phasetrace.diagnosis/1"
METRICS = ("ttft", "tpot", "itl", "e2e")

Json = dict[str, Any]


def diagnosis(d: Diagnosis) -> str:
    """The report as text, one document, with a line end."""
    return json.dumps(document(d), indent=2, allow_nan=False) + "\n"


def document(d: Diagnosis) -> Json:
    """The report as plain data."""
    b = d.breakdown
    engine = context.engine(b)
    derived = context.derived(b)
    return {
        "schema": SCHEMA,
        "cause": str(d.cause),
        "verdict": d.verdict,
        "goal": d.goal.value,
        "slo": _slo(d.slo),
        "ceilings": _ceilings(d.ceilings),
        "engine": {"name": engine.name, "version": engine.version},
        "requests": context.counts(b)._asdict(),
        "coverage": context.coverage(b.recording)._asdict(),
        "recording_overhead": finite(context.overhead(b.recording)),
        "metrics": _metrics(b),
        "phases": [_phase(p, b.total_ns, derived.get(p.phase, 0)) for p in b.phases],
        "findings": [_finding(f) for f in d.findings],
        "data": [{"defect": defect.defect} for defect in b.defects],
    }


def _slo(slo: Mapping[str, float] | None) -> Json | None:
    if slo is None:
        return None
    return {str(metric).removesuffix("_s") + "_s": finite(limit) for metric, limit in slo.items()}


def _ceilings(c: Ceilings | None) -> Json | None:
    if c is None:
        return None
    flops = finite(c.flops_s)
    return {"bandwidth_bytes_s": finite(c.bandwidth_bytes_s), "flops_s": flops, "source": c.source}


def _metrics(b: Breakdown) -> Json:
    metrics: Json = {f"{name}_s": _percentiles(b.metrics.get(f"{name}_ns")) for name in METRICS}
    return {**metrics, "throughput_tok_s": finite(b.throughput_tok_s)}


def _percentiles(p: Percentiles | None) -> Json:
    if p is None:
        return {"p50": None, "p95": None, "p99": None}
    return {"p50": seconds(p.p50), "p95": seconds(p.p95), "p99": seconds(p.p99)}


def _phase(p: PhaseTime, total_ns: int, derived: int) -> Json:
    parts = [{"part": t.part.value, **amount(t.ns, total_ns)} for t in p.parts]
    return {"phase": p.phase.value, **amount(p.ns, total_ns), "derived": derived, "parts": parts}


def amount(ns: float, total_ns: float) -> Json:
    """Seconds and share; shares of phases and of parts are both of the whole time, so that they add up."""
    return {"seconds": seconds(ns), "share": ns / total_ns if total_ns > 0 else None}


def _finding(f: Finding) -> Json:
    return {
        "cause": str(f.cause),
        "phase": str(f.phase),
        "seconds": seconds(f.ns),
        "share": finite(f.share),
        "confidence": f.confidence,
        "evidence": list(f.evidence),
        "recommendation": f.recommendation,
        "commands": list(f.commands),
        "tradeoff": f.tradeoff,
        "prediction": prediction(f.prediction),
    }


def prediction(p: Prediction | None) -> Json | None:
    """What a fix will bring; None where nothing is promised."""
    if p is None:
        return None
    figures = {name: finite(getattr(p, name)) for name in ("before", "after", "low", "high", "ratio")}
    # A prediction with a hole in it predicts nothing.
    return None if None in figures.values() else {"metric": p.metric, **figures}


def finite(number: float | None) -> float | None:
    """The number; None where it is unknown or none."""
    if number is None or not math.isfinite(number):
        return None
    return number if isinstance(number, int) else float(number)
