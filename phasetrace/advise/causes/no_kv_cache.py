"""Each step recomputes the whole prefix."""

from __future__ import annotations

import numpy as np

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict_between
from phasetrace.advise.ranking import Tier
from phasetrace.advise.recompute import decode_rows_of, recomputes
from phasetrace.advise.ridge import left, ridge
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds
from phasetrace.analyze.non_negative import non_negative
from phasetrace.analyze.rates import LEAST_RANGE
from phasetrace.analyze.step_table import UNKNOWN
from phasetrace.model import Goal, Ints, Part, Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix="Switch the KV cache on (use_cache=True), so that a step computes only the new token.",
    tradeoff="The cache takes memory in proportion to batch x tokens.",
    commands={
        "transformers": (
            "model.config.use_cache = True\nmodel.generation_config.use_cache = True",
            "model.generate(**inputs, use_cache=True)",
            "model.gradient_checkpointing_disable()  # training leaves it on, and it switches the cache off",
        )
    },
)
SHARE = 0.05  # of the time: with less decode there is little to win, however it is computed
UNSEEN = (0.2, 0.05, 0.5)  # of a step stays: likely, least, most, where its positions are not known
LONGER = 2.0  # times the output
PROPORTION = (
    0.5  # of the growth of the output is seen in the time of a token: recomputing grows with the square
)


def in_steps(evidence: Evidence) -> Seen | None:
    """Decode steps compute several positions for each sequence, or the setting says so."""
    affected = [r for r in evidence.requests if recomputes(evidence, r)]
    decode = sum(r.phase_ns(Phase.DECODE) for r in affected)
    if not affected or decode < SHARE * evidence.total_ns:
        return None
    rows = [rows for r in affected if (rows := decode_rows_of(evidence, r))]
    computed = np.concatenate([evidence.table.computed_tokens[r.begin : r.end] for r in rows])
    forwards = evidence.table.parts.column(Part.FORWARD)
    forward = np.concatenate([forwards[r.begin : r.end] for r in rows])
    sequences = max(1, len(affected[0].request.sequences))
    known = computed != UNKNOWN
    spent = float(forward.sum())
    stays = _stays(evidence, computed[known], forward[known], sequences)
    off = all(r.request.settings.get("use_cache") is False for r in affected)
    per_step = computed[known].mean() / sequences if known.any() else 0
    return Seen(
        decode,
        evidence=(
            f"a decode step computes {per_step:,.0f} positions a sequence, where one is new"
            if per_step
            else None,
            f"decode is {percent(evidence.share(decode))} of the time in {count(len(affected), 'request')}",
            "`use_cache` is False in their settings" if off else None,
        ),
        prediction=predict_between(evidence, [Saving(decode_ns=spent * (1 - share)) for share in stays]),
    )


def _stays(evidence: Evidence, computed: Ints, forward: Ints, sequences: int) -> tuple[float, float, float]:
    """The share of these steps that stays where each computes one position a sequence: likely, least, most.

    That lies far outside of what was seen: the ridge says from where on a step gets no shorter. What steps
    of other lengths show not to depend on the length stays in any case.
    """
    least, likely, most = ridge(evidence)
    if not len(computed):
        return UNSEEN
    positions, step = float(computed.mean()), float(forward.mean())
    fixed = 0.0
    if computed.max() >= LEAST_RANGE * computed.min():
        points = np.stack([np.ones(len(computed)), computed.astype(np.float64)], axis=1)
        fixed = min(1.0, float(non_negative(points, forward.astype(np.float64))[0]) / max(step, 1.0))
    floor, usual, ceiling = (left(each, positions, sequences) for each in (least, likely, most))
    return max(fixed, usual), floor, max(fixed, ceiling)


def in_table(view: View) -> Told | None:
    """The user tried with it, the setting says so, or the time of a token grows with the text."""
    pair = view.contrast("use_cache", "gradient_checkpointing")
    if pair is not None and _cache_off(pair.worse):
        return tried(view, pair, "use_cache off")
    s, g = view.subject, view.subject.group
    if _cache_off(s) and view.goal is not Goal.TTFT:
        each = s.tpot or (s.e2e / g.output_tokens if s.e2e and g.output_tokens else None)
        once = s.step_expected
        return Told(
            Tier.FAULT,
            (
                "`use_cache` is off: each token computes all tokens before it again",
                f"a token takes {seconds(each * 1e9)}" if each else None,
            ),
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
                return Told(
                    Tier.FAULT,
                    (
                        f"a token takes {seconds(one * 1e9)} in {worse.name} with {a:,.0f} output"
                        f" tokens, {seconds(other * 1e9)} in"
                        f" {better.name} with {b:,.0f}: it grows with the text, as without a KV cache",
                    ),
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


RULE = Rule(Cause.NO_KV_CACHE, WORDS, in_steps, in_table)
