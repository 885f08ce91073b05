"""The server streamed, the client or a proxy saw it late or in lumps."""

from __future__ import annotations

import re

from phasetrace.advise.causes.client_gate import BESIDE
from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.rule import Rule, Words
from phasetrace.advise.table.contrast import like_with_like
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.analyze import expected
from phasetrace.model import Goal
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Read the stream as it comes: switch buffering off in the client and in each proxy between, use a"
        " larger read buffer, and flush after each event."
    ),
    tradeoff="Events that are passed on one by one are many small messages.",
    commands={},
)
LUMPS = 0.25  # of the mean: the usual gap between chunks is far below the mean time of a token
STREAMED = 0.8  # of the whole request has passed when a stream's first token is seen
HELD_BACK = 1.5  # times the other's TTFT, of a stream under the same load
CAUGHT_UP = 0.75  # of the other's gap between tokens: what was held back comes at once
ENOUGH_TOKENS = 16  # of output: with fewer, the first token comes late in any stream
BUFFERS = re.compile(r"buffering|x_accel|gzip|nodelay|read_buffer")  # knobs of what lies between


def in_table(view: View) -> Told | None:
    """The client's first token is later than the server's, or tokens come in lumps or all at once."""
    g = view.subject.group
    if (
        g.client_ttft_s
        and g.ttft_s
        and g.client_ttft_s >= BESIDE * g.ttft_s
        and view.goal in (Goal.TTFT, Goal.E2E)
    ):
        late = g.client_ttft_s - g.ttft_s
        return Told(
            Tier.MEASURED,
            (
                f"the server's first token takes {seconds(g.ttft_s * 1e9)}, the client sees it after"
                f" {seconds(g.client_ttft_s * 1e9)}",
            ),
            confidence="high" if g.streaming else "medium",
            weight=late / g.client_ttft_s,
            seconds=late,
        )
    buffers = {n for p in view.pairs for n in p.differs if BUFFERS.search(n.lower())}
    buffered = view.contrast(*buffers)
    if buffered is not None and buffered.goal is not Goal.THROUGHPUT:
        return tried(view, buffered, " ".join(sorted(buffers)))
    for pair in view.pairs:
        later = like_with_like(pair.worse, pair.better, Goal.TTFT)
        gaps = like_with_like(pair.worse, pair.better, Goal.TPOT)
        if later and gaps and later >= HELD_BACK and gaps <= CAUGHT_UP and not pair.differs:
            if pair.worse.group.streaming:
                what = "a first token that is late and tokens that then come faster"
                return tried(view, pair, what)
    e2e, ttft = g.client_e2e_s or g.e2e_s, g.client_ttft_s or g.ttft_s
    written = g.output_tokens or g.max_tokens or 0
    if g.streaming and e2e and ttft and written >= ENOUGH_TOKENS and STREAMED * e2e <= ttft <= e2e / STREAMED:
        known = (g.queue_s or 0) + (g.prefill_s or 0)
        told = g.queue_s is not None and g.prefill_s is not None
        if known < WORTH * ttft and (told or _at_once(view.subject, (e2e - ttft) / written)):
            return Told(
                Tier.FAULT,
                (
                    f"streaming is on, and the first of {written:,.0f} tokens is seen after"
                    f" {percent(ttft / e2e)} of the request",
                ),
                weight=0.8,
            )
    tpot = g.tpot_s
    if g.streaming and tpot and g.itl_p50_s is not None and not g.speculative_tokens:
        tail = g.itl_max_s or g.itl_p99_s
        if g.itl_p50_s < LUMPS * tpot and tail and tail > 4 * tpot:
            return Told(
                Tier.FAULT,
                (
                    f"tokens come in lumps: the usual gap is {seconds(g.itl_p50_s * 1e9)}, the mean"
                    f" {seconds(tpot * 1e9)}, the longest {seconds(tail * 1e9)}",
                ),
                weight=0.5,
            )
    return None


def _at_once(s: Setting, each: float) -> bool:
    """Whether tokens came faster than an engine writes them; else TTFT may as well be a wait in its queue."""
    return abs(each) < (s.step_expected / 2 if s.step_expected else expected.HOST_STEP_S)


RULE = Rule(Cause.CLIENT_BUFFERED_STREAM, WORDS, None, in_table)
