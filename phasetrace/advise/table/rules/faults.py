"""Decode set up wrongly: weights that do not fit, no cache, a slow path, devices that wait."""

from __future__ import annotations

from phasetrace.advise.table.answer import Answer, Tier, candidate, modelled, tried
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import seconds
from phasetrace.model import Goal
from phasetrace.semconv import Cause

LONGER = 2.0  # times the output
PROPORTION = (
    0.5  # of the growth of the output is seen in the time of a token: recomputing grows with the square
)


def no_kv_cache(view: View) -> Answer:
    """Each step computes the whole sequence again."""
    fix = "Switch the KV cache on (use_cache=True), so that a step computes only the new token."
    trade = "The cache takes memory in proportion to batch x tokens."
    pair = view.contrast("use_cache", "gradient_checkpointing")
    if pair is not None and _cache_off(pair.worse):
        return tried(view, Cause.NO_KV_CACHE, pair, "use_cache off", fix, trade)
    s, g = view.subject, view.subject.group
    if _cache_off(s) and view.goal is not Goal.TTFT:
        each = s.tpot or (s.e2e / g.output_tokens if s.e2e and g.output_tokens else None)
        once = s.step_expected
        return candidate(
            view,
            Cause.NO_KV_CACHE,
            Tier.FAULT,
            (
                "`use_cache` is off: each token computes all tokens before it again",
                *((f"a token takes {seconds(each * 1e9)}",) if each else ()),
            ),
            fix,
            tradeoff=trade,
            gain=modelled(each / once, 0.6) if each and once and each > once else None,
            weight=0.8,
            confidence="high",
        )
    # Without a cache the time of a token grows in proportion to the tokens before it, and that of a request
    # with the square.
    for worse in view.settings:
        for better in view.settings:
            a, b = worse.group.output_tokens, better.group.output_tokens
            if not a or not b or a < LONGER * b or view.goal is Goal.TTFT:
                continue
            one, other = _each(worse), _each(better)
            if (
                one
                and other
                and one / other - 1 >= PROPORTION * (worse.context / better.context - 1)
                and one >= 1.5 * other
            ):
                if s.table.knobs.get("use_cache") is True or (s.kv_part or 0) > 0.2:
                    continue
                return candidate(
                    view,
                    Cause.NO_KV_CACHE,
                    Tier.FAULT,
                    (
                        f"a token takes {seconds(one * 1e9)} in {worse.name} with {a:,.0f} output"
                        f" tokens, {seconds(other * 1e9)} in"
                        f" {better.name} with {b:,.0f}: it grows with the text, as without a KV cache",
                    ),
                    fix,
                    tradeoff=trade,
                    gain=modelled(one / other, 0.5),
                    setting=worse,
                    weight=1 - other / one,
                    confidence="medium",
                )
    return None


def _cache_off(s: Setting) -> bool:
    """Switched off, or by gradient checkpointing, which training leaves on."""
    off = s.knobs.get("use_cache") in (False, "false", 0)
    return off or s.knobs.get("gradient_checkpointing") in (True, "true", 1)


def _each(s: Setting) -> float | None:
    return s.tpot or (s.e2e / s.group.output_tokens if s.e2e and s.group.output_tokens else None)
