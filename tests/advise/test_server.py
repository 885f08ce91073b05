"""Faults of a server, planted in its numbers: the cause is named, and its fix brings what was predicted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from phasetrace.advise import diagnose
from phasetrace.advise.causes import lora
from phasetrace.advise.waiting import slowed
from phasetrace.analyze import breakdown
from phasetrace.model import Diagnosis, Finding, Goal, Part, PrefixChunk, Recording
from phasetrace.semconv import Cause
from tests.advise.asked import ask
from tests.advise.server import Asked, load, serve
from tests.builders import MS


def said(recording: Recording, goal: Goal = Goal.TTFT, **stated: Any) -> Diagnosis:
    return diagnose(breakdown(recording), goal=goal, **stated)


def mean_ttft_s(recording: Recording) -> float:
    found = breakdown(recording).requests
    return sum(r.ttft_ns or 0 for r in found) / len(found) / 1e9


def test_slots_full_and_what_more_slots_bring() -> None:
    found = said(serve(load(40, 60), slots=2))
    assert found.cause == Cause.SLOTS_FULL
    first = found.findings[0]
    assert first.prediction is not None and first.confidence == "high"
    assert "--max-num-seqs" in first.commands[0]
    after = mean_ttft_s(serve(load(40, 60), slots=int(first.commands[0].split()[-1])))
    assert first.prediction.low - 0.01 * first.prediction.before <= after <= first.prediction.high * 1.1


def test_slots_that_would_stay_empty_are_not_asked_for() -> None:
    """The cap is reached just as the KV cache is."""
    found = said(serve(load(40, 60), slots=4, blocks=30))
    assert found.cause != Cause.SLOTS_FULL


def test_kv_full() -> None:
    found = said(serve(load(40, 60), blocks=14, reserve=True, knobs={"num_gpu_blocks_override": 14}))
    assert found.cause == Cause.KV_FULL
    assert "num-gpu-blocks-override" in found.findings[0].commands[0]


def test_preemption() -> None:
    found = said(
        serve(load(40, 60, output=96), blocks=40, knobs={"num_gpu_blocks_override": 40}), goal=Goal.E2E
    )
    assert found.cause in (Cause.PREEMPTION, Cause.KV_FULL)
    assert Cause.PREEMPTION in [finding.cause for finding in found.findings]


def test_overload_is_told_from_a_cap() -> None:
    """A device bound by arithmetic serves no more with more sequences at a time."""
    found = said(serve(load(80, 40), slots=8, fixed_ms=1, row_ms=2))
    assert found.cause == Cause.OVERLOAD


def test_overload_shows_without_a_queue() -> None:
    found = said(serve(load(120, 25), fixed_ms=1, row_ms=2), goal=Goal.E2E)
    assert found.cause == Cause.OVERLOAD


def test_what_the_first_and_the_last_took_is_said_where_it_shows_overload() -> None:
    requests = breakdown(serve(load(80, 40), slots=8, fixed_ms=1, row_ms=2)).requests
    early, late = requests[:20], requests[-20:]
    assert slowed(early, late)[0].startswith("the first requests took ")
    assert slowed(late, early) == ()


def test_a_burst_is_no_overload() -> None:
    found = said(serve(load(40, 0), slots=8, fixed_ms=1, row_ms=2))
    assert Cause.OVERLOAD not in [finding.cause for finding in found.findings]


def test_where_none_ended_while_they_came_no_rate_is_known() -> None:
    found = said(serve(load(20, 20, output=80)))
    assert Cause.OVERLOAD not in [finding.cause for finding in found.findings]


@pytest.mark.parametrize("goal", [Goal.TTFT, Goal.E2E])
def test_a_served_load_has_no_such_cause(goal: Goal) -> None:
    found = said(serve(load(60, 200)), goal)
    wrong = {Cause.SLOTS_FULL, Cause.KV_FULL, Cause.OVERLOAD, Cause.TOKEN_BUDGET, Cause.PREEMPTION}
    assert not wrong & {finding.cause for finding in found.findings}


def test_few_requests_at_a_time_leave_the_device_unused() -> None:
    found = said(serve(load(40, 400)), Goal.THROUGHPUT)
    assert found.cause == Cause.SMALL_BATCH
    busy = said(serve(load(200, 10)), Goal.THROUGHPUT)
    assert busy.cause != Cause.SMALL_BATCH


def test_others_prompts_that_stretch_decode() -> None:
    chats = load(60, 120, prompt=32, output=80)
    long = [Asked(500 + 1000 * k, 4000, 4) for k in range(8)]
    found = said(serve([*chats, *long], token_ms=0.12, budget=8192), Goal.TPOT)
    assert found.cause == Cause.PREFILL_INTERFERENCE
    calm = said(serve(chats, token_ms=0.12, budget=8192), Goal.TPOT)
    assert calm.cause != Cause.PREFILL_INTERFERENCE


def test_host_work_between_the_steps() -> None:
    found = said(serve(load(40, 100), host=0.5), Goal.TPOT)
    assert found.cause == Cause.HOST_GAP
    assert found.findings[0].commands[0] == "--async-scheduling"


def test_a_grammar_that_is_compiled_first() -> None:
    recording = serve(load(20, 400), settings={"structured": True})
    late = [
        replace(
            r, arrival_ns=r.arrival_ns - 600 * MS, received_ns=r.arrival_ns - 600 * MS, grammar_ns=580 * MS
        )
        for r in recording.requests
    ]
    found = said(replace(recording, requests=tuple(late)))
    assert found.cause == Cause.GRAMMAR_COMPILE


def test_long_answers_in_one_piece_are_to_be_streamed() -> None:
    recording = serve(load(10, 4000, output=300))
    whole = [replace(r, first_output_ns=r.finished_ns) for r in recording.requests]
    found = said(replace(recording, requests=tuple(whole)))
    assert found.cause == Cause.LONG_OUTPUT
    assert "Stream" in found.findings[0].recommendation
    streamed = [replace(r, first_output_ns=r.first_token_ns) for r in recording.requests]
    assert said(replace(recording, requests=tuple(streamed))).cause != Cause.LONG_OUTPUT


def test_a_budget_used_up_by_long_prompts() -> None:
    chats = load(60, 50, prompt=32, output=8)
    long = [Asked(500 * k, 6000, 8) for k in range(6)]
    found = said(serve([*chats, *long], token_ms=0.05, budget=512, fixed_ms=4))
    assert found.cause in (Cause.TOKEN_BUDGET, Cause.OVERLOAD)
    assert Cause.TOKEN_BUDGET in [finding.cause for finding in found.findings]


def adapted(recording: Recording, every: int, slower: float) -> Recording:
    """Every so many steps hold an adapter, and take longer for it."""
    (steps,) = recording.steps
    used = np.arange(len(steps)) % every == 0
    length = ((steps.end_ns - steps.begin_ns) * np.where(used, slower, 1.0)).astype(np.int64)
    ends = steps.begin_ns[0] + np.cumsum(length)
    parts = {Part.FORWARD: length}
    moved = replace(steps, begin_ns=ends - length, end_ns=ends, parts=parts, adapters=used.astype(np.int64))
    return replace(recording, steps=(moved,))


@pytest.mark.parametrize(("slower", "cause"), [(2.0, True), (1.02, False)])
def test_adapters_that_make_steps_longer(slower: float, cause: bool) -> None:
    recording = adapted(serve(load(40, 200), settings={"lora": True}), 2, slower)
    found = ask(lora, recording, goal=Goal.TPOT)
    assert isinstance(found, Finding) is cause


def measured(recording: Recording, goal: Goal) -> float:
    found = breakdown(recording)
    if goal is Goal.THROUGHPUT:
        return found.throughput_tok_s or 0.0
    of = {
        Goal.TTFT: [r.ttft_ns or 0 for r in found.requests],
        Goal.E2E: [r.e2e_ns for r in found.requests],
        Goal.TPOT: [r.tpot_ns or 0 for r in found.requests],
    }[goal]
    return sum(of) / len(of) / 1e9


def alike(recording: Recording, shared: int) -> Recording:
    """The same prompts, hashed: so many chunks of 32 tokens in common, then one of their own."""
    front = [PrefixChunk(k, 32) for k in range(shared)]
    requests = [
        replace(r, prefixes=((*front, PrefixChunk(1000 + n, 32)),)) for n, r in enumerate(recording.requests)
    ]
    return replace(recording, requests=tuple(requests))


def shared_prefix(every: float) -> tuple[Recording, Recording]:
    """Prompts of 1,056 tokens of which 1,024 are the same, with and without a cache for them."""
    off = {"enable_prefix_caching": False, "block_size": 16}
    cached = [Asked(0, 1056, 16), *(Asked(every * k, 32, 16) for k in range(1, 20))]
    return (
        alike(serve(load(20, every, 1056, 16), token_ms=0.1, knobs=off), 32),
        serve(cached, token_ms=0.1),
    )


BY_HAND = {"num_gpu_blocks_override": 14}
READING = {"prompt": 1024, "output": 16}
FIXES: list[tuple[Recording, Recording, Goal]] = [
    *[(serve(load(40, 60), slots=2), serve(load(40, 60)), goal) for goal in (Goal.TTFT, Goal.E2E)],
    (serve(load(40, 60), slots=2), serve(load(40, 60)), Goal.THROUGHPUT),
    (
        serve(load(40, 60), blocks=14, reserve=True, knobs=BY_HAND),
        serve(load(40, 60), reserve=True),
        Goal.E2E,
    ),
    (serve(load(20, 700, **READING), budget=128), serve(load(20, 700, **READING)), Goal.TTFT),
    (serve(load(20, 700, **READING), budget=128), serve(load(20, 700, **READING)), Goal.E2E),
    *[(*shared_prefix(every), goal) for every in (700, 150) for goal in (Goal.TTFT, Goal.E2E)],
    (serve(load(40, 400)), serve(load(40, 0), slots=16), Goal.THROUGHPUT),
    (
        serve(load(80, 40), slots=8, fixed_ms=1, row_ms=2),
        serve(load(80, 80), slots=8, fixed_ms=1, row_ms=2),
        Goal.TTFT,
    ),
    (
        serve(load(40, 100), host=0.5),
        serve(load(40, 100), fixed_ms=6, row_ms=0.06, token_ms=0.012),
        Goal.TPOT,
    ),
]


@pytest.mark.parametrize(("before", "after", "goal"), FIXES)
def test_a_fix_brings_what_was_predicted(before: Recording, after: Recording, goal: Goal) -> None:
    promised = said(before, goal).findings[0].prediction
    assert promised is not None
    assert promised.before == pytest.approx(measured(before, goal), rel=0.05)
    assert promised.low * 0.95 <= measured(after, goal) <= promised.high * 1.05
