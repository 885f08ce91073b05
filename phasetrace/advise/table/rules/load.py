"""Decode as it is asked for: how many tokens, how many sequences, and who else is served meanwhile."""

from __future__ import annotations

import math

from phasetrace.advise.table.answer import Answer, Tier, candidate, measured, modelled, tried
from phasetrace.advise.table.queue import MORE_SLOTS, at_cap
from phasetrace.advise.table.queue import more_throughput as _more
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
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
        confidence="high" if wider is not None and not at_cap(s) else "medium",
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
