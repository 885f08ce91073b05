"""What cannot be true is refused or repaired, and named."""

from __future__ import annotations

from typing import Any

import pytest

from phasetrace.analyze import breakdown
from phasetrace.model import Provenance
from tests.read.made_spans import BEGIN, LATENCY, MS, VLLM, at, reading, said, span

__all__ = ["reading"]  # the fixture

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.output_tokens": 10}
VLLM_TOKENS = {key: number for key, number in VLLM.items() if not key.startswith(LATENCY)}
TTFT, TPOT = "gen_ai.server.time_to_first_token", "gen_ai.server.time_per_output_token"
DECODE, PREFILL = LATENCY + "time_in_model_decode", LATENCY + "time_in_model_prefill"
INFERENCE = LATENCY + "time_in_model_inference"


def test_a_first_token_at_the_very_end_was_not_measured(reading: Any) -> None:
    found = reading(span("chat", attributes=CHAT | {TTFT: 1.0}))
    assert at(found.requests[0]) == {"finished": 1000}
    assert "equals the duration" in said(found)


def test_the_only_token_may_be_at_the_very_end(reading: Any) -> None:
    found = reading(span("chat", attributes=CHAT | {TTFT: 1.0, "gen_ai.usage.output_tokens": 1}))
    assert at(found.requests[0])["first_token"] == 1000


def test_the_first_token_follows_from_the_time_per_token(reading: Any) -> None:
    found = reading(span("chat", attributes=CHAT | {TPOT: 0.05}))
    assert at(found.requests[0])["first_token"] == 550
    assert "first_token_ns" in found.requests[0].derived


@pytest.mark.parametrize(("tpot", "says"), [(0.5, "is a chunk's"), (0.05, "contradicts e2e"), (0, "is zero")])
def test_a_time_per_token_that_contradicts(tpot: float, says: str, reading: Any) -> None:
    found = reading(span("chat", attributes=CHAT | {TTFT: 0.1, TPOT: tpot}))
    assert says in said(found) and at(found.requests[0])["first_token"] == 100


def test_a_negative_prefill_is_worked_out_from_the_rest(reading: Any) -> None:
    found = reading(span("llm_request", attributes=VLLM | {PREFILL: -4.0, INFERENCE: 0.75}))
    assert at(found.requests[0])["scheduled"] == 200
    assert "prefill is refused: it is negative" in said(found)


@pytest.mark.parametrize("wrong", [float("nan"), 1e300, -7.0, "soon"])
def test_an_impossible_number_is_unknown(wrong: Any, reading: Any) -> None:
    found = reading(span("llm_request", attributes=VLLM | {PREFILL: str(wrong)}))
    assert "received" in at(found.requests[0])
    assert breakdown(found).requests


def test_an_e2e_that_is_not_the_spans_length_is_used_and_said(reading: Any) -> None:
    found = reading(span("llm_request", 0, 100, attributes=VLLM))
    assert at(found.requests[0])["finished"] == 1000 and "e2e is used" in said(found)


@pytest.mark.parametrize("length", [1000, 20])
def test_begin_and_end_that_were_swapped_are_swapped_back_and_said(length: int, reading: Any) -> None:
    times = {LATENCY + "e2e": length / 1000, LATENCY + "time_to_first_token": length / 2000}
    found = reading(span("llm_request", length, 0, attributes=VLLM_TOKENS | times))
    assert at(found.requests[0]) == {"first_token": length / 2, "finished": length}
    assert found.requests[0].arrival_ns == BEGIN and "swapped back" in said(found)


@pytest.mark.parametrize(
    ("begin", "end", "says"), [(5, 0, "ends before it begins: e2e is used"), (7, 7, "has no length: e2e")]
)
def test_a_span_without_a_length_has_its_e2e(begin: int, end: int, says: str, reading: Any) -> None:
    found = reading(span("llm_request", begin, end, attributes=VLLM))
    assert at(found.requests[0])["finished"] == 1000 and says in said(found)
    assert found.requests[0].provenance("finished_ns") is Provenance.DERIVED


@pytest.mark.parametrize(("times", "unit"), [(1e3, "milliseconds"), (1e6, "microseconds")])
def test_durations_in_another_unit_are_known_by_the_spans_length(
    times: float, unit: str, reading: Any
) -> None:
    other = {key: number * times for key, number in VLLM.items() if key.startswith(LATENCY)}
    right, wrong = (reading(span("llm_request", attributes=VLLM | change)) for change in ({}, other))
    assert at(wrong.requests[0]) == at(right.requests[0])
    assert unit in said(wrong) and unit not in said(right)


def test_times_that_are_no_nanoseconds_are_said(reading: Any) -> None:
    times = {"startTimeUnixNano": str(BEGIN // MS), "endTimeUnixNano": str(BEGIN // MS + 1000)}
    found = reading(span("llm_request", attributes=VLLM, **times))
    assert at(found.requests[0])["finished"] == 1000 and "loads cannot be judged" in said(found)


def test_tokens_that_are_missing_are_named_and_where_a_client_gets_them(reading: Any) -> None:
    times = {key: number for key, number in VLLM.items() if key.startswith(LATENCY)}
    engine = said(reading(span("llm_request", attributes=times)))
    assert "prompt tokens are unknown: no `gen_ai.usage.input_tokens`" in engine
    assert "output tokens are unknown" in engine and "include_usage" not in engine
    chat = {"gen_ai.operation.name": "chat"}
    assert "include_usage" in said(reading(span("chat", kind=3, attributes=chat)))


def test_no_tokens_at_all_are_not_believed(reading: Any) -> None:
    none = {"gen_ai.usage.prompt_tokens": 0, "gen_ai.usage.completion_tokens": 0}
    found = reading(span("llm_request", attributes=VLLM | none))
    assert found.requests[0].prompt_tokens is None
    assert "prompt tokens are refused" in said(found) and "yet there was decode" in said(found)


def test_phases_that_do_not_fit_are_refused(reading: Any) -> None:
    found = reading(span("llm_request", attributes=VLLM | {DECODE: 5.0}))
    assert "add up to more than its e2e" in said(found)
    broken = breakdown(found)
    assert not broken.requests and "contradicts itself" in broken.defects[0].defect


def test_a_first_token_after_the_end_is_refused(reading: Any) -> None:
    found = breakdown(reading(span("chat", attributes=CHAT | {TTFT: 2.0})))
    assert not found.requests


def test_a_span_that_runs_backwards_is_refused(reading: Any) -> None:
    found = breakdown(reading(span("chat", 1000, 0, attributes=CHAT)))
    assert not found.requests and "negative duration" in found.defects[0].defect


def test_clocks_that_differ_a_little_contradict_nothing(reading: Any) -> None:
    found = reading(span("llm_request", attributes=VLLM | {DECODE: 0.504}))
    assert breakdown(found).requests and at(found.requests[0])["last_token"] == 1000


def test_a_copy_is_counted_once_and_said(reading: Any) -> None:
    found = reading(span("llm_request", attributes=VLLM), span("llm_request", attributes=VLLM))
    assert len(found.requests) == 1 and "more than once" in said(found)


def test_an_id_that_is_used_twice_is_told_apart(reading: Any) -> None:
    found = reading(
        span("llm_request", attributes=VLLM),
        span("llm_request", 5000, 6000, attributes=VLLM),
        span("llm_request", trace=2, attributes=VLLM),
    )
    assert len({r.id for r in found.requests}) == 3 and "used twice" in said(found)
    assert len(breakdown(found).requests) == 3


def test_a_server_outside_its_client_means_that_clocks_disagree(reading: Any) -> None:
    found = reading(
        span("chat", 0, 1000, kind=3, attributes=CHAT),
        span("llm_request", 5000, 6000, number=2, parent=1, attributes=VLLM),
    )
    assert len(found.requests) == 1 and "clocks disagree" in said(found)


def test_impossible_counts_are_unknown(reading: Any) -> None:
    wrong = VLLM | {"gen_ai.usage.prompt_tokens": -5, "gen_ai.usage.completion_tokens": 1 << 60}
    found = reading(span("llm_request", attributes=wrong))
    assert found.requests[0].prompt_tokens is None and "are refused: impossible" in said(found)
