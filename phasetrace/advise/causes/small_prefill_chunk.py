"""The chunk budget is so small that each chunk pays a whole weight read."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from phasetrace.advise.chunks import read_whole
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.queueing import shorter_queue
from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.ridge import GPU
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.analyze import physics
from phasetrace.analyze.metrics import busy_ns
from phasetrace.model import Goal, Phase, RequestBreakdown
from phasetrace.semconv import Cause

FIX = (
    "Raise the token budget of a step{} so that a chunk fills the device (max_num_batched_tokens, chunked"
    " prefill size): a larger chunk costs the same weight read."
)
WORDS = Words(
    fix=FIX.format(""),
    tradeoff=(
        "A larger budget helps TTFT and throughput, and makes gaps between tokens longer (ITL) while"
        " prompts are read."
    ),
    commands={
        "vllm": ("--max-num-batched-tokens 4096",),
        "sglang": ("--chunked-prefill-size 4096",),
        "tgi": ("--max-batch-prefill-tokens 4096",),
        "tensorrt-llm": ("trtllm-serve --max_num_tokens 4096",),
        "llama.cpp": ("llama-server --ubatch-size 1024 --batch-size 2048",),
    },
)
CHUNKS = 2  # a prompt that fits into one step is in no chunks
BOTTLENECK = 0.5  # of the time prompts are read: then those behind wait for the reading, not for a slot
LEAST_BUDGET = 64  # nobody sets less: a shorter prompt is in one chunk, whatever the budget
CHUNKING = ("vllm", "sglang")  # read long prompts in chunks; a trace of theirs may not say of how many tokens
UNTOLD = "the token budget of a step (`--engine-config` with the server's log says it)"
USUAL_BUDGET, LARGEST_BUDGET = 2048, 16_384  # vLLM's own defaults are in between
PEAK_RIDGE = 256.0  # tokens, by data sheets, where the device is not known: 150 to 300 from A100 to H200
SMALL_CHUNK = 0.6  # of the ridge: a chunk this small is read-bound, by the data sheet's numbers
CHUNKS_FIT = (0.5, 1.8)  # a chunk's time over a decode step's: both are then one reading of the weights


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """A chunk takes about as long as a decode step, and larger ones would read prompts in less time."""
    if evidence.goal is Goal.TPOT:
        return None
    budget = _budget(evidence)
    prefill = evidence.phase_ns(Phase.PREFILL)
    whole = evidence.whole_ns
    busy = busy_ns(r.request for r in evidence.requests)
    reading = prefill / busy if busy else 0.0  # of the time that the engine is busy
    queue = evidence.phase_ns(Phase.QUEUE) if reading >= BOTTLENECK else 0
    if not whole or prefill + queue < WORTH * whole:
        return None
    if budget is None:
        long = any((r.new_prompt_tokens or 0) >= CHUNKS * LEAST_BUDGET for r in evidence.requests)
        return Measure(UNTOLD) if long and evidence.engine in CHUNKING else None
    chunked = [r for r in evidence.requests if (r.new_prompt_tokens or 0) >= CHUNKS * budget]
    step = _step_ns(evidence.requests)
    if not chunked or step is None:
        return None
    new = sum(r.new_prompt_tokens or 0 for r in chunked)
    chunks = sum(-(-(r.new_prompt_tokens or 0) // budget) for r in chunked)
    spent = sum(r.phase_ns(Phase.PREFILL) for r in chunked)
    each = statistics.median(
        r.phase_ns(Phase.PREFILL) / -(-(r.new_prompt_tokens or 0) // budget) for r in chunked
    )
    if not CHUNKS_FIT[0] <= each / step <= CHUNKS_FIT[1]:
        return None
    low, expected, high = (
        max(0.0, spent - left) for left in read_whole(evidence, chunked, step, each, budget)
    )
    if not expected:
        return None
    waits = [queue * shorter_queue(reading, saved / spent) for saved in (low, expected, high)]
    low, expected, high = (saved + wait for saved, wait in zip((low, expected, high), waits, strict=True))
    raised = _raised(chunked)
    typical = statistics.median(r.new_prompt_tokens or 0 for r in chunked)
    return Seen(
        expected,
        evidence=(
            f"{new:,} new prompt tokens are read in {chunks:,} chunks of {budget:,}: {typical:,.0f} tokens a"
            f" prompt, {seconds(spent)} in all",
            f"a chunk takes {seconds(each)}, {percent(each / step)} of a decode step, which reads all weights"
            " once for one token",
            f"prompts are read for {percent(reading)} of the time, and {seconds(queue)} wait for that"
            if queue
            else None,
        ),
        confidence="high" if evidence.ceilings is not None else "medium",
        fix=FIX.format(f" to {raised:,} or more"),
        commands={"vllm": (f"--max-num-batched-tokens {raised}",)},
        prediction=predict(
            evidence, Saving(first_ns=expected, least=low / expected, most=max(1.0, high / expected))
        ),
    )


def _budget(evidence: Evidence) -> int | None:
    """The smallest that a process states."""
    stated = [
        process.facts[name]
        for process in evidence.breakdown.recording.processes
        for name in BUDGETS
        if name in process.facts
    ]
    known = [int(value) for value in stated if isinstance(value, (int, float)) and value > 0]
    return min(known, default=None)


def _step_ns(requests: Sequence[RequestBreakdown]) -> float | None:
    """A decode step of requests that had few neighbours: a quarter of the requests had no longer ones."""
    known = sorted(r.tpot_ns for r in requests if r.tpot_ns)
    return known[len(known) // 4] if known else None


def _raised(chunked: Sequence[RequestBreakdown]) -> int:
    longest = max(r.new_prompt_tokens or 0 for r in chunked)
    budget = USUAL_BUDGET
    while budget < longest and budget < LARGEST_BUDGET:
        budget *= 2
    return budget


def in_table(view: View) -> Told | None:
    """The user tried a larger budget, or prefill takes as long as its chunks, each a decode step long."""
    s = view.subject
    pair = view.contrast(*BUDGETS)
    if pair is not None and (pair.worse.budget or 0) < (pair.better.budget or 0):
        if (
            view.goal is not Goal.TPOT
            and (pair.worse.alone or pair.worse.width is None)
            and _small(pair.worse)
        ):
            return tried(view, pair, "a smaller token budget")
    budget, new = s.budget, s.new_tokens
    if (
        view.goal is Goal.TPOT
        or not budget
        or not new
        or s.prefill is None
        or new < CHUNKS * budget
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
        large = step * max(1.0, new / GPU[1])
    left = min(large or s.prefill, s.prefill)
    saved = (s.prefill - left) / max(whole or s.prefill, s.prefill)
    return Told(
        Tier.FAULT,
        tuple(said),
        gain=modelled(1 / (1 - min(0.98, saved))),
        weight=saved,
        seconds=s.prefill,
        confidence="high" if step else "medium",
    )


def _small(s: Setting) -> bool:
    ridge = physics.ridge_tokens(s.shape, s.ceiling) if s.shape and s.ceiling else None
    return s.budget is not None and s.budget <= SMALL_CHUNK * max(PEAK_RIDGE, ridge or 0)


RULE = Rule(Cause.SMALL_PREFILL_CHUNK, WORDS, in_steps, in_table)
