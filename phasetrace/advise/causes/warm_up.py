"""Compilation, autotuning or graph capture on first use."""

from __future__ import annotations

import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, doubt, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.contrast import Pair
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.model import Goal, Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Warm the engine up before serving: send one request of each usual shape at start, keep the"
        " compile cache, and leave the first request out of the statistics."
    ),
    tradeoff="Start-up takes as much longer.",
    commands={
        "vllm": (
            "VLLM_CACHE_ROOT=/persistent/path  # keeps compiled graphs; send a request of each shape"
            " at start",
        ),
        "sglang": ("# leave out --skip-server-warmup",),
        "transformers": ("model.generate(**typical_inputs, max_new_tokens=8)  # once, before serving",),
    },
)
ONE_SHAPE = (
    'model.generate(**inputs, cache_implementation="static", max_new_tokens=n)  # one shape\n'
    'tokenizer(prompts, padding="max_length", max_length=bucket)'
)
ONE_OFF_SHARE = 0.01  # of all time; less is not worth a line
WARM_UP = 2.0  # times what a later request costs a new token: caches and noise stay below it
NO_CACHE = 8.0  # times: beyond, a prefix cache that helps later requests is no likely reason
TAIL = 5.0  # p95 of a lone request over its middle: nobody else can have held it back
COLD = 8.0  # times a prefill's expected time, of a request that is said to be the first


def in_steps(evidence: Evidence) -> Seen | None:
    """The first requests, or all of them, took longer than what they read and wrote should."""
    requests = sorted(
        (*evidence.breakdown.warm_up, *evidence.requests), key=lambda r: (r.request.arrival_ns, r.request.id)
    )
    one_off = evidence.breakdown.one_off_ns
    excess = sum(one_off.values())
    everything = sum(r.e2e_ns for r in requests)
    if not everything or excess < ONE_OFF_SHARE * everything:
        return None
    cold = [r for r in requests if one_off.get(r.request.id)]
    rest = [float(r.e2e_ns) for r in requests if not one_off.get(r.request.id)]
    in_prefill = sum(min(one_off[r.request.id], r.phase_ns(Phase.PREFILL)) for r in cold)
    spread = doubt(rest)
    recurring = not rest
    usual = statistics.median(rest) if rest else 0.0
    return Seen(
        excess,
        evidence=(
            f"one-off work in {count(len(cold), 'request')}, the first of {len(requests):,}, took"
            f" {seconds(excess)}: {percent(excess / everything)} of all time",
            f"the first took {seconds(cold[0].e2e_ns)}, the later ones"
            f" {seconds(usual)} (median): {times(cold[0].e2e_ns / usual)}"
            if rest
            else "every request shows it: shapes change, and each shape is prepared again",
        ),
        confidence="medium" if recurring or len(rest) < 3 else "high",
        fix="Keep shapes fixed, so that what was prepared once serves all requests." if recurring else "",
        commands={"transformers": (ONE_SHAPE,)} if recurring else {},
        share=excess / everything,
        prediction=predict(
            evidence,
            Saving(
                first_ns=in_prefill,
                decode_ns=excess - in_prefill,
                least=1 - spread,
                most=1 + spread / 2,
            ),
            requests,
        ),
    )


def in_table(view: View) -> Told | None:
    """The first request is set beside a later one or beside the device, or a lone one has a long tail."""
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
                    pair,
                    "order first",
                    confidence=None if sure else "medium",
                )
    s, g = view.subject, view.subject.group
    if g.order == "first" and s.prefill and s.new_tokens:
        usual = s.prefill_with(s.new_tokens)
        if usual and s.prefill >= COLD * usual:
            return Told(
                Tier.FAULT,
                (
                    f"the first request took {seconds(s.prefill * 1e9)} to read {s.new_tokens:,.0f}"
                    f" tokens, {times(s.prefill / usual)}"
                    " of what this device takes",
                ),
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
        return Told(
            Tier.FAULT,
            (
                f"one request at a time, and the slow end of TTFT is {times(tail / g.ttft_s)} of its middle"
                f" ({seconds(tail * 1e9)} and {seconds(g.ttft_s * 1e9)}): no other request can have"
                " caused that",
            ),
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


RULE = Rule(Cause.WARM_UP, WORDS, in_steps, in_table)
