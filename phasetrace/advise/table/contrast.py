"""Two groups of a table compared: what was set differently, and how much worse one is for it.

A group that differs in one thing only is an experiment that the user has made already; it is better
evidence than any model of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from phasetrace.advise.table.setting import Setting
from phasetrace.model import Goal

SAME = 1.25  # times: two measurements of one load differ by up to 10 % each way; a changed load by more
MATTERS = 1.15  # times: DESIGN.md section 8, what is worth a change
NOTICED = 1.05  # times: what is left of a difference that matters where each side is measured 5 % off
SLIGHT = 1.02  # times: what a clean experiment with a feature that costs something may still show
LOADS = (
    "concurrency",
    "request_rate",
    "batch",
    "prompt_tokens",
    "output_tokens",
    "max_tokens",
    "cached_tokens",
    "shared_prefix_tokens",
    "padded_prompt_tokens",
    "prefilling_concurrently",
    "requests",
)
SETTINGS = (
    "order",
    "devices",
    "dtype",
    "quantization",
    "sequences_per_request",
    "streaming",
    "grammar",
    "logprobs",
    "repetition_penalty",
    "lora_adapters",
    "speculative_tokens",
    "cpu_cores",
    "threads",
)
OVERRIDING = ("devices", "dtype", "quantization")  # what a group lacks of these, the table states
HITS_APART = 0.2  # of the tokens: a rate that the load itself moves by less
COUNTED_APART = ("requests",)  # how many were measured says how sure a number is, not what made it


@dataclass(frozen=True, slots=True)
class Pair:
    """A group and a better one: by how much on which metric, and in what they differ (worse, better)."""

    worse: Setting
    better: Setting
    goal: Goal
    ratio: float
    differs: dict[str, tuple[object, object]]

    def only(self, *names: str) -> bool:
        """Whether they differ in nothing but these."""
        return set(self.differs) <= set(names)


def pairs(settings: tuple[Setting, ...], goal: Goal) -> tuple[Pair, ...]:
    """Every ordered pair whose first is worse on a metric that both have: the goal's, else another time."""
    found = []
    for worse, better in permutations(settings, 2):
        compared = how_much_worse(worse, better, goal)
        if compared is not None and compared[1] >= SLIGHT:
            found.append(Pair(worse, better, *compared, differences(worse, better)))
    return tuple(sorted(found, key=lambda pair: (len(pair.differs), -pair.ratio)))


def how_much_worse(worse: Setting, better: Setting, goal: Goal) -> tuple[Goal, float] | None:
    """Ratio on the first metric that both were measured on."""
    for metric in (goal, *(g for g in (Goal.E2E, Goal.TPOT, Goal.THROUGHPUT, Goal.TTFT) if g is not goal)):
        if metric is Goal.E2E and not _same_load(worse.group.output_tokens, better.group.output_tokens):
            continue  # a longer answer takes longer, whatever else was changed
        ratio = like_with_like(worse, better, metric)
        if ratio is not None:
            return metric, ratio
    return None


def like_with_like(worse: Setting, better: Setting, goal: Goal) -> float | None:
    """How many times worse, by the first number of the goal that both have: never a middle against a tail."""
    for name in NUMBERS[goal]:
        a, b = getattr(worse.group, name), getattr(better.group, name)
        if a and b and a > 0 and b > 0:
            return float(b / a if goal is Goal.THROUGHPUT else a / b)
    a, b = worse.metric(goal), better.metric(goal)
    named = [any(getattr(s.group, n) for n in NUMBERS[goal]) for s in (worse, better)]
    if a and b and a > 0 and b > 0 and named[0] == named[1]:
        return b / a if goal is Goal.THROUGHPUT else a / b
    return None


def over(one: float | None, other: float | None) -> float | None:
    """How many times the other, where both are known."""
    return one / other if one and other and other > 0 else None


NUMBERS = {
    Goal.TTFT: ("ttft_s", "ttft_p95_s", "ttft_p99_s", "client_ttft_s"),
    Goal.TPOT: ("tpot_s", "itl_p50_s", "itl_p99_s"),
    Goal.E2E: ("e2e_s", "client_e2e_s", "e2e_p95_s", "e2e_p99_s"),
    Goal.THROUGHPUT: ("throughput_tok_s", "request_throughput"),
}


def differences(a: Setting, b: Setting) -> dict[str, tuple[object, object]]:
    """What was set differently; loads within measuring error are the same."""
    found: dict[str, tuple[object, object]] = {}
    for name in LOADS:
        if name in COUNTED_APART:
            continue
        one, other = getattr(a.group, name), getattr(b.group, name)
        if not _same_load(one, other):
            found[name] = (one, other)
    for name in SETTINGS:
        one, other = (getattr(s if name in OVERRIDING else s.group, name) for s in (a, b))
        if one != other and not (_off(one) and _off(other)):
            found[name] = (one, other)
    hits = (a.group.prefix_cache_hit_rate, b.group.prefix_cache_hit_rate)
    if None not in hits and abs((hits[0] or 0) - (hits[1] or 0)) >= HITS_APART:
        found["prefix_cache_hit_rate"] = hits
    for name in {*a.knobs, *b.knobs}:
        one, other = a.knobs.get(name), b.knobs.get(name)
        if one != other:
            found[name] = (one, other)
    return found


def _off(value: object) -> bool:
    return value is None or value is False or value == 0 or value == ""


def _same_load(one: float | None, other: float | None) -> bool:
    if _off(one) and _off(other):
        return True
    if _off(one) or _off(other):
        return False
    assert one is not None and other is not None
    low, high = sorted((abs(one), abs(other)))
    return high <= low * SAME
