"""What calls with steps of their own would give as one batch, by the trace's own cost of a token."""

from __future__ import annotations

import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import prediction
from phasetrace.analyze.tokens import decode_steps
from phasetrace.model import Goal, Phase, Prediction

UNEVEN = 0.8  # of the throughput: prompts and answers of a batch differ in length
# A decoding row over a token of a prompt: likely, at the dearest, at the cheapest. On a CPU 16 rows cost 0.9
# to 1.9 tokens each, with prompts of 14 to 1,000 tokens, models of 256 to 1,024 wide and one or two threads
# (transformers 5.24, 32-bit weights). Elsewhere kernels for few rows and for many differ by more.
CPU_ROW = (1.4, 2.2, 0.7)
ROW = (1.0, 4.0, 0.25)
SEEN_ROWS = 1.5  # times, either way: where steps with more and fewer rows were seen


def as_one_batch(evidence: Evidence, batch: int) -> Prediction | None:
    """Throughput with `batch` sequences a step: a step's time, and a computed token's for each other.

    A decoding sequence costs about what a token of a prompt costs to compute, since the weights are read
    anyway.
    """
    load, step = evidence.load, evidence.step
    decoded = [(r, n) for r in evidence.requests if (n := decode_steps(r.request, evidence.table))]
    if load is None or step is None or not decoded or evidence.breakdown.throughput_tok_s is None:
        return None
    each = _row_costs(evidence, batch)
    if each is None:
        return None
    likely, dearest, cheapest = each
    decode = sum(r.phase_ns(Phase.DECODE) for r, _ in decoded) / len(evidence.requests)
    prefill = evidence.phase_ns(Phase.PREFILL) / len(evidence.requests)
    new = statistics.mean(r.new_prompt_tokens or 1 for r in evidence.requests)
    single = statistics.mean(r.e2e_ns for r in evidence.requests)
    rest = max(0.0, single - decode - prefill)
    steps = [n for _, n in decoded]
    ragged = statistics.mean(steps) / max(statistics.quantiles([*steps, *steps], n=10)[-1], 1)
    n = min(batch, load.requests)
    per_call = load.prompts_per_call

    def ratio(cost: float) -> float:
        wider = statistics.mean(steps) * cost * (n - 1)
        together = rest * n + prefill + min(prefill, new * cost) * (n - 1) + decode + wider
        return single * n / together if n > per_call else 1.0

    before = evidence.breakdown.throughput_tok_s
    likely_ratio = ratio(likely) * ragged
    low, high = ratio(dearest) * ragged * UNEVEN, ratio(cheapest)
    return prediction(Goal.THROUGHPUT, before, before * likely_ratio, before * low, before * high)


def _row_costs(evidence: Evidence, batch: int) -> tuple[float, float, float] | None:
    """What one more sequence adds to a step, ns: likely, at the dearest, at the cheapest."""
    step, cost = evidence.step, evidence.prefill
    if step is None:
        return None
    if step.per_row_ns is not None:
        return step.per_row_ns, step.per_row_ns * SEEN_ROWS, step.per_row_ns / SEEN_ROWS
    if cost is None:
        return None
    token = cost.per_token_ns
    if not cost.fixed_ns and cost.typical > 1:
        # One length of prompt only. Its prefill read the weights, too, which is what a step of one row does
        token = max(0.0, cost.per_token_ns * cost.typical - step.typical_ns) / (cost.typical - 1)
    on_cpu = evidence.model is not None and evidence.model.device == "cpu"
    likely, dearest, cheapest = CPU_ROW if on_cpu else ROW
    if cost.typical <= batch:
        likely = 1.0  # a prefill was a forward pass over no more rows than the batch will have
    return token * likely, token * dearest, token * cheapest
