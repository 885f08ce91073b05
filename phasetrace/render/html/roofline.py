"""The roofline: this run's steps, and the machine's roof where its ceilings were given."""

from __future__ import annotations

from typing import Any

from phasetrace.analyze.roofline import points
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Diagnosis
from phasetrace.render.html.steps import prompt_tokens


def content(d: Diagnosis, table: StepTable) -> dict[str, Any] | None:
    """Points and roof; None where the size of the model or its steps are unknown."""
    recording = d.breakdown.recording
    found = points(recording, table, prompt_tokens(recording.requests, table))
    if not found:
        return None
    roof = d.ceilings
    return {
        "points": [
            {
                "kind": p.kind,
                "steps": p.steps,
                "tokens": p.tokens,
                "intensity": p.intensity,
                "flops_s": p.flops_s,
            }
            for p in found
        ],
        "bandwidth_bytes_s": roof.bandwidth_bytes_s if roof else None,
        "flops_s": roof.flops_s if roof else None,
    }
