"""Decode as it is asked for: how many tokens, how many sequences, and who else is served meanwhile."""

from __future__ import annotations

import math

from phasetrace.advise.table.answer import Answer, Tier, candidate, measured, modelled, tried
from phasetrace.advise.table.rules.queue import MORE_SLOTS, PASSING, _more
from phasetrace.advise.table.setting import BUDGETS, Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.analyze import physics
from phasetrace.model import Goal
from phasetrace.semconv import Cause

OWNS = 0.5  # of the request: decode owns it when all else together is less
CLEARLY = 0.7  # of the request, where nobody said what should become better
LONG = 512  # tokens, then: twice a usual chat answer
QUARTER = 0.25  # of the output kept, where no target says how much: an answer in a paragraph, not a page
MARGIN = 0.9  # of a target: what an estimate aims at, so that the spread of requests still meets it
SLOW = 2.5  # times a well set-up engine's step: the rate is not what the device can do
FEW = 8  # sequences: all common devices carry more for one weight read (their ridge lies above 100)
OF_RIDGE = 0.25  # of the batch from which on arithmetic binds: below, more sequences are nearly free
NEIGHBOURS = 1.5  # requests: with fewer, no other's prefill can stretch a step
SPIKES = 3.0  # ITL p99 over its middle: steps of one kind vary by less
PASSED = frozenset(PASSING)
READING = 0.3  # of the device's time: less cannot stretch a step by half
STRETCHED = 1.5  # times a well set-up engine's step of that batch
REDONE = 0.05  # of the tokens computed again: what preemption costs, before the waits


def long_output(view: View) -> Answer:
    """The number of tokens owns the time, at a rate that the device allows."""
    s, g = view.subject, view.subject.group
    written = g.output_tokens
    if view.goal is not Goal.E2E or not written or written < 2 or s.decode is None or not s.e2e:
        return None
    share = s.decode / s.e2e
    if share < OWNS or s.crawls or (s.slower is not None and s.slower > SLOW):
        return None
    if not view.goal_stated and (share < CLEARLY or written < LONG):
        return None
    rate = s.tpot or s.decode / (written - 1)
    target = (view.slo or {}).get("e2e")
    rest = max(0.0, s.e2e - s.decode)
    keep = written * QUARTER
    said = [
        f"decode is {percent(share)} of the request: {written:,.0f} tokens at {seconds(rate * 1e9)} each",
    ]
    if s.prefill is not None:
        said.append(
            f"prefill is {percent(s.prefill / s.e2e)}: a prompt half as long would save about"
            f" {seconds(s.prefill / 2 * 1e9)}"
        )
    if target is not None:
        if target * MARGIN <= rest:
            return None
        keep = min(written, (target * MARGIN - rest) / rate)
    keep = max(1.0, _round(keep))
    after = rest + keep * rate
    said.append(
        f"about {keep:,.0f} tokens at the same rate give {seconds(after * 1e9)}; a cap (max_tokens)"
        " bounds the slowest request"
    )
    if s.ttft is not None:
        said.append(f"streaming shows the first token after {seconds(s.ttft * 1e9)}")
    return candidate(
        view,
        Cause.LONG_OUTPUT,
        Tier.BOUND,
        tuple(said),
        f"Ask for fewer output tokens: about {keep:,.0f} instead of {written:,.0f} (a shorter answer,"
        " max_tokens to limit the output length); stream, so that the wait is felt less.",
        tradeoff=("Answers that need more tokens are cut."),
        gain=modelled(s.e2e / after, 0.1),
        weight=1 - after / s.e2e,
        seconds=s.decode,
        confidence="high" if view.slo else "medium",
    )


def _round(tokens: float) -> float:
    """Two digits: an estimate is no more exact."""
    size = 10.0 ** max(0, math.floor(math.log10(max(tokens, 1))) - 1)
    return math.ceil(tokens / size) * size


def small_batch(view: View) -> Answer:
    """The device could carry many more sequences for each read of the weights."""
    s = view.subject
    width = s.width
    if view.goal is not Goal.THROUGHPUT or width is None or s.crawls:
        return None
    if s.step is not None and s.step_expected and s.slower is not None and s.slower > SLOW and width > FEW:
        return None
    ridge = physics.ridge_tokens(s.shape, s.ceiling) if s.shape and s.ceiling else None
    room = max(FEW, OF_RIDGE * ridge) if ridge else FEW
    fit = s.fit
    if width > room or (fit is not None and fit < 2 * width):
        return None
    wider = next(
        (
            x
            for x in sorted(view.settings, key=lambda x: -(x.throughput or 0))
            if x.width and x.width >= 1.5 * width and x.throughput and s.throughput
        ),
        None,
    )
    said = [f"{width:,.0f} sequence{'s' if width != 1 else ''} share each read of the weights"]
    if ridge:
        said.append(f"arithmetic would bind from about {ridge:,.0f} on")
    if fit:
        said.append(f"the KV cache has room for {fit:,.0f}")
    if wider is not None and wider.throughput and s.throughput:
        ratio = wider.throughput / s.throughput
        if ratio < 1.15:
            return None
        said.append(f"{wider.name} with {wider.width:,.0f} gives {times(ratio)} of the throughput")
        gain = measured(ratio)
    else:
        more = max(MORE_SLOTS, FEW / width)
        more = min(more, fit / width) if fit else more
        gain = modelled(_more(s, more), 0.4)
        said.append(f"{more * width:,.0f} would give about {times(gain.ratio)} of the throughput")
    return candidate(
        view,
        Cause.SMALL_BATCH,
        Tier.FAULT if width <= FEW else Tier.BOUND,
        tuple(said),
        "Give the engine more sequences at a time: raise the client's concurrency (many requests in"
        " parallel), and the batch"
        " or the cap on concurrent sequences where that binds.",
        tradeoff="Each token takes a little longer; more KV cache is used.",
        gain=gain,
        confidence="high" if wider is not None else "medium",
    )


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
            return None
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
    if redone < REDONE and evicted < max(1.0, 0.05 * (g.requests or 0)):
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


def many_sequences(view: View) -> Answer:
    """Beams, n or best_of multiply the work of each request."""
    fix = "Use fewer beams or sequences a request (num_beams, n, best_of, num_return_sequences)."
    trade = "Fewer candidates: check the quality of answers with one."
    pair = max(
        (
            p
            for p in view.compared
            if "sequences_per_request" in p.differs and _copies(p.worse) > _copies(p.better)
        ),
        key=lambda p: (-len(p.differs), p.ratio),
        default=None,
    )
    if pair is not None:
        return tried(view, Cause.MANY_SEQUENCES, pair, "sequences_per_request", fix, trade)
    s = view.subject
    n = max(_copies(s), s.knob("num_beams", "best_of", "n", "num_return_sequences") or 1.0)
    if n < 2 or view.goal is Goal.TTFT:
        return None
    one, many = s.step_with(batch=(s.width or n) / n), s.step_with(batch=s.width or n)
    slower = many / one if one and many else n**0.35
    return candidate(
        view,
        Cause.MANY_SEQUENCES,
        Tier.FAULT,
        (f"{n:,.0f} sequences are written for each request",),
        fix,
        tradeoff=trade,
        gain=modelled(max(slower, 1.2), 0.5),
        weight=max(0.2, 1 - 1 / slower),
    )


def _copies(s: Setting) -> float:
    return s.group.sequences_per_request or 1.0
