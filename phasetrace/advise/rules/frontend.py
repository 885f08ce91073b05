"""Causes before the engine has the request."""

from __future__ import annotations

import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, doubt, predict
from phasetrace.advise.words import percent, seconds
from phasetrace.model import Finding, NotEnoughData, Part, Phase
from phasetrace.semconv import Cause

SHARE = 0.15  # of the requests' time: the line below which DESIGN.md calls a system healthy
TOKENIZING = 0.5  # of the frontend: then tokenising is what to speed up, else the application's own code
AVOIDABLE = 0.8  # some of it stays wherever it is done: arguments are checked, text becomes tokens


def frontend(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Time passes in the application before the engine has the request."""
    spent = evidence.phase_ns(Phase.FRONTEND)
    before_first = spent / max(1, sum(r.ttft_ns or 0 for r in evidence.requests))
    share = evidence.share(spent)
    if share < SHARE and not (evidence.goal == "ttft" and before_first >= SHARE):
        return None
    tokenizing = evidence.part_ns(Part.TOKENIZE, Phase.FRONTEND)
    mostly_tokenizing = tokenizing >= TOKENIZING * spent
    each = [float(r.phase_ns(Phase.FRONTEND)) for r in evidence.requests]
    spread = doubt(each)
    return Finding(
        cause=Cause.FRONTEND,
        phase=Phase.FRONTEND,
        ns=spent,
        share=share,
        confidence="high" if mostly_tokenizing else "medium",
        evidence=(
            f"{seconds(statistics.mean(each))} of a request pass before the engine has it:"
            f" {percent(share)} of its time, {percent(before_first)} of the time to its first token",
            f"{seconds(tokenizing)} of {seconds(spent)} are tokenising",
        ),
        recommendation=(
            "Take work out of the server's front: more API server processes, tokenising, media decoding and"
            " preprocessing off the event loop, more CPU cores."
            if evidence.engine != "transformers"
            else "Tokenise faster: many texts in one call, with a fast (Rust) tokenizer."
            if mostly_tokenizing
            else "Shorten or overlap what the application does before it calls the model."
        ),
        commands=evidence.typed(
            Cause.FRONTEND,
            (
                (
                    "tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True)\n"
                    'inputs = tokenizer(prompts, return_tensors="pt", padding=True)  # all prompts at once',
                )
                if mostly_tokenizing
                else (
                    "# prepare the next request while the model answers this one\n"
                    "with ThreadPoolExecutor(1) as ahead:\n"
                    "    upcoming = ahead.submit(prepare, next_request)\n"
                    "    model.generate(**inputs)",
                )
            ),
        ),
        tradeoff="Processes of the front need cores of their own."
        if evidence.engine != "transformers"
        else "Work done ahead holds memory, and is wasted when the request is not made.",
        prediction=predict(
            evidence, Saving(first_ns=spent * AVOIDABLE, least=0.5 - spread / 2, most=1 / AVOIDABLE)
        ),
    )
