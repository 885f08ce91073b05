"""What prompts that are read in chunks would take if they were read whole."""

from __future__ import annotations

from collections.abc import Sequence

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.ridge import GPU, ridge
from phasetrace.model import RequestBreakdown

# Of the peak, by prefill: the least, the likely, the most on common devices
REACHED = (0.35, 0.6, 0.75)
SEEN = 1.1  # times a decode step: from there on a chunk's time shows what its tokens cost
DOUBT = 2.0  # times, either way: how far the cost of a token may be off that is seen in small chunks only


def read_whole(
    evidence: Evidence, chunked: Sequence[RequestBreakdown], step: float, chunk: float, budget: int
) -> tuple[float, float, float]:
    """Ns of prefill in one chunk a prompt, at the most, likely and at the least.

    `step` and `chunk` are what a decode step and a chunk of `budget` tokens take.
    """
    model, ceilings = evidence.model, evidence.ceilings
    parameters = (model.active_parameters or model.parameters) if model is not None else None
    if parameters and ceilings is not None and ceilings.flops_s:
        token = 2 * parameters / ceilings.flops_s * 1e9
        each = [token / reached for reached in REACHED]
    elif chunk >= SEEN * step and budget > 1:
        token = (chunk - step) / (budget - 1)
        each = [token * DOUBT, token, token / DOUBT]
    else:
        each = [step / tokens for tokens in ridge(evidence)]
        each[-1] = min(each[-1], max((chunk - step) / max(1, budget - 1), step / GPU[-1]))
    each = [min(token, chunk / budget) for token in each]  # a chunk's time holds all of its arithmetic
    most, expected, least = (
        sum(step + token * (r.new_prompt_tokens or 0) for r in chunked)
        if chunk >= SEEN * step
        else sum(max(step, token * (r.new_prompt_tokens or 0)) for r in chunked)
        for token in each
    )
    return most, expected, least
