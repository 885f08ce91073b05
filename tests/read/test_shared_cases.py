"""Real spans of a real server, where the folder beside the project that holds them is here."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from phasetrace.advise import diagnose
from phasetrace.analyze import breakdown
from phasetrace.model import Diagnosis, Goal, Phase, Recording, RequestBreakdown
from phasetrace.read import engine_config, read
from phasetrace.semconv import Cause
from tests.read.real_files import FOLDER

if not FOLDER.is_dir():
    pytest.skip(
        f"the folder of real spans, {FOLDER.name}, is not beside the project", allow_module_level=True
    )
ALONE = 40  # the first requests of each file came one at a time
SPANS = {64: 200, 4096: 197}


def file(budget: int) -> Path:
    return FOLDER / f"codellama34b_budget{budget}.otlp.jsonl"


def recorded(budget: int, requests: int | None = None) -> Recording:
    found = read(file(budget))
    chosen = sorted(found.requests, key=lambda r: r.arrival_ns)[:requests]
    config = engine_config(FOLDER / f"codellama34b_budget{budget}.config.json")
    return config.beside(replace(found, requests=tuple(chosen)))


def diagnosed(budget: int) -> Diagnosis:
    config = engine_config(FOLDER / f"codellama34b_budget{budget}.config.json")
    return diagnose(breakdown(recorded(budget, ALONE)), goal=Goal.TTFT, ceilings=config.ceilings)


@pytest.mark.parametrize("budget", SPANS)
def test_no_span_is_lost_and_no_number(budget: int) -> None:
    spans = [
        span
        for line in file(budget).read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    found = {r.span_id: r for r in read(file(budget)).requests}
    assert len(found) == len(spans) == SPANS[budget]
    for span in spans:
        request = found[span["spanId"]]
        raw = {p["key"]: next(iter(p["value"].values())) for p in span["attributes"]}
        assert request.arrival_ns == int(span["startTimeUnixNano"])
        assert request.finished_ns == int(span["endTimeUnixNano"])
        assert request.prompt_tokens == int(raw["gen_ai.usage.prompt_tokens"])
        assert request.output_tokens == int(raw["gen_ai.usage.completion_tokens"])
        assert request.external_id == raw["gen_ai.request.id"]
        intervals = {
            "time_to_first_token": (request.arrival_ns, request.first_token_ns),
            "time_in_queue": (request.received_ns, request.scheduled_ns),
            "time_in_model_prefill": (request.scheduled_ns, request.first_token_ns),
            "time_in_model_decode": (request.first_token_ns, request.last_token_ns),
        }
        for name, (begin, end) in intervals.items():
            assert begin is not None and end is not None
            assert (end - begin) / 1e9 == pytest.approx(float(raw[f"gen_ai.latency.{name}"]), abs=2e-3), name


@pytest.mark.parametrize("budget", SPANS)
def test_every_phase_closes(budget: int) -> None:
    result = breakdown(recorded(budget))
    assert len(result.requests) + len(result.warm_up) == SPANS[budget] and not result.failed
    for request in (*result.requests, *result.warm_up):
        assert sum(p.ns for p in request.phases) == request.e2e_ns
        assert request.phase_ns(Phase.UNATTRIBUTED) == 0


def alone(budget: int) -> dict[int | None, RequestBreakdown]:
    """The requests that ran alone by the length of their prompts, of which no two are equal."""
    result = breakdown(recorded(budget, ALONE))
    return {r.request.prompt_tokens: r for r in (*result.warm_up, *result.requests)}


def test_pairs_of_one_prompt_give_the_measured_ratios() -> None:
    small, large = alone(64), alone(4096)
    assert small.keys() == large.keys() and len(small) == ALONE
    pairs = [(small[tokens], large[tokens]) for tokens in small]
    prefill = statistics.median(a.phase_ns(Phase.PREFILL) / b.phase_ns(Phase.PREFILL) for a, b in pairs)
    assert prefill == pytest.approx(4.26, rel=0.02)
    assert statistics.median(a.e2e_ns / b.e2e_ns for a, b in pairs) == pytest.approx(1.65, rel=0.02)


def test_the_small_budget_is_the_cause_and_the_large_one_is_none() -> None:
    small, large = diagnosed(64), diagnosed(4096)
    assert small.cause == Cause.SMALL_PREFILL_CHUNK
    assert large.cause in (Cause.LONG_PROMPT, Cause.HEALTHY)
    prediction = small.findings[0].prediction
    assert prediction is not None
    measured = large.breakdown.metrics["ttft_ns"].p50 / 1e9
    assert prediction.low <= measured <= prediction.high
