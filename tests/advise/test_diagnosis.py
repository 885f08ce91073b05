"""The planted fault is named first, a sound application is left alone, and doubt is said."""

from dataclasses import replace

import pytest

from phasetrace.advise import diagnose
from phasetrace.advise.diagnosis import lead
from phasetrace.advise.evidence import gather
from phasetrace.advise.ranking import Candidate, Tier
from phasetrace.analyze import breakdown
from phasetrace.model import Ceilings, Diagnosis, Goal, NotEnoughData, Recording, RequestStatus
from phasetrace.semconv import Cause
from tests.advise import scenes


def of(recording: Recording, **stated) -> Diagnosis:  # type: ignore[no-untyped-def]
    return diagnose(breakdown(recording), **stated)


@pytest.mark.parametrize(
    ("recording", "cause"),
    [
        (scenes.chat(), "healthy"),
        (scenes.long_output(), "long-output"),
        (scenes.no_kv_cache(), "no-kv-cache"),
        (scenes.padding(), "padding"),
        (scenes.warm_up(), "warm-up"),
        (scenes.small_batch(), "small-batch"),
        (scenes.contending(), "small-batch"),
        (scenes.stream_consumer(), "stream-consumer"),
        (scenes.logits(), "logits-processing"),
        (scenes.collected(), "gc-pause"),
    ],
)
def test_the_fault_is_named_first(recording: Recording, cause: str) -> None:
    found = of(recording)
    assert found.cause == cause
    assert found.findings[0].cause == cause


@pytest.mark.parametrize("goal", list(Goal))
def test_every_fault_has_a_prediction_with_its_interval(goal: Goal) -> None:
    for recording in (scenes.no_kv_cache(), scenes.padding(), scenes.stream_consumer(), scenes.logits()):
        for finding in of(recording, goal=goal).findings:
            p = finding.prediction
            if p is None:
                continue
            assert p.low <= p.after <= p.high
            assert p.ratio > 1


def test_the_target_decides_how_much_shorter() -> None:
    recording = scenes.long_output()
    whole = breakdown(recording).metrics["e2e_ns"].p50 / 1e9
    found = of(recording, slo={"e2e": whole / 3})
    assert found.cause == "long-output"
    prediction = found.findings[0].prediction
    assert prediction is not None
    assert prediction.low <= whole / 3 <= prediction.high * 1.02
    assert any("max_new_tokens=39" in command for command in found.findings[0].commands)


def test_a_met_slo_is_healthy_whatever_there_is_to_win() -> None:
    assert of(scenes.long_output(), slo={"e2e": 100.0}).cause == "healthy"


def test_an_slo_on_what_was_not_recorded_is_unknown() -> None:
    recording = scenes.shifted(scenes.chat(), first_token_ns=None, last_token_ns=None)
    assert of(recording, slo={"ttft": 0.5}).cause == "unknown"


def test_time_that_nothing_explains_is_unknown() -> None:
    recording = scenes.shifted(scenes.chat(), first_token_ns=None, last_token_ns=None)
    assert of(recording).cause == "unknown"


def test_bad_data_is_refused_first() -> None:
    recording = scenes.shifted(scenes.no_kv_cache(), finished_ns=None)
    found = of(recording)
    assert found.cause == "data-defect"
    assert "contradict" in found.findings[0].recommendation


def test_nothing_finished_is_unknown() -> None:
    recording = scenes.shifted(scenes.chat(), status=RequestStatus.CUT_OFF)
    assert of(recording).cause == "unknown"


def test_an_empty_recording_is_unknown() -> None:
    assert of(Recording()).cause == "unknown"


def test_a_fault_stands_before_the_bound() -> None:
    """A slow streamer in a long answer: the streamer is wrong, the length is a choice."""
    found = of(scenes.stream_consumer(tokens=1200))
    assert found.cause == "stream-consumer"
    assert "long-output" in {finding.cause for finding in found.findings}


def test_the_goal_is_said_when_it_was_inferred() -> None:
    assert "throughput" in of(scenes.small_batch()).verdict
    assert "Judged" not in of(scenes.small_batch(), goal=Goal.E2E).verdict


def test_batching_is_no_answer_to_a_goal_of_latency() -> None:
    found = of(scenes.small_batch(), goal=Goal.TTFT)
    assert "small-batch" not in {finding.cause for finding in found.findings}


def test_a_few_requests_in_a_row_are_no_loop() -> None:
    assert of(scenes.small_batch(n=8)).cause == "healthy"


def test_the_order_of_requests_does_not_matter() -> None:
    recording = scenes.warm_up()
    turned = replace(recording, requests=recording.requests[::-1], steps=recording.steps[::-1])
    assert of(recording).findings == of(turned).findings


def test_a_stated_goal_asks_for_the_bound() -> None:
    """Without a goal nothing is wrong; with one, the device's bound is asked for."""
    assert of(scenes.chat()).cause == "healthy"
    found = of(scenes.chat(), goal=Goal.TPOT)
    assert found.cause == "unknown"
    assert "--engine-config" in found.findings[0].recommendation
    large = scenes.chat(model={"weight_bytes": 14_000_000_000, "device": "cuda"})
    assert of(large, goal=Goal.TPOT, ceilings=Ceilings(2e12)).cause == "bandwidth-bound"


def test_what_is_not_worth_a_change_is_named_where_the_bound_is_unknown() -> None:
    evidence = replace(gather(breakdown(scenes.chat())), goal=Goal.TPOT, goal_stated=True)
    small = [
        Candidate(of(scene, goal=Goal.E2E).findings[0], Tier.MEASURED, weight)
        for scene, weight in ((scenes.padding(), 0.04), (scenes.stream_consumer(), 0.12))
    ]
    question = (NotEnoughData(Cause.BANDWIDTH_BOUND, "the bandwidth"),)
    assert "the most: stream-consumer, 12 %" in lead(evidence, small, question)[0].evidence[0]
    assert "nothing is wrong that it shows" in lead(evidence, [], question)[0].evidence[0]
