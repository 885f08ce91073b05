"""Time outside the engine: the client in front of it, and the server's own front."""

from __future__ import annotations

import re

from phasetrace.advise.table.answer import Answer, Tier, candidate, tried, without
from phasetrace.advise.table.contrast import like_with_like
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.analyze import expected
from phasetrace.model import Goal
from phasetrace.semconv import Cause

OWNS = 0.3  # of the goal's metric: a part below that is not what to change first
BESIDE = 1.4  # times: client and server clocks of one request differ by network and noise, not by this
UNSENT = 0.6  # of what the client keeps open is inside the engine: what is missing waits before it
LUMPS = 0.25  # of the mean: the usual gap between chunks is far below the mean time of a token
STREAMED = 0.8  # of the whole request has passed when a stream's first token is seen
HELD_BACK = 1.5  # times the other's TTFT, of a stream under the same load
CAUGHT_UP = 0.75  # of the other's gap between tokens: what was held back comes at once
NOTICED_S = 1.0  # alone, without the whole it is a part of: no front should take a second
ENOUGH_TOKENS = 16  # of output: with fewer, the first token comes late in any stream

LIMITS = re.compile(
    r"connection|semaphore|client_(?:limit|pool|concurrency)|http_pool"
)  # knobs of the client
BUFFERS = re.compile(r"buffering|x_accel|gzip|nodelay|read_buffer")  # knobs of what lies between
FRONTS = ("api_server_count", "tokenizer_worker_num", "use_fast", "workers", "uvloop")
_FRONT = (
    "Take work out of the server's front: more API server processes, tokenising, media decoding and"
    " preprocessing off"
    " the event loop, more CPU cores."
)
_SEND_MORE = (
    "Let the client keep more requests open: raise its concurrency limit (semaphore, connection pool,"
    " threads), also"
    " the connection limit of a proxy between."
)


def _at_once(s: Setting, each: float) -> bool:
    """Whether tokens came faster than an engine writes them; else TTFT may as well be a wait in its queue."""
    return abs(each) < (s.step_expected / 2 if s.step_expected else expected.HOST_STEP_S)


def client_gate(view: View) -> Answer:
    """The client holds requests back: a wait it states, a total beyond the server's, requests never sent."""
    s, g = view.subject, view.subject.group
    total = g.client_e2e_s or s.e2e or s.ttft
    if g.client_wait_s and total and g.client_wait_s >= OWNS * total:
        return candidate(
            view,
            Cause.CLIENT_GATE,
            Tier.MEASURED,
            (
                f"the client held requests for {seconds(g.client_wait_s * 1e9)} before it sent them",
                f"that is {percent(min(1.0, g.client_wait_s / total))} of what its user waits",
            ),
            _SEND_MORE,
            tradeoff="More open requests queue in the server instead, where they can be batched.",
            gain=without(g.client_wait_s, total),
            weight=min(1.0, g.client_wait_s / total),
            seconds=g.client_wait_s,
        )
    limits = {n for p in view.pairs for n in p.differs if LIMITS.search(n.lower())}
    limited = view.contrast(*limits)
    if limited is not None:
        return tried(view, Cause.CLIENT_GATE, limited, " ".join(sorted(limits)), _SEND_MORE)
    server = g.e2e_s
    if g.client_e2e_s and server and g.client_e2e_s >= BESIDE * server and view.goal is not Goal.TPOT:
        beside = g.client_e2e_s - server
        return candidate(
            view,
            Cause.CLIENT_GATE,
            Tier.MEASURED,
            (
                f"the client counts {seconds(g.client_e2e_s * 1e9)} a request, the server"
                f" {seconds(server * 1e9)}",
            ),
            _SEND_MORE,
            tradeoff="More open requests queue in the server instead, where they can be batched.",
            weight=beside / g.client_e2e_s,
            confidence="medium",
            seconds=beside,
        )
    inside = None if g.running is None or g.waiting is None else g.running + g.waiting
    if g.concurrency and inside is not None and g.concurrency >= 4 and inside <= UNSENT * g.concurrency:
        return candidate(
            view,
            Cause.CLIENT_GATE,
            Tier.FAULT,
            (
                f"the client keeps {count(g.concurrency, 'request')} open and the engine holds {inside:,.0f}:"
                " the others wait before it",
            ),
            _SEND_MORE,
            weight=1 - inside / g.concurrency,
        )
    pair = next((p for p in view.pairs if not p.differs and p.worse.group.client_e2e_s and not server), None)
    if pair and pair.worse.group.e2e_s is None and pair.better.group.e2e_s is not None:
        return tried(
            view, Cause.CLIENT_GATE, pair, "what stands between client and engine", _SEND_MORE, sure=False
        )
    return None


def client_buffered_stream(view: View) -> Answer:
    """The server streams, and the client sees it late or in lumps."""
    g = view.subject.group
    fix = (
        "Read the stream as it comes: switch buffering off in the client and in each proxy between,"
        " use a larger read"
        " buffer, and flush after each event."
    )
    if (
        g.client_ttft_s
        and g.ttft_s
        and g.client_ttft_s >= BESIDE * g.ttft_s
        and view.goal in (Goal.TTFT, Goal.E2E)
    ):
        late = g.client_ttft_s - g.ttft_s
        return candidate(
            view,
            Cause.CLIENT_BUFFERED_STREAM,
            Tier.MEASURED,
            (
                f"the server's first token takes {seconds(g.ttft_s * 1e9)}, the client sees it after"
                f" {seconds(g.client_ttft_s * 1e9)}",
            ),
            fix,
            confidence="high" if g.streaming else "medium",
            weight=late / g.client_ttft_s,
            seconds=late,
        )
    buffers = {n for p in view.pairs for n in p.differs if BUFFERS.search(n.lower())}
    buffered = view.contrast(*buffers)
    if buffered is not None and buffered.goal is not Goal.THROUGHPUT:
        return tried(view, Cause.CLIENT_BUFFERED_STREAM, buffered, " ".join(sorted(buffers)), fix)
    for pair in view.pairs:
        later = like_with_like(pair.worse, pair.better, Goal.TTFT)
        gaps = like_with_like(pair.worse, pair.better, Goal.TPOT)
        if later and gaps and later >= HELD_BACK and gaps <= CAUGHT_UP and not pair.differs:
            if pair.worse.group.streaming:
                what = "a first token that is late and tokens that then come faster"
                return tried(view, Cause.CLIENT_BUFFERED_STREAM, pair, what, fix)
    e2e, ttft = g.client_e2e_s or g.e2e_s, g.client_ttft_s or g.ttft_s
    written = g.output_tokens or g.max_tokens or 0
    if g.streaming and e2e and ttft and written >= ENOUGH_TOKENS and STREAMED * e2e <= ttft <= e2e / STREAMED:
        known = (g.queue_s or 0) + (g.prefill_s or 0)
        told = g.queue_s is not None and g.prefill_s is not None
        if known < OWNS * ttft and (told or _at_once(view.subject, (e2e - ttft) / written)):
            return candidate(
                view,
                Cause.CLIENT_BUFFERED_STREAM,
                Tier.FAULT,
                (
                    f"streaming is on, and the first of {written:,.0f} tokens is seen after"
                    f" {percent(ttft / e2e)} of the request",
                ),
                fix,
                weight=0.8,
            )
    tpot = g.tpot_s
    if g.streaming and tpot and g.itl_p50_s is not None and not g.speculative_tokens:
        tail = g.itl_max_s or g.itl_p99_s
        if g.itl_p50_s < LUMPS * tpot and tail and tail > 4 * tpot:
            return candidate(
                view,
                Cause.CLIENT_BUFFERED_STREAM,
                Tier.FAULT,
                (
                    f"tokens come in lumps: the usual gap is {seconds(g.itl_p50_s * 1e9)}, the mean"
                    f" {seconds(tpot * 1e9)}, the longest {seconds(tail * 1e9)}",
                ),
                fix,
                weight=0.5,
            )
    return None


def frontend(view: View) -> Answer:
    """Before the engine's queue: HTTP handling, tokenising, media, a blocked event loop."""
    if view.goal is Goal.TPOT:
        return None
    pair = view.contrast(*FRONTS)
    if pair is not None and not pair.worse.group.order:
        return tried(view, Cause.FRONTEND, pair, "the server's front as it is", _FRONT)
    s, g = view.subject, view.subject.group
    stated = max(
        (v for v in (x.group.frontend_s or x.group.tokenize_s for x in view.settings) if v), default=None
    )
    if stated is not None and s.before_queue is None:
        s = next(x for x in view.settings if stated in (x.group.frontend_s, x.group.tokenize_s))
        g = s.group
    if g.frontend_s is None and g.tokenize_s is None and client_buffered_stream(view) is not None:
        return None  # what seems to lie before the queue is a stream that was held back
    spent, total = s.before_queue, s.metric(view.goal) if view.goal is not Goal.THROUGHPUT else s.e2e
    if spent is None or spent <= 0:
        return None
    whole = total or s.ttft
    if (
        (whole is None or whole <= spent * 1.01)
        and g.ttft_s is None
        and g.e2e_s is None
        and spent < NOTICED_S
    ):
        return None  # a part without its whole
    total = max(whole or spent, spent)
    if spent < OWNS * total:
        return None
    explicit = g.frontend_s is not None or g.tokenize_s is not None
    tokenising = g.tokenize_s is not None and g.tokenize_s >= 0.5 * spent
    pair = next((p for p in view.pairs if tokenising and p.worse is s and p.better.group.tokenize_s), None)
    fix = (
        _FRONT
        if not tokenising
        else (
            "Tokenise less at a time: split the text, use the fast (Rust) tokeniser, and tokenise outside"
            " the event loop."
        )
    )
    return candidate(
        view,
        Cause.FRONTEND,
        Tier.MEASURED if explicit else Tier.FAULT,
        (
            f"{'tokenising' if tokenising else 'what lies before the queue'} takes {seconds(spent * 1e9)},"
            f" {percent(spent / total)} of the {'first token' if view.goal is Goal.TTFT else 'request'}",
            *((f"the same in {pair.better.name} takes 1/{times(pair.ratio)}",) if pair else ()),
        ),
        fix,
        tradeoff="Processes of the front need cores of their own.",
        gain=without(spent, total),
        weight=spent / total,
        seconds=spent,
        setting=s,
    )
