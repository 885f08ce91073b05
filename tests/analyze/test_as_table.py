"""A recording as a table: what it knows is told in a table's units, what it does not stays unknown."""

from dataclasses import replace

import numpy as np
import pytest

from phasetrace.advise import diagnose_table
from phasetrace.analyze import breakdown
from phasetrace.analyze.as_table import table_of
from phasetrace.model import Group, Part, Process, Recording, Steps, Table, TableHardware, TableModel
from tests import builders
from tests.analyze.served import served
from tests.builders import MS, PROCESS


def table(recording: Recording) -> Table:
    return table_of(breakdown(recording))


def group(recording: Recording) -> Group:
    return table(recording).groups[-1]


def engine(recording: Recording, **facts: int | str) -> Recording:
    """With an engine's facts and its queue."""
    process = Process(PROCESS, 1, 0, engines={"vllm": "0.32.0"}, facts={"max_num_seqs": 8, **facts})
    (steps,) = recording.steps
    size = len(steps)
    told: Steps = replace(
        steps, waiting=np.full(size, 3), kv_blocks=np.full(size, 45), waits=np.zeros(size, np.int64)
    )
    return replace(recording, processes=(process,), steps=(told,))


def test_an_empty_recording_is_an_empty_table() -> None:
    assert table(Recording()).groups == (Group(),)


def test_phases_are_means_that_sum() -> None:
    found = group(served(1, requests=40))
    assert found.queue_s is None or found.queue_s >= 0
    assert found.prefill_s is not None
    assert found.decode_s is not None
    assert found.e2e_s == pytest.approx((found.queue_s or 0) + found.prefill_s + found.decode_s)
    assert found.ttft_p95_s is not None
    assert found.ttft_s is not None
    assert found.ttft_p95_s >= found.ttft_s


def test_an_engine_says_how_full_it_is() -> None:
    found = table(engine(served(1, requests=40), num_gpu_blocks=50, cores=16))
    assert (found.engine, found.engine_version) == ("vllm", "0.32.0")
    assert found.knobs == {"max_num_seqs": 8, "num_gpu_blocks": 50}
    g = found.groups[-1]
    assert (g.waiting, g.kv_cache_usage, g.cpu_cores) == (3, 0.9, 16)
    assert g.running is not None
    assert 1 <= g.running <= 8
    assert g.batch is None
    assert g.preemptions == 0
    assert g.host_gap_s is not None
    assert 0 < g.host_gap_s < 1e-3


def test_evictions_are_counted_with_what_was_computed_again() -> None:
    found = group(served(1, requests=40, evict_every=9))
    assert found.preemptions is not None
    assert found.preemptions > 5
    assert found.recomputed_token_share is not None
    assert 0.1 < found.recomputed_token_share < 0.9


def test_a_neighbours_prompts_are_told_where_they_cost_something() -> None:
    assert group(served(1, requests=40)).prefilling_concurrently
    assert group(served(1, requests=40, slots=1)).prefilling_concurrently is None


def test_a_call_is_a_static_batch() -> None:
    recording = builders.generation(
        20, rows=4, prompt=10, padding=6, settings={"max_new_tokens": 20, "num_beams": 2}
    )
    found = group(recording)
    assert (found.batch, found.running, found.waiting) == (4, None, None)
    assert (found.prompt_tokens, found.padded_prompt_tokens, found.output_tokens) == (10, 16, 20)
    assert (found.max_tokens, found.sequences_per_request, found.concurrency) == (20, 2, 1)
    assert found.tpot_s == pytest.approx(0.010)


def test_parts_of_a_step_are_a_step() -> None:
    shares = {Part.FORWARD: 0.5, Part.LOGITS: 0.2, Part.SAMPLING: 0.1, Part.STREAM: 0.2}
    found = group(builders.generation(20, parts=shares, settings={"streamer": True}))
    assert found.sampling_s == pytest.approx(0.003)
    assert found.stream_s == pytest.approx(0.002)
    assert (found.draft_s, found.streaming) == (None, True)


def test_warm_up_is_a_group_of_its_own() -> None:
    slow = builders.steps(8, ms=[900, *[10.0] * 7], stream=1)
    fast = [
        builders.steps(8, ms=10.0, stream=n, begin=builders.EPOCH + n * 2000 * MS, process=PROCESS)
        for n in range(2, 8)
    ]
    requests = [builders.request(f"r{n}", steps=s) for n, s in enumerate([slow, *fast])]
    found = table(builders.recording(*requests, steps=[slow, *fast])).groups
    assert [g.order for g in found] == ["first", "later"]
    assert [g.requests for g in found] == [1, 6]
    assert found[0].ttft_s == pytest.approx(0.9)


def test_the_model_and_its_device() -> None:
    recording = builders.generation(8)
    model = replace(
        builders.MODEL, parameters=100, weight_bytes=200, heads=8, head_dim=64, device="cuda", dtype="float16"
    )
    process = Process(PROCESS, 1, 0, facts={"tensor_parallel_size": 2, "device_name": "NVIDIA L4"})
    found = table(replace(recording, models={"m": model}, processes=(process,)))
    assert found.model == TableModel("tiny", 100, None, 2.0, 2, 8, 64, dtype="float16")
    assert found.hardware == TableHardware("NVIDIA L4", "gpu", 2)


@pytest.mark.parametrize("evict_every", [0, 9])
def test_rules_for_tables_can_judge_it(evict_every: int) -> None:
    found = table(engine(served(1, requests=40, evict_every=evict_every), num_gpu_blocks=50))
    assert diagnose_table(found).cause
