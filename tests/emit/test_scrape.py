"""What Prometheus finds on the page adds up to what was recorded."""

from __future__ import annotations

import dataclasses
import time
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from phasetrace.emit.scrape import Address, Scrape, address
from phasetrace.errors import UsageError
from phasetrace.model import Interval, Pause, Recording, RequestStatus, Sequence, Steps, Wait
from tests.builders import EPOCH, MS, PROCESS, process, recording, request, steps

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def page() -> Iterator[Scrape]:
    scrape = Scrape(Address("127.0.0.1", 0))
    yield scrape
    scrape.close()


def read(page: Scrape) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{page.port}/metrics") as answer:
        text = answer.read().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(samples: Samples, name: str, **labels: str) -> float:
    return sum(
        value
        for (found, its), value in samples.items()
        if found == name and labels.items() <= dict(its).items()
    )


def queued(taken: Steps, *waits: Wait) -> Steps:
    codes = np.array([tuple(Wait).index(wait) for wait in waits])
    ones = np.ones(len(taken), np.int64)
    return dataclasses.replace(taken, waits=codes, waiting=3 * ones, running=2 * ones, kv_blocks=5 * ones)


def test_the_phases_of_requests_sum_to_their_wall_clock(page: Scrape) -> None:
    taken = steps(5)
    page.record(recording(request(steps=taken), steps=[taken]))
    page.record(recording(request("r2", steps=taken)))
    found = read(page)
    wall = total(found, "gen_ai_server_request_duration_seconds_sum")
    assert wall > 0
    assert total(found, "phasetrace_phase_duration_seconds_sum") == pytest.approx(wall, abs=1e-9)
    assert total(found, "gen_ai_server_request_duration_seconds_count") == 2


def test_tokens_and_preemptions_are_counted_by_kind(page: Scrape) -> None:
    rows = (Sequence(prompt_tokens=7, output_tokens=5),)
    away = (Interval(EPOCH + MS, EPOCH + 2 * MS),)
    page.record(
        recording(
            request(steps=steps(5), sequences=rows, cached_tokens=4, preemptions=away), steps=[steps(5)]
        )
    )
    found = read(page)
    assert total(found, "phasetrace_tokens_total", phasetrace_token_kind="prompt") == 7
    assert total(found, "phasetrace_tokens_total", phasetrace_token_kind="cached") == 4
    assert total(found, "phasetrace_tokens_total", phasetrace_token_kind="output") == 5
    assert total(found, "phasetrace_preemptions_total") == 1


def test_failed_requests_have_a_duration_and_no_phases(page: Scrape) -> None:
    page.record(recording(request(steps=steps(5), status=RequestStatus.FAILED, error_type="KeyError")))
    page.record(recording(request("r2", status=RequestStatus.CUT_OFF, finished_ns=None)))
    found = read(page)
    assert total(found, "gen_ai_server_request_duration_seconds_count", error_type="KeyError") == 1
    assert total(found, "gen_ai_server_request_duration_seconds_count") == 1
    assert total(found, "phasetrace_phase_duration_seconds_count") == 0


def test_the_queue_is_told_by_reason(page: Scrape) -> None:
    taken = queued(steps(4, ms=10.0), Wait.KV, Wait.KV, Wait.SLOTS, Wait.NONE)
    page.record(Recording(steps=(taken,)))
    found = read(page)
    by_reason = {
        reason: total(found, "phasetrace_queue_blocked_seconds_total", phasetrace_wait_reason=reason)
        for reason in ("kv", "slots", "none")
    }
    assert by_reason == pytest.approx({"kv": 0.02, "slots": 0.01, "none": 0.0})
    assert total(found, "phasetrace_step_duration_seconds_count") == 4


def test_gauges_show_the_last_step_and_nothing_of_an_engine_that_stands_still(page: Scrape) -> None:
    facts = process(facts={"num_gpu_blocks": 20})
    now = time.time_ns()
    fresh = queued(steps(1, begin=now), Wait.KV)
    page.record(Recording(steps=(fresh,), processes=(facts,)))
    labels = {"phasetrace_process_key": PROCESS}
    found = read(page)
    assert total(found, "phasetrace_running", **labels) == 2
    assert total(found, "phasetrace_waiting", **labels) == 3
    assert total(found, "phasetrace_kv_cache_usage", **labels) == 0.25
    other = "00000000000000b2"
    old = queued(steps(1, begin=now - 60_000 * MS, process=other), Wait.KV)
    page.record(Recording(steps=(old,)))
    found = read(page)
    assert total(found, "phasetrace_running", phasetrace_process_key=other) == 0
    assert total(found, "phasetrace_running", **labels) == 2


def test_pauses_are_summed(page: Scrape) -> None:
    page.record(Recording(pauses=(Pause(PROCESS, "gc", EPOCH, EPOCH + 30 * MS),)))
    assert total(read(page), "phasetrace_paused_seconds_total", phasetrace_pauses_kind="gc") == 0.03


@pytest.mark.parametrize(
    "asked, found",
    [
        ("9464", Address("localhost", 9464)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
        ("[::1]:9464", Address("::1", 9464)),
        (None, None),
    ],
)
def test_where_the_page_is(asked: str | None, found: Address | None) -> None:
    assert address(asked) == found


def test_the_environment_may_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "otlp, prometheus")
    assert address(None) == Address("localhost", 9464)
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", "9999")
    assert address(None) == Address("localhost", 9999)


@pytest.mark.parametrize("wrong", ["here", "localhost:", "host:http", "99999999"])
def test_an_address_that_is_none_gets_one_line(wrong: str) -> None:
    with pytest.raises(UsageError, match="9464"):
        address(wrong)
