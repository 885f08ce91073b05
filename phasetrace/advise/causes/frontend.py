"""Time before the engine's queue: HTTP handling, tokenising, media decoding, a blocked event loop."""

from __future__ import annotations

import statistics

from phasetrace.advise.causes import client_buffered_stream
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, doubt, predict
from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.told import Told, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.model import Goal, Part, Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Take work out of the server's front: more API server processes, tokenising, media decoding and"
        " preprocessing off the event loop, more CPU cores."
    ),
    tradeoff="Processes of the front need cores of their own.",
    commands={
        "vllm": ("--api-server-count 4",),
        "sglang": ("--tokenizer-worker-num 4",),
        "transformers": (
            "tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True)\n"
            'inputs = tokenizer(prompts, return_tensors="pt", padding=True)  # all prompts at once',
        ),
    },
)
TOKENISING = 0.5  # of the frontend: then tokenising is what to speed up, else the application's own code
AVOIDABLE = 0.8  # some of it stays wherever it is done: arguments are checked, text becomes tokens
NOTICED_S = 1.0  # alone, without the whole it is a part of: no front should take a second
FRONTS = ("api_server_count", "tokenizer_worker_num", "use_fast", "workers", "uvloop")
TOKENISE = (
    "Tokenise faster: use the fast (Rust) tokeniser, many texts in one call and long ones split, and tokenise"
    " outside the event loop."
)
AHEAD = (
    "# prepare the next request while the model answers this one\n"
    "with ThreadPoolExecutor(1) as ahead:\n"
    "    upcoming = ahead.submit(prepare, next_request)\n"
    "    model.generate(**inputs)"
)


def in_steps(evidence: Evidence) -> Seen | None:
    """Time passes in the application before the engine has the request."""
    spent = evidence.phase_ns(Phase.FRONTEND)
    before_first = spent / max(1, sum(r.ttft_ns or 0 for r in evidence.requests))
    share = evidence.share(spent)
    if share < WORTH and not (evidence.goal is Goal.TTFT and before_first >= WORTH):
        return None
    tokenize = evidence.part_ns(Part.TOKENIZE, Phase.FRONTEND)
    tokenising, called = tokenize >= TOKENISING * spent, evidence.engine == "transformers"
    each = [float(r.phase_ns(Phase.FRONTEND)) for r in evidence.requests]
    spread = doubt(each)
    return Seen(
        spent,
        evidence=(
            f"{seconds(statistics.mean(each))} of a request pass before the engine has it:"
            f" {percent(share)} of its time, {percent(before_first)} of the time to its first token",
            f"{seconds(tokenize)} of {seconds(spent)} are tokenising",
        ),
        confidence="high" if tokenising else "medium",
        fix=TOKENISE
        if tokenising
        else "Shorten or overlap what the application does before it calls the model."
        if called
        else "",
        tradeoff="Work done ahead holds memory, and may be wasted." if called else "",
        commands={} if tokenising else {"transformers": (AHEAD,)},
        prediction=predict(
            evidence, Saving(first_ns=spent * AVOIDABLE, least=0.5 - spread / 2, most=1 / AVOIDABLE)
        ),
    )


def in_table(view: View) -> Told | None:
    """A time that is stated, or what TTFT holds beside queue and prefill; or the user tried another front."""
    if view.goal is Goal.TPOT:
        return None
    pair = view.contrast(*FRONTS)
    if pair is not None and not pair.worse.group.order:
        return tried(view, pair, "the server's front as it is")
    s, g = view.subject, view.subject.group
    stated = max(
        (v for v in (x.group.frontend_s or x.group.tokenize_s for x in view.settings) if v), default=None
    )
    if stated is not None and s.before_queue is None:
        s = next(x for x in view.settings if stated in (x.group.frontend_s, x.group.tokenize_s))
        g = s.group
    if g.frontend_s is None and g.tokenize_s is None and client_buffered_stream.in_table(view) is not None:
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
    if spent < WORTH * total:
        return None
    explicit = g.frontend_s is not None or g.tokenize_s is not None
    tokenising = g.tokenize_s is not None and g.tokenize_s >= TOKENISING * spent
    pair = next((p for p in view.pairs if tokenising and p.worse is s and p.better.group.tokenize_s), None)
    return Told(
        Tier.MEASURED if explicit else Tier.FAULT,
        (
            f"{'tokenising' if tokenising else 'what lies before the queue'} takes {seconds(spent * 1e9)},"
            f" {percent(spent / total)} of the {'first token' if view.goal is Goal.TTFT else 'request'}",
            f"the same in {pair.better.name} takes 1/{times(pair.ratio)}" if pair else None,
        ),
        fix=TOKENISE if tokenising else "",
        gain=without(spent, total),
        weight=spent / total,
        seconds=spent,
        setting=s,
    )


RULE = Rule(Cause.FRONTEND, WORDS, in_steps, in_table)
