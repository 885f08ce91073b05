"""The middle and the tail of a metric, and which phase owns each."""

from dataclasses import replace

import pytest

from phasetrace.analyze import breakdown
from phasetrace.model import ModelFacts, Owner, Phase, Recording
from tests import builders


def recorded(queues: list[float], **kinds: list[object]) -> Recording:
    """Calls of 8 tokens, each after a queue of so many ms."""
    requests, steps = [], []
    for n, queue in enumerate(queues):
        own = builders.steps(8, stream=n + 1, begin=builders.EPOCH + n * 10**10)
        fields = {name: values[n] for name, values in kinds.items()}
        requests.append(builders.request(f"r{n:03}", steps=own, queue_ms=queue, frontend_ms=1.0, **fields))
        steps.append(own)
    models = {name: ModelFacts(name, name=name) for name in ("m", "large")}
    return builders.recording(*requests, steps=steps, models=models)


def owner(recording: Recording, metric: str, percentile: int, group: str | None = None) -> Owner:
    (found,) = (
        o
        for o in breakdown(recording).owners
        if (o.metric, o.percentile, o.group) == (metric, percentile, group)
    )
    return found


def longest(found: Owner) -> Phase:
    return max(found.phases, key=lambda time: time.ns).phase


def test_the_tail_has_another_owner() -> None:
    recording = recorded([0.0] * 36 + [500.0] * 4)
    assert longest(owner(recording, "ttft_ns", 50)) is Phase.PREFILL
    assert longest(owner(recording, "ttft_ns", 99)) is Phase.QUEUE
    assert longest(owner(recording, "e2e_ns", 50)) is Phase.DECODE
    assert longest(owner(recording, "e2e_ns", 99)) is Phase.QUEUE


def test_an_answer_in_one_piece_makes_decode_a_part_of_ttft() -> None:
    recording = recorded([0.0] * 8)
    whole = [replace(r, first_output_ns=r.finished_ns) for r in recording.requests]
    found = owner(replace(recording, requests=tuple(whole)), "ttft_ns", 50)
    assert longest(found) is Phase.DECODE
    assert found.phases == owner(recording, "e2e_ns", 50).phases


@pytest.mark.parametrize("metric", ["ttft_ns", "e2e_ns"])
@pytest.mark.parametrize("percentile", [50, 95, 99])
def test_phases_sum_to_the_metric(metric: str, percentile: int) -> None:
    found = owner(recorded([float(n) for n in range(40)]), metric, percentile)
    assert sum(time.ns for time in found.phases) == pytest.approx(found.ns, abs=len(Phase))
    assert 1 <= found.requests <= 5


def test_few_requests_have_no_percentiles() -> None:
    assert breakdown(recorded([0.0] * 7)).owners == ()


def test_groups_are_told_where_they_differ_and_are_large_enough() -> None:
    models: list[object] = ["m"] * 10 + ["large"] * 10
    prompts: list[object] = [10] * 17 + [5000] * 3
    recording = recorded([0.0] * 10 + [300.0] * 10, model=models, prompt=prompts)
    groups = {o.group for o in breakdown(recording).owners}
    assert groups == {None, "model=m", "model=large", "prompt<256"}
    assert longest(owner(recording, "e2e_ns", 50, "model=large")) is Phase.QUEUE
    assert longest(owner(recording, "e2e_ns", 50, "model=m")) is Phase.DECODE
