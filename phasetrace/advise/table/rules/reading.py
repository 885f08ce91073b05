"""Prompts that are read badly: what was read before, in small pieces, with padding."""

from __future__ import annotations

import math

from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.table.answer import Answer, Gain, Tier, candidate, measured, modelled, tried
from phasetrace.advise.table.rules.prefill import USUAL_RIDGE
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.analyze import physics
from phasetrace.model import Goal
from phasetrace.semconv import Cause

SHARED = 0.3  # of the prompt is the same each time: worth a cache
HIT = 0.5  # of what could be reused is reused: below, the cache does not do its work
LIKE_NEW = 0.7  # of the time of a new prompt: a prompt that is in the cache takes far less
SMALL_CHUNK = 0.6  # of the ridge: a chunk this small is read-bound, by the data sheet's numbers
CHUNKS_FIT = (0.5, 1.8)  # measured prefill over chunks x a step: that the chunks make it
PADDED = 1.3  # times the prompt: bucketing to a multiple of 8 or 64 pads less


def prefix_not_reused(view: View) -> Answer:
    """Prompts share a prefix, and it is computed again each time."""
    if view.goal is Goal.TPOT:
        return None
    fix = (
        "Let the shared prefix be reused: switch prefix caching on, keep what changes out of the"
        " front of the prompt, send requests of one prefix to one replica, and check that the model"
        " supports the cache."
    )
    pair = view.contrast("enable_prefix_caching", "prefix_caching", "disable_radix_cache", "cache_prompt")
    if pair is not None and pair.ratio >= 1.15 and _off(pair.worse):
        return tried(view, Cause.PREFIX_NOT_REUSED, pair, "the prefix cache off", fix)
    pair = view.contrast("prefix_cache_hit_rate")
    if pair is not None and _hits(pair.worse) < _hits(pair.better):
        return tried(view, Cause.PREFIX_NOT_REUSED, pair, "a lower prefix_cache_hit_rate", fix)
    for s in sorted(view.settings, key=lambda x: -(x.group.shared_prefix_tokens or 0)):
        g = s.group
        shared = g.shared_prefix_tokens or 0
        if not g.prompt_tokens or shared < SHARED * g.prompt_tokens:
            continue
        possible = shared / g.prompt_tokens
        fresh = next(
            (x for x in view.settings if x is not s and not x.group.shared_prefix_tokens and _alike(x, s)),
            None,
        )
        said = [f"{shared:,.0f} of {g.prompt_tokens:,.0f} prompt tokens are the same in each request"]
        if g.prefix_cache_hit_rate is not None:
            if g.prefix_cache_hit_rate >= HIT * possible:
                continue
            said.append(f"the prefix cache hits for {percent(g.prefix_cache_hit_rate)} of the tokens")
        elif g.cached_tokens is not None:
            if g.cached_tokens >= HIT * shared:
                continue
            said.append(f"{g.cached_tokens:,.0f} of them came from the cache")
        elif fresh is not None and s.ttft and fresh.ttft:
            if s.ttft < fresh.ttft * (1 - possible * LIKE_NEW):
                continue
            said.append(
                f"they take {seconds(s.ttft * 1e9)} to the first token, new ones"
                f" {seconds(fresh.ttft * 1e9)}: nothing was reused"
            )
        elif _off(s):
            said.append("the prefix cache is off")
        else:
            usual = s.prefill_with(g.prompt_tokens)
            if usual is None or s.prefill is None or s.prefill < LIKE_NEW * usual:
                continue
            said.append(
                f"prefill takes {seconds(s.prefill * 1e9)}, what reading all of it takes"
                f" ({seconds(usual * 1e9)})"
            )
        time = s.prefill or s.ttft
        whole = s.metric(view.goal) if view.goal is not Goal.THROUGHPUT else s.e2e
        part = time / max(whole, time) if time and whole else 1.0
        saved = part * (possible - (g.prefix_cache_hit_rate or 0))
        if time is None and view.goal is not Goal.TTFT:
            saved *= 0.5  # decode holds the rest, of unknown length
        return candidate(
            view,
            Cause.PREFIX_NOT_REUSED,
            Tier.FAULT,
            tuple(said),
            fix,
            tradeoff=("The cache takes KV memory."),
            gain=modelled(1 / (1 - min(0.95, saved)), 0.4),
            weight=saved,
            setting=s,
            confidence="high" if len(said) > 1 else "medium",
        )
    return None


def _hits(s: Setting) -> float:
    return s.group.prefix_cache_hit_rate or 0.0


def _off(s: Setting) -> bool:
    for name in ("enable_prefix_caching", "prefix_caching", "cache_prompt"):
        if name in s.knobs:
            return s.knobs[name] in (False, 0, "false", "off")
    return s.knobs.get("disable_radix_cache") in (True, 1, "true")


def _alike(one: Setting, other: Setting) -> bool:
    a, b = one.group.prompt_tokens, other.group.prompt_tokens
    return bool(a and b and max(a, b) <= 1.25 * min(a, b))


def small_prefill_chunk(view: View) -> Answer:
    """The chunk budget is so small that each chunk pays a whole weight read."""
    s = view.subject
    fix = (
        "Raise the token budget of a step so that a chunk fills the device (max_num_batched_tokens,"
        " chunked prefill size): a larger chunk costs the same weight read."
    )
    trade = (
        "A larger budget helps TTFT and throughput, and makes gaps between tokens longer (ITL)"
        " while prompts are read."
    )
    pair = view.contrast(*BUDGETS)
    if pair is not None and (pair.worse.budget or 0) < (pair.better.budget or 0):
        if (
            view.goal is not Goal.TPOT
            and (pair.worse.alone or pair.worse.width is None)
            and _small(pair.worse)
        ):
            return tried(view, Cause.SMALL_PREFILL_CHUNK, pair, "a smaller token budget", fix, trade)
    budget, new = s.budget, s.new_tokens
    if (
        view.goal is Goal.TPOT
        or not budget
        or not new
        or s.prefill is None
        or new < 2 * budget
        or not _small(s)
    ):
        return None
    whole = s.ttft if view.goal is Goal.TTFT else s.e2e
    chunks = math.ceil(new / budget)
    step = s.tpot or s.step_expected
    said = [f"a prompt of {new:,.0f} new tokens is read in {chunks} chunks of {budget:,.0f}"]
    if step:
        fits = s.prefill / (chunks * step)
        if not CHUNKS_FIT[0] <= fits <= CHUNKS_FIT[1] * max(1.0, s.width or 1.0):
            return None
        said.append(
            f"each takes about a decode step ({seconds(step * 1e9)}), which reads all weights once:"
            f" {seconds(chunks * step * 1e9)} of {seconds(s.prefill * 1e9)}"
        )
    large = s.prefill_with(new)
    if large is None and step:
        large = step * max(1.0, new / USUAL_RIDGE)
    left = min(large or s.prefill, s.prefill)
    saved = (s.prefill - left) / max(whole or s.prefill, s.prefill)
    return candidate(
        view,
        Cause.SMALL_PREFILL_CHUNK,
        Tier.FAULT,
        tuple(said),
        fix,
        tradeoff=trade,
        gain=modelled(1 / (1 - min(0.98, saved))),
        weight=saved,
        seconds=s.prefill,
        confidence="high" if step else "medium",
    )


def _small(s: Setting) -> bool:
    ridge = physics.ridge_tokens(s.shape, s.ceiling) if s.shape and s.ceiling else None
    return s.budget is not None and s.budget <= SMALL_CHUNK * max(USUAL_RIDGE, ridge or 0)


def padding(view: View) -> Answer:
    """Computed tokens are padding."""
    fix = (
        "Compute no padding: pad to the longest of the batch instead of to a fixed length, sort"
        " prompts by length"
        " before batching, or use unpadded (packed, continuous) batches."
    )
    pair = next(
        (p for p in view.pairs if p.worse.group.padded_prompt_tokens and "padded_prompt_tokens" in p.differs),
        None,
    )
    if pair is not None and (pair.worse.group.padded_prompt_tokens or 0) > (
        pair.better.group.padded_prompt_tokens or 0
    ):
        return tried(
            view,
            Cause.PADDING,
            pair,
            f"padded_prompt_tokens {pair.worse.group.padded_prompt_tokens:,.0f}",
            fix,
        )
    s, g = view.subject, view.subject.group
    if view.goal is Goal.TPOT or not g.padded_prompt_tokens or not g.prompt_tokens:
        return None
    if g.padded_prompt_tokens < PADDED * g.prompt_tokens:
        return None
    wasted = 1 - g.prompt_tokens / g.padded_prompt_tokens
    whole = s.metric(view.goal) if view.goal is not Goal.THROUGHPUT else s.e2e
    part = min(1.0, s.prefill / whole) if s.prefill and whole else 1.0
    saved = min(0.95, wasted * part)
    gain: Gain = modelled(1 / (1 - saved), 0.4) if s.prefill else measured(1 / (1 - saved))
    return candidate(
        view,
        Cause.PADDING,
        Tier.FAULT,
        (
            f"{percent(wasted)} of the prompt positions are padding: {g.padded_prompt_tokens:,.0f}"
            f" computed for {g.prompt_tokens:,.0f} tokens",
        ),
        fix,
        tradeoff=("Answers come in another order where prompts are sorted."),
        gain=gain,
        weight=saved,
        confidence="high",
    )
