"""The gain of a fix on the goal metric, in closed form: the time it saves, taken out of where it is spent.

Latencies are means over the requests, since a mean changes by exactly what is saved; throughput is tokens
over the time that any request was under way, which shrinks by the share that is saved.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from phasetrace.advise.evidence import Evidence
from phasetrace.analyze.metrics import busy_ns
from phasetrace.analyze.noise import RUNS_DIFFER
from phasetrace.model import Goal, Part, Phase, Prediction, RequestBreakdown

METRIC = {Goal.TTFT: "ttft_s", Goal.TPOT: "tpot_s", Goal.E2E: "e2e_s", Goal.THROUGHPUT: "throughput_tok_s"}
MOST_SAVED = 0.999  # of the time: a closed form that claims more has left its range
SEEN = 1.01  # times better: with less, there is nothing to promise
LEAST_DOUBT = 0.05  # of a saving, however alike the requests are
MOST_DOUBT = 0.5


@dataclass(frozen=True, slots=True)
class Saving:
    """Time a fix saves, summed over requests, and how much less or more it may turn out to be."""

    first_ns: float = 0.0  # before first tokens
    decode_ns: float = 0.0
    rest_ns: float = 0.0  # after last tokens
    least: float = 0.9  # times the above
    most: float = 1.05

    @property
    def total_ns(self) -> float:
        """All of it."""
        return self.first_ns + self.decode_ns + self.rest_ns


def predict(
    evidence: Evidence, saving: Saving, requests: Sequence[RequestBreakdown] | None = None
) -> Prediction | None:
    """The goal metric before and after; None where requests lack it or the fix does not touch it."""
    requests = evidence.requests if requests is None else requests
    after = [
        _metric(evidence.goal, requests, saving, factor) for factor in (0.0, 1.0, saving.least, saving.most)
    ]
    before, expected, one, other = after
    if before is None or expected is None or one is None or other is None or expected == before:
        return None
    return prediction(evidence.goal, before, expected, min(one, other), max(one, other))


def predict_between(evidence: Evidence, savings: Sequence[Saving]) -> Prediction | None:
    """The same for a likely saving and others that it may be instead, which bound it."""
    before = _metric(evidence.goal, evidence.requests, Saving(), 0.0)
    found = [_metric(evidence.goal, evidence.requests, saving, 1.0) for saving in savings]
    after = [value for value in found if value is not None]
    if before is None or not after:
        return None
    promised = prediction(evidence.goal, before, after[0], min(after), max(after))
    return promised if promised.ratio >= SEEN else None


def predict_rates(evidence: Evidence, ratios: Sequence[float]) -> Prediction | None:
    """Throughput that grows by a likely ratio, or by others that bound it."""
    before = evidence.breakdown.throughput_tok_s
    if before is None or not ratios or ratios[0] < SEEN:
        return None
    after = [before * ratio for ratio in ratios]
    return prediction(Goal.THROUGHPUT, before, after[0], min(after), max(after))


def prediction(goal: Goal, before: float, after: float, low: float, high: float) -> Prediction:
    """With the ratio that is above 1 when better; to be met by another run, which differs in any case."""
    ratio = after / before if goal is Goal.THROUGHPUT else before / after
    low, high = min(low, after) * (1 - RUNS_DIFFER), max(high, after) * (1 + RUNS_DIFFER)
    return Prediction(METRIC[goal], before, after, low, high, ratio)


def won(found: Prediction | None) -> float:
    """Share of the goal metric that the fix takes away, from 0 to 1."""
    return max(0.0, 1 - 1 / found.ratio) if found is not None and found.ratio > 0 else 0.0


def fewer_read(evidence: Evidence, fewer: float, computed: float, least: float, most: float) -> Saving:
    """What `fewer` of the prompt tokens computed save: in prefill, and in the decode of those beside it."""
    stretched = evidence.part_ns(Part.OTHERS_PREFILL, Phase.DECODE)
    first = prefill_saved(evidence, fewer, computed)
    return Saving(first_ns=first, decode_ns=stretched * min(1.0, fewer / computed), least=least, most=most)


def prefill_saved(evidence: Evidence, fewer: float, computed: float) -> float:
    """Time of prefill that `fewer` tokens save: by the fitted cost of a token, else in proportion."""
    forward = evidence.forward_ns(Phase.PREFILL) or evidence.phase_ns(Phase.PREFILL)
    forward -= evidence.part_ns(Part.PEERS, Phase.PREFILL)  # who decodes beside it goes on
    cost = evidence.prefill
    if cost is not None and cost.fixed_ns is not None:
        return min(cost.per_token_ns * fewer, forward * fewer / computed)
    return forward * fewer / computed


def doubt(values: Sequence[float]) -> float:
    """Relative spread of what requests took, as the half width of an interval around a saving made of it."""
    if len(values) < 4 or not statistics.median(values):
        return 0.15  # too few to have a spread: three times what repeated runs show
    low, middle, high = statistics.quantiles(values, n=4)
    return min(MOST_DOUBT, max(LEAST_DOUBT, (high - low) / 2 / middle))


def _metric(goal: Goal, requests: Sequence[RequestBreakdown], saving: Saving, factor: float) -> float | None:
    if goal is Goal.TTFT:
        known = [r.ttft_ns for r in requests if r.ttft_ns is not None]
        return _less(sum(known), saving.first_ns * factor) / len(known) / 1e9 if known else None
    if goal is Goal.TPOT:
        timed = [(r.tpot_ns, (r.request.longest_output or 1) - 1) for r in requests if r.tpot_ns is not None]
        tokens = sum(count for _, count in timed)
        after = sum(each * count for each, count in timed)
        return _less(after, (saving.decode_ns + saving.rest_ns) * factor) / tokens / 1e9 if tokens else None
    total = sum(r.e2e_ns for r in requests)
    if not total:
        return None
    left = _less(total, saving.total_ns * factor)
    if goal is Goal.E2E:
        return left / len(requests) / 1e9
    tokens = sum(r.request.output_tokens or 0 for r in requests)
    busy = busy_ns(r.request for r in requests)
    return tokens / (busy * left / total) * 1e9 if tokens and busy else None


def _less(whole: float, saved: float) -> float:
    return whole - min(saved, whole * MOST_SAVED)
