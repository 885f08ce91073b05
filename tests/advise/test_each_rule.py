"""Each rule with a good case, a bad one, and one that does not hold enough to decide."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from phasetrace.advise.causes import (
    bandwidth_bound,
    frontend,
    gc_pause,
    launch_bound,
    logits_processing,
    long_output,
    long_prompt,
    many_sequences,
    no_kv_cache,
    padding,
    prefix_not_reused,
    slots_full,
    small_batch,
    speculation_loss,
    stream_consumer,
    warm_up,
    weight_offload,
)
from phasetrace.advise.evidence import Evidence, gather
from phasetrace.analyze import breakdown
from phasetrace.model import Ceilings, Finding, Goal, NotEnoughData, Part, PrefixChunk, Recording, StepCount
from phasetrace.model import Sequence as Row
from tests import builders
from tests.advise import scenes
from tests.advise.asked import ask
from tests.builders import EPOCH, MS

LARGE: Mapping[str, Any] = {"weight_bytes": 14_000_000_000, "device": "cuda", "layers": 32}


def evidence(recording: Recording, ceilings: Ceilings | None = None, **fields: Any) -> Evidence:
    return replace(gather(breakdown(recording), ceilings), **fields)


def without_steps(recording: Recording) -> Recording:
    return scenes.shifted(recording, stream=None, first_step=None, last_step=None)


def hashed(recording: Recording, shared: int) -> Recording:
    """Prompts whose first `shared` chunks of 32 tokens are the same."""
    requests = tuple(
        replace(r, prefixes=((*[PrefixChunk(k, 32) for k in range(shared)], PrefixChunk(1000 + n, 32)),))
        for n, r in enumerate(recording.requests)
    )
    return replace(recording, requests=requests)


def on_device(recording: Recording, share: float) -> Recording:
    """The device works for a share of each step."""
    steps = [
        replace(s, device_ns=((s.end_ns - s.begin_ns) * share).astype(np.int64)) for s in recording.steps
    ]
    return replace(recording, steps=tuple(steps))


def test_long_output() -> None:
    assert ask(long_output, scenes.chat()) is None
    assert isinstance(ask(long_output, scenes.long_output()), Finding)
    assert isinstance(ask(long_output, scenes.chat(tokens=100), goal_stated=True), Finding)
    uncounted = scenes.shifted(scenes.long_output(), sequences=())
    assert isinstance(ask(long_output, uncounted), NotEnoughData)


def test_no_kv_cache() -> None:
    assert ask(no_kv_cache, scenes.long_output()) is None
    assert isinstance(ask(no_kv_cache, scenes.no_kv_cache()), Finding)
    assert ask(no_kv_cache, scenes.no_kv_cache(mode="prompt_lookup", settings={})) is None
    assert ask(no_kv_cache, without_steps(scenes.no_kv_cache())) is None


def test_a_cache_wins_more_where_arithmetic_binds_early() -> None:
    def wins(device: str, computed: int) -> float:
        scene = scenes.no_kv_cache(model={"device": device, "dtype": "float32"}, computed=computed)
        found = ask(no_kv_cache, scene)
        return found.prediction.ratio if isinstance(found, Finding) and found.prediction else 1.0

    assert wins("cpu", 150) > wins("cuda", 1_000) > wins("cuda", 150) == 1.0


def test_no_kv_cache_is_seen_without_the_setting() -> None:
    assert isinstance(ask(no_kv_cache, scenes.no_kv_cache(settings={})), Finding)


def test_many_sequences() -> None:
    rows = [Row(100, 0, 32, "length")] * 5
    assert ask(many_sequences, scenes.chat(rows=rows)) is None
    found = ask(many_sequences, scenes.chat(rows=rows, settings={"num_beams": 5}, mode="beam"))
    assert isinstance(found, Finding)
    assert found.confidence == "low"


def test_small_batch() -> None:
    throughput = {"goal": Goal.THROUGHPUT}
    assert ask(small_batch, scenes.chat(), **throughput) is None
    assert isinstance(ask(small_batch, scenes.small_batch(), **throughput), Finding)
    assert isinstance(ask(small_batch, scenes.contending(), **throughput), Finding)
    # No more can share a step than call at a time, whatever the loop of a batch job could hold.
    few = ask(small_batch, scenes.contending(8), **throughput)
    assert isinstance(few, Finding)
    assert "about 8 here" in few.recommendation
    blind = without_steps(scenes.small_batch())
    assert isinstance(ask(small_batch, blind, **throughput), NotEnoughData)


def test_small_batch_leaves_conversations_and_streams_alone() -> None:
    throughput = {"goal": Goal.THROUGHPUT}
    recording = scenes.small_batch()
    growing = tuple(
        replace(r, sequences=(Row(14 + 20 * n, 0, 16, "stop"),)) for n, r in enumerate(recording.requests)
    )
    assert ask(small_batch, replace(recording, requests=growing), **throughput) is None
    streamed = scenes.small_batch(settings={"streamer": True})
    assert ask(small_batch, streamed, **throughput) is None


def test_small_batch_does_not_promise_what_arithmetic_forbids() -> None:
    """Where a prompt token costs as much as a step, sequences side by side cost as much as one by one."""
    bound = scenes.calls(64, prompt=100, prefill_ms=1000, step_ms=10, tokens=16, gap_ms=1)
    assert ask(small_batch, bound, goal=Goal.THROUGHPUT) is None


def test_frontend() -> None:
    assert ask(frontend, scenes.chat()) is None
    early = [replace(r, arrival_ns=r.arrival_ns - 300 * MS) for r in scenes.chat().requests]
    found = ask(frontend, replace(scenes.chat(), requests=tuple(early)))
    assert isinstance(found, Finding)
    assert "before it calls the model" in found.recommendation
    tokenizing = [replace(r, tokenize_ns=290 * MS) for r in early]
    found = ask(frontend, replace(scenes.chat(), requests=tuple(tokenizing)))
    assert isinstance(found, Finding)
    assert "Tokenise" in found.recommendation


def test_stream_consumer() -> None:
    assert ask(stream_consumer, scenes.chat()) is None
    assert isinstance(ask(stream_consumer, scenes.stream_consumer()), Finding)


def test_a_streamer_that_waits_for_the_device_is_not_to_blame() -> None:
    on_gpu = scenes.stream_consumer(model=LARGE)
    assert isinstance(ask(stream_consumer, on_gpu), NotEnoughData)
    assert ask(stream_consumer, on_device(on_gpu, 0.97)) is None
    found = ask(stream_consumer, on_device(on_gpu, 0.3))
    assert isinstance(found, Finding)
    assert found.confidence == "medium"


def test_gc_pause() -> None:
    assert ask(gc_pause, scenes.chat()) is None
    assert isinstance(ask(gc_pause, scenes.collected()), Finding)


def test_long_prompt() -> None:
    ttft = {"goal": Goal.TTFT, "goal_stated": True}
    assert ask(long_prompt, scenes.chat(), **ttft) is None
    long = scenes.chat(prompt=6000, prefill_ms=1100)
    assert isinstance(ask(long_prompt, long, **ttft), Finding)
    assert ask(long_prompt, scenes.padding(), **ttft) is None
    uncounted = scenes.shifted(long, sequences=(), prefill_chunks=())
    assert isinstance(ask(long_prompt, uncounted, **ttft), NotEnoughData)


def test_prefix_not_reused() -> None:
    recording = scenes.chat(prompt=640, prefill_ms=900)
    assert ask(prefix_not_reused, hashed(recording, 0)) is None
    assert isinstance(ask(prefix_not_reused, hashed(recording, 18)), Finding)
    assert isinstance(ask(prefix_not_reused, recording), NotEnoughData)
    shared = ask(prefix_not_reused, hashed(recording, 18))
    assert isinstance(shared, Finding)
    assert "no_grad" in shared.commands[0]  # without it the cache cannot be copied
    cached = scenes.shifted(hashed(recording, 18), cached_tokens=576)
    assert ask(prefix_not_reused, cached) is None


def test_a_conversation_keeps_one_cache() -> None:
    """Each turn repeats all before it: one shared prefix would reuse the first turn only."""
    recording = scenes.chat(prompt=640, prefill_ms=900)
    turns = tuple(
        replace(r, prefixes=(tuple(PrefixChunk(k, 32) for k in range(10 + n)),))
        for n, r in enumerate(recording.requests)
    )
    found = ask(prefix_not_reused, replace(recording, requests=turns))
    assert isinstance(found, Finding)
    assert "DynamicCache()" in found.commands[0]


def test_padding() -> None:
    assert ask(padding, scenes.padding(long=20, short=18)) is None
    found = ask(padding, scenes.padding())
    assert isinstance(found, Finding)
    assert "like length" in found.recommendation
    loop = ask(padding, scenes.padding(gap_ms=1))
    assert isinstance(loop, Finding)
    assert "sorted by length, 3,104 of these would stay" in loop.evidence
    assert loop.ns < found.ns
    fixed = scenes.chat(rows=[Row(20, 492, 32, "length")] * 4)
    found = ask(padding, fixed)
    assert isinstance(found, Finding)
    assert "fixed length" in found.recommendation


def test_warm_up() -> None:
    assert ask(warm_up, scenes.chat()) is None
    assert isinstance(ask(warm_up, scenes.warm_up()), Finding)


def test_compiling_again_and_again_is_warm_up_too() -> None:
    found = ask(warm_up, scenes.chat(step_ms=[4000, *[10] * 30]))
    assert isinstance(found, Finding)
    assert "shape" in found.recommendation


def test_bandwidth_bound() -> None:
    large = scenes.chat(step_ms=10, model=LARGE)
    assert isinstance(ask(bandwidth_bound, large), NotEnoughData)
    assert isinstance(ask(bandwidth_bound, large, Ceilings(2e12)), Finding)
    assert ask(bandwidth_bound, large, Ceilings(20e12)) is None


def test_launch_bound() -> None:
    assert ask(launch_bound, scenes.chat()) is None
    small = {**LARGE, "weight_bytes": 250_000_000}
    assert isinstance(ask(launch_bound, scenes.chat(step_ms=30, model=small)), Finding)
    assert ask(launch_bound, scenes.chat(step_ms=30, model=LARGE)) is None
    idle = on_device(scenes.chat(step_ms=30, model=LARGE), 0.2)
    found = ask(launch_bound, idle)
    assert isinstance(found, Finding)
    assert found.confidence == "high"
    python = {Part.FORWARD: 0.5, Part.PREPARE: 0.25, Part.UPDATE: 0.25}
    found = ask(launch_bound, scenes.chat(parts=python))
    assert isinstance(found, Finding)
    assert found.confidence == "low"


def test_logits_processing() -> None:
    assert ask(logits_processing, scenes.chat()) is None
    assert isinstance(ask(logits_processing, scenes.logits()), Finding)
    on_gpu = scenes.logits(model=LARGE)
    assert isinstance(ask(logits_processing, on_gpu), NotEnoughData)
    assert ask(logits_processing, on_device(on_gpu, 0.95)) is None


def assisted(per_step: int, draft: float, tokens: int = 31) -> Recording:
    """Steps that draft for a share of their time and give `per_step` tokens each."""
    parts = {Part.FORWARD: 1 - draft, Part.DRAFT: draft}
    recording = scenes.chat(mode="assisted", tokens=tokens + 1, parts=parts)
    steps = recording.requests[0].last_step or 0
    yields = tuple(StepCount(k, per_step) for k in range(1, steps + 1))
    return scenes.shifted(recording, yields=yields, sequences=(Row(100, 0, 1 + per_step * steps, "length"),))


def test_speculation_loss() -> None:
    assert ask(speculation_loss, scenes.chat()) is None
    assert ask(speculation_loss, assisted(3, draft=0.5)) is None
    found = ask(speculation_loss, assisted(1, draft=0.5))
    assert isinstance(found, Finding)
    blind = without_steps(assisted(1, draft=0.5))
    assert isinstance(ask(speculation_loss, blind), NotEnoughData)


def test_weight_offload() -> None:
    assert ask(weight_offload, scenes.chat(model=LARGE)) is None
    offloaded = scenes.chat(step_ms=800, model={**LARGE, "offloaded_bytes": 7_000_000_000})
    assert isinstance(ask(weight_offload, offloaded), Finding)
    assert isinstance(ask(weight_offload, without_steps(offloaded)), NotEnoughData)


def test_a_front_that_differs_hides_what_is_shared() -> None:
    recording = hashed(scenes.calls(8, prompt=352, prefill_ms=800, tokens=4), 10)
    changed = tuple(
        replace(r, prefixes=((PrefixChunk(9000 + n, 16), *r.prefixes[0]),))
        for n, r in enumerate(recording.requests)
    )
    found = ask(prefix_not_reused, replace(recording, requests=changed))
    assert isinstance(found, Finding)
    assert "start to differ at their first tokens" in found.recommendation
    assert "320 tokens" in found.recommendation


def test_drafts_that_are_wrong_in_shared_steps() -> None:
    def drafting(right: int) -> Recording:
        """Every other step verifies four drafts, takes twice as long, and gives `right` tokens more."""
        n = 60
        verifies = np.arange(n) % 2 == 1
        taken = builders.steps(
            n, ms=[20.0 if v else 10.0 for v in verifies], computed=[5 if v else 1 for v in verifies]
        )
        taken = replace(taken, new_tokens=np.where(verifies, 1 + right, 1))
        yields = tuple(StepCount(int(k), 1 + right) for k in np.flatnonzero(verifies) if right)
        asked = builders.request("r", steps=taken, engine="vllm", output=n + right * n // 2, yields=yields)
        process = builders.process(facts={"num_speculative_tokens": 4})
        return builders.recording(asked, steps=[taken], processes=(process,))

    found = ask(speculation_loss, drafting(0), goal=Goal.TPOT)
    assert isinstance(found, Finding)
    assert found.prediction is not None and found.prediction.ratio > 1.2
    assert ask(speculation_loss, drafting(3), goal=Goal.TPOT) is None
    assert ask(speculation_loss, scenes.chat(engine="vllm"), goal=Goal.TPOT) is None


def crowd(step_ms: Mapping[int, float], cap: int = 8) -> Recording:
    """Requests on one engine: `cap` run, the rest wait until those have ended; `step_ms` by sequences."""
    requests, steps = [], []
    begin, index = EPOCH, 0
    arrival = EPOCH
    for wave, running in enumerate((2, cap, cap)):
        taken = builders.steps(
            20, ms=step_ms[running], rows=running, stream=1, begin=begin, first_index=index
        )
        requests += [
            builders.request(
                f"w{wave}-{n}", steps=taken, arrival_ns=arrival, received_ns=arrival, mode="continuous"
            )
            for n in range(running)
        ]
        steps.append(taken)
        begin, index = int(taken.end_ns[-1]), index + 20
        arrival = begin if wave == 0 else arrival
    return builders.recording(*requests, steps=steps)


def test_slots_full() -> None:
    assert ask(slots_full, scenes.chat()) is None
    assert isinstance(ask(slots_full, crowd({2: 10.0, 8: 11.0})), Finding)
    assert ask(slots_full, crowd({2: 10.0, 8: 40.0})) is None


def test_no_kv_cache_does_not_extrapolate_from_nearly_equal_lengths() -> None:
    """Steps that compute 100 to 130 positions and take much the same time tell nothing of a step for one."""
    flat = scenes.no_kv_cache(step_ms=[55 + 4 * (k % 3 - 1) for k in range(31)])
    found = ask(no_kv_cache, flat)
    assert isinstance(found, Finding)
    assert found.prediction is not None
    assert found.prediction.ratio > 2
