"""Reading the prompt: a first call that sets up, prompts long, repeated, cut too small or padded."""

from __future__ import annotations

import math

from phasetrace.advise.table.answer import Answer, Gain, Tier, candidate, measured, modelled, tried
from phasetrace.advise.table.contrast import Pair
from phasetrace.advise.table.setting import BUDGETS, Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.analyze import physics
from phasetrace.model import Goal
from phasetrace.semconv import Cause

OWNS = 0.5  # of TTFT: prefill owns it when all else together is less
OWNS_E2E = 0.4  # of the whole request: decode has many more steps, so that much is already unusual
WARM_UP = 2.0  # times what a later request costs a new token: caches and noise stay below it
NO_CACHE = 8.0  # times: beyond, a prefix cache that helps later requests is no likely reason
TAIL = 5.0  # p95 of a lone request over its middle: nobody else can have held it back
COLD = 8.0  # times a prefill's expected time, of a request that is said to be the first
LARGE_ALONE = 2.0  # times, on one device, where nothing has to be exchanged
LARGE = 2.5  # times what the engine should take: beyond, prefill is not at the device's bound
SHARED = 0.3  # of the prompt is the same each time: worth a cache
HIT = 0.5  # of what could be reused is reused: below, the cache does not do its work
LIKE_NEW = 0.7  # of the time of a new prompt: a prompt that is in the cache takes far less
SMALL_CHUNK = 0.6  # of the ridge: a chunk this small is read-bound, by the data sheet's numbers
CHUNKS_FIT = (0.5, 1.8)  # measured prefill over chunks x a step: that the chunks make it
USUAL_RIDGE = (
    256  # tokens from which on a forward is bound by arithmetic on common devices with 16-bit weights
)
PADDED = 1.3  # times the prompt: bucketing to a multiple of 8 or 64 pads less
LIKE_DECODE = 0.25  # of a decode step, for a token of a prompt: on GPUs it is a hundredth
LONG = 1000  # tokens: where the device is unknown, a prompt below that is not called long
SHORTER = 0.5  # of the prompt, where nothing says how much less would do


def warm_up(view: View) -> Answer:
    """Compilation, autotuning or capture on first use, paid by the first request."""
    fix = (
        "Warm the engine up before serving: send one request of each usual shape at start, keep the"
        " compile cache, and leave the first request out of the statistics."
    )
    for pair in view.pairs:
        if pair.worse.group.order == "first" and pair.better.group.order == "later" and not _compiles(pair):
            excess = _excess(pair)
            if excess >= WARM_UP:
                sure = excess >= NO_CACHE or None not in (
                    pair.worse.group.cached_tokens,
                    pair.better.group.cached_tokens,
                )
                return tried(
                    view,
                    Cause.WARM_UP,
                    pair,
                    "order first",
                    fix,
                    "Start takes longer.",
                    confidence=None if sure else "medium",
                )
    s, g = view.subject, view.subject.group
    if g.order == "first" and s.prefill and s.new_tokens:
        usual = s.prefill_with(s.new_tokens)
        if usual and s.prefill >= COLD * usual:
            return candidate(
                view,
                Cause.WARM_UP,
                Tier.FAULT,
                (
                    f"the first request took {seconds(s.prefill * 1e9)} to read {s.new_tokens:,.0f}"
                    f" tokens, {times(s.prefill / usual)}"
                    " of what this device takes",
                ),
                fix,
                gain=modelled(s.prefill / usual, 0.5),
                weight=1 - usual / s.prefill,
            )
    tail = g.ttft_p95_s or g.ttft_p99_s
    if (
        tail
        and g.ttft_s
        and s.alone
        and tail >= TAIL * g.ttft_s
        and not (g.queue_s and g.queue_s > 0.3 * tail)
    ):
        return candidate(
            view,
            Cause.WARM_UP,
            Tier.FAULT,
            (
                f"one request at a time, and the slow end of TTFT is {times(tail / g.ttft_s)} of its middle"
                f" ({seconds(tail * 1e9)} and {seconds(g.ttft_s * 1e9)}): no other request can have"
                " caused that",
            ),
            fix + " Measure the first request separately.",
            weight=1 - g.ttft_s / tail,
            confidence="low",
        )
    return None


def _excess(pair: Pair) -> float:
    """How much more the first request cost, after what it had to read and write more."""
    a, b = pair.worse, pair.better
    work = 1.0
    if pair.goal is Goal.TTFT and a.new_tokens and b.new_tokens:
        work = max(1.0, a.new_tokens / b.new_tokens)
    if pair.goal is Goal.E2E and a.group.output_tokens and b.group.output_tokens:
        work = max(1.0, a.group.output_tokens / b.group.output_tokens)
    return pair.ratio / work


def _compiles(pair: Pair) -> bool:
    """Whether both asked for a grammar: then the first paid for that, not for the engine's start."""
    return bool(pair.worse.group.grammar and pair.better.group.grammar)


def long_prompt(view: View) -> Answer:
    """Prefill owns the time and runs at what the device can do."""
    s = view.subject
    new = s.new_tokens
    if view.goal in (Goal.TPOT, Goal.THROUGHPUT) or s.prefill is None:
        return None
    whole = s.ttft if view.goal is Goal.TTFT else s.e2e
    if not whole or s.prefill < (OWNS if view.goal is Goal.TTFT else OWNS_E2E) * whole:
        return None
    if new is None:
        return None
    tokens = new * s.together
    expected = s.prefill_with(tokens)
    if expected is None and (s.group.prefill_s is None or new < LONG):
        return None  # what else TTFT holds is not known, nor what prefill should take
    slower = s.prefill / expected if expected else None
    if slower is not None and slower > (LARGE if s.devices > 1 else LARGE_ALONE):
        return None
    if (
        s.tpot
        and new > USUAL_RIDGE / 8
        and s.prefill / tokens > LIKE_DECODE * s.tpot
        and s.table.hardware.kind != "cpu"
    ):
        return None  # a token read costs about as much as one written: that is not what bounds a GPU
    share = s.prefill / whole
    left = s.prefill_with(tokens * SHORTER)
    part = 1 - (left / expected if left and expected else SHORTER)
    return candidate(
        view,
        Cause.LONG_PROMPT,
        Tier.BOUND,
        (
            f"prefill takes {seconds(s.prefill * 1e9)}, {percent(share)} of"
            f" {'TTFT' if view.goal is Goal.TTFT else 'the request'},"
            f" for {tokens:,.0f} new tokens",
            *(
                (
                    f"a well set-up engine needs about {seconds(expected * 1e9)} for that on this device:"
                    " none of it is waste",
                )
                if expected
                else ("the device's arithmetic is not known: that it runs at its bound was not checked",)
            ),
        ),
        "Read fewer new prompt tokens: a shorter prompt, or a shared prefix put in front so that its"
        " cache is reused;"
        " else more compute (tensor parallel, fp8). Nothing else is wrong.",
        tradeoff="Less context may cost quality.",
        gain=modelled(1 / (1 - share * part)),
        weight=share * part,
        seconds=s.prefill,
        confidence="medium" if expected else "low",
    )


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
