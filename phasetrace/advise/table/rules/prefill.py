"""Reading the prompt: a first call that sets up, prompts long, repeated, cut too small or padded."""

from __future__ import annotations

from phasetrace.advise.table.answer import Answer, Tier, candidate, modelled, tried
from phasetrace.advise.table.contrast import Pair
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
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
USUAL_RIDGE = (
    256  # tokens from which on a forward is bound by arithmetic on common devices with 16-bit weights
)
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
