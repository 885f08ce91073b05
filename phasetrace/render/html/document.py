"""What the page knows: the JSON report, word for word, and beside it what only a picture can show."""

from __future__ import annotations

from typing import Any

import phasetrace
from phasetrace.analyze.step_table import step_table
from phasetrace.model import Breakdown, Diagnosis, Owner, Phase, StallPattern, StepCostModel
from phasetrace.render import context, json_report, text
from phasetrace.render.colors import LOOKS
from phasetrace.render.html import roofline, run
from phasetrace.render.html.safe import safe
from phasetrace.render.ink import Ink
from phasetrace.render.units import seconds

Json = dict[str, Any]

_INK = Ink(width=1_000_000)


def document(d: Diagnosis) -> Json:
    """All of it as plain data, every string safe to show."""
    b = d.breakdown
    table = step_table(b.recording)
    known = {
        "report": json_report.document(d),
        "version": phasetrace.__version__,
        "about": {"model": context.model_name(b), "device": context.device(b), "source": b.recording.source},
        "phases": [{"phase": phase.value, "color": LOOKS[phase].hex} for phase in Phase],
        "leading": context.leading(d) is not None,
        "caveats": _caveats(d),
        "stall_patterns": [_pattern(p) for p in b.stall_patterns],
        "owners": [_owner(o) for o in b.owners],
        "step_costs": [_step_cost(name, model) for name, model in _by_process(b).items()],
        "roofline": roofline.content(d, table),
    }
    return {**safe(known), "run": run.content(b, table)}


def _caveats(d: Diagnosis) -> Json:
    return {
        "seen": text.seen(d, _INK),
        "ceilings": context.ceilings(d.ceilings) if d.ceilings else None,
        "unsplit": list(d.breakdown.unsplit),
        "undecided": [{"cause": str(rule.cause), "measure": rule.measure} for rule in d.not_enough],
    }


def _pattern(p: StallPattern) -> Json:
    return {
        "cause": p.cause.value,
        "count": p.count,
        "lost_s": seconds(p.ns),
        "typical_s": seconds(p.typical_ns),
        "period_s": seconds(p.period_ns),
    }


def _owner(o: Owner) -> Json:
    total = sum(p.ns for p in o.phases)
    phases = [{"phase": p.phase.value, **json_report.amount(p.ns, total)} for p in o.phases]
    return {
        "metric": o.metric.removesuffix("_ns"),
        "percentile": o.percentile,
        "requests": o.requests,
        "seconds": seconds(o.ns),
        "phases": phases,
        "group": o.group,
    }


def _by_process(b: Breakdown) -> dict[str, StepCostModel]:
    named = {p.key: p.script or p.executable or p.key for p in b.recording.processes}
    return {named.get(key, key): model for key, model in b.step_costs.items()}


def _step_cost(process: str, m: StepCostModel) -> Json:
    terms = ("fixed", "per_sequence", "per_context", "per_prefill", "per_attention")
    values = [getattr(m, f"{term}_ns") for term in terms]
    rows = zip(terms, values, m.low, m.high, strict=True)
    return {
        "process": process,
        "terms": [
            {"term": t, "seconds": v / 1e9, "low": lo / 1e9, "high": hi / 1e9} for t, v, lo, hi in rows
        ],
        "explained": m.explained,
        "steps": m.steps,
    }
