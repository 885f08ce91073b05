"""What others that are served at the same time cost: their prefill, and their KV cache."""

from __future__ import annotations

from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.table.answer import Answer, Tier, candidate, measured, modelled, tried
from phasetrace.advise.table.queue import evicts
from phasetrace.advise.table.rules.admission import PASSING
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.model import Goal
from phasetrace.semconv import Cause

NEIGHBOURS = 1.5  # requests: with fewer, no other's prefill can stretch a step
SPIKES = 3.0  # ITL p99 over its middle: steps of one kind vary by less
PASSED = frozenset(PASSING)
READING = 0.3  # of the device's time: less cannot stretch a step by half
STRETCHED = 1.5  # times a well set-up engine's step of that batch


def prefill_interference(view: View) -> Answer:
    """Steps are stretched by other requests' prefill."""
    fix = (
        "Keep others' prefill out of the steps that decode: a smaller prefill chunk (token budget"
        " of a step), fewer prefills at once, or prefill on other devices (disaggregate)."
    )
    trade = "A smaller budget makes TTFT of long prompts and throughput worse."
    pair = next(
        (p for p in view.pairs if "prefilling_concurrently" in p.differs and p.goal is not Goal.TTFT), None
    )
    if pair is not None and (pair.worse.group.prefilling_concurrently or 0) > (
        pair.better.group.prefilling_concurrently or 0
    ):
        return tried(view, Cause.PREFILL_INTERFERENCE, pair, "prefilling_concurrently", fix, trade)
    larger = view.contrast(*BUDGETS, *PASSING)
    if larger is not None and larger.goal is Goal.TPOT and not larger.worse.alone:
        if PASSED & set(larger.differs) or (larger.worse.budget or 0) > (larger.better.budget or 0):
            return tried(view, Cause.PREFILL_INTERFERENCE, larger, "larger chunks of prompts", fix, trade)
    s, g = view.subject, view.subject.group
    if view.goal is Goal.TTFT:
        return None
    if g.prefilling_concurrently:
        usual = s.step_expected or g.itl_p50_s
        slower = s.tpot / usual if s.tpot and usual else None
        if slower is not None and slower < 1.3:
            return _gaps(view, s, fix, trade)
        return candidate(
            view,
            Cause.PREFILL_INTERFERENCE,
            Tier.FAULT,
            (
                f"{g.prefilling_concurrently:,.0f} prompt tokens of other requests were read while these"
                " decoded",
                *((f"a token takes {times(slower)} of what it should",) if slower else ()),
            ),
            fix,
            tradeoff=trade,
            gain=modelled(slower) if slower else None,
            weight=1 - 1 / slower if slower else 0.4,
        )
    read = _prefill_load(view, s)
    if read is not None and read[0] >= READING and s.tpot and s.slower is not None and s.slower >= STRETCHED:
        return candidate(
            view,
            Cause.PREFILL_INTERFERENCE,
            Tier.FAULT,
            (
                f"a token takes {times(s.slower)} of what it should, with {others_of(s):,.0f}"
                " requests at once",
                f"reading their prompts ({seconds(read[1] * 1e9)} each) fills"
                f" {percent(min(1.0, read[0]))} of the device's time",
            ),
            fix,
            tradeoff=trade,
            gain=modelled(s.slower),
            weight=1 - 1 / s.slower,
            confidence="high",
        )
    s = max(view.settings, key=_spikiness)
    g = s.group
    middle, tail = g.itl_p50_s or g.tpot_s, g.itl_p99_s or g.itl_p95_s or g.itl_max_s
    others = others_of(s)
    if (
        not middle
        or not tail
        or tail < SPIKES * middle
        or others < NEIGHBOURS
        or g.stall_period_s
        or g.preemptions
    ):
        return None
    chunk = (
        min(s.budget or g.prompt_tokens or 0, (g.prompt_tokens or s.budget or 0) * max(1.0, others)) or None
    )
    reads = s.prefill_with(chunk) if chunk else s.prefill
    said = [
        f"the slow end of ITL is {seconds(tail * 1e9)}, its middle {seconds(middle * 1e9)}, with"
        f" {others:,.0f} requests at once"
    ]
    fits = reads is not None and 0.4 <= tail / (reads + middle) <= 2.5
    if fits and chunk and reads:
        said.append(
            f"a chunk of {chunk:,.0f} prompt tokens takes about {seconds(reads * 1e9)}: the size of"
            " these gaps"
        )
    mean = s.tpot or middle
    return candidate(
        view,
        Cause.PREFILL_INTERFERENCE,
        Tier.FAULT if fits or not reads else Tier.SUSPICION,
        tuple(said),
        fix,
        tradeoff=trade,
        weight=max(0.2, 1 - middle / max(mean, middle)),
        confidence="medium" if fits else "low",
    )


def _gaps(view: View, s: Setting, fix: str, trade: str) -> Answer:
    """The usual token is on time, and the slow end waits for prompts that are known to be read meanwhile."""
    g = s.group
    if _spikiness(s) < SPIKES or g.stall_period_s or g.preemptions:
        return None
    middle, tail = g.itl_p50_s or g.tpot_s or 0.0, g.itl_p99_s or g.itl_p95_s or g.itl_max_s or 0.0
    return candidate(
        view,
        Cause.PREFILL_INTERFERENCE,
        Tier.FAULT,
        (
            f"{g.prefilling_concurrently:,.0f} prompt tokens of other requests were read while these decoded",
            f"the slow end of ITL is {seconds(tail * 1e9)}, its middle {seconds(middle * 1e9)}",
        ),
        fix,
        tradeoff=trade,
        weight=0.2,
    )


def _spikiness(s: Setting) -> float:
    """The slow end of ITL over its middle."""
    g = s.group
    middle, tail = g.itl_p50_s or g.tpot_s, g.itl_p99_s or g.itl_p95_s or g.itl_max_s
    return tail / middle if middle and tail else 0.0


def others_of(s: Setting) -> float:
    """Requests that are served at once."""
    g = s.group
    return max((v for v in (g.running, g.batch, g.concurrency, g.request_rate) if v is not None), default=0.0)


def _prefill_load(view: View, s: Setting) -> tuple[float, float] | None:
    """The share of the device's time that prompts take while these decode, and the prefill of one alone.

    Requests begin at the rate at which they end: those running over the time that one runs (Little's law).
    """
    g = s.group
    if g.running is None and g.concurrency is None and g.request_rate is None:
        return None  # a static batch: nobody else comes while it decodes
    running = g.running or g.batch or s.width
    alone = next((x.prefill for x in view.settings if x.alone and x.prefill), None)
    each = alone or (s.prefill_with(s.new_tokens) if s.new_tokens else None)
    rate = g.request_throughput
    if rate is None and running and s.decode:
        rate = running / (s.decode + (s.prefill or 0.0))
    if not rate or not each or not running or running < NEIGHBOURS:
        return None
    return rate * each, each


def preemption(view: View) -> Answer:
    """Requests are evicted and computed again."""
    s = max(view.settings, key=lambda x: (x.group.recomputed_token_share or 0, x.group.preemptions or 0))
    g = s.group
    redone, evicted = g.recomputed_token_share or 0.0, g.preemptions or 0.0
    if not evicts(s):
        return None
    said = []
    if evicted:
        said.append(
            f"{count(evicted, 'preemption')}" + (f" over {g.requests:,.0f} requests" if g.requests else "")
        )
    if redone:
        said.append(f"{percent(redone)} of the tokens were computed again")
    if g.kv_cache_usage is not None:
        said.append(f"{percent(g.kv_cache_usage)} of the KV cache is used")
    pair = next((p for p in view.pairs if p.worse is s and not p.better.group.preemptions), None)
    ratio = pair.ratio if pair is not None else 1 / (1 - min(0.9, redone)) if redone else None
    return candidate(
        view,
        Cause.PREEMPTION,
        Tier.MEASURED if redone >= 0.15 or evicted >= 0.2 * (g.requests or 1e9) else Tier.FAULT,
        tuple(said),
        "Stop evicting: fewer concurrent sequences (max_num_seqs), more memory for the KV cache"
        " (gpu_memory_utilization, fp8 KV"
        " cache, more devices), or shorter maximum lengths.",
        tradeoff="Fewer slots let requests wait in the queue instead, where nothing is lost.",
        gain=(measured(ratio) if pair else modelled(ratio, 0.5)) if ratio else None,
        setting=s,
        goal=pair.goal if pair else None,
        weight=max(redone, 0.3 if evicted else 0.0),
        confidence="high" if said[1:] else "medium",
    )
