"""What stands below a verdict: how the run went."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from phasetrace.model import (
    Breakdown,
    Goal,
    Owner,
    Pace,
    Phase,
    PhaseTime,
    RequestBreakdown,
    StallCause,
    StallPattern,
)
from phasetrace.render import course, text
from phasetrace.render.ink import Ink, cells

MS = 1_000_000


def owner(metric: str, percentile: int, phase: Phase, group: str | None = None) -> Owner:
    phases = (PhaseTime(Phase.QUEUE, 10), PhaseTime(phase, 80))
    return Owner(metric, percentile, 4, 100.0, phases, group)


def late(made: ModuleType, number: int, ms: float, stretched_ms: float) -> RequestBreakdown:
    """A request that took so long, most of it in steps that read others' prompts."""
    phases = (
        made.phase(Phase.PREFILL, 100, forward=100),
        made.phase(Phase.DECODE, ms - 100, floor=50, others_prefill=ms - 150),
    )
    one = made.request_breakdown()
    return replace(
        one,
        request=made.request(f"0a1b2c3d4e5f6a7b-{number}"),
        phases=phases,
        e2e_ns=int(ms * MS),
        ttft_ns=int((1000 - ms) * MS),
        stretched_others_ns=int(stretched_ms * MS),
    )


@pytest.fixture
def busy(made: ModuleType) -> Breakdown:
    """A server whose tail has another owner than its middle."""
    b: Breakdown = made.breakdown(
        requests=tuple(late(made, n, 300 + n, 1000 * n) for n in range(1, 6)),
        phases=(
            made.phase(Phase.PREFILL, 500, forward=500),
            made.phase(Phase.DECODE, 1015, floor=250, others_prefill=765),
        ),
        owners=(
            *(owner("ttft_ns", p, Phase.PREFILL) for p in (50, 95, 99)),
            owner("e2e_ns", 50, Phase.DECODE),
            *(owner("e2e_ns", p, Phase.PREEMPTED) for p in (95, 99)),
            owner("e2e_ns", 50, Phase.CLIENT, "prompt<256"),
            owner("e2e_ns", 95, Phase.CLIENT, "prompt<256"),
        ),
        pace=Pace(0, 2_400 * MS, (2,) * 120 + (0,) * 120, (10 * MS,) * 120 + (900 * MS,) * 120),
        stall_patterns=(
            StallPattern(StallCause.OTHERS_PREFILL, 3, 400 * MS, 130 * MS),
            StallPattern(StallCause.GC, 12, 20 * MS, 9 * MS, 200 * MS),
            StallPattern(StallCause.UNKNOWN, 1, 1 * MS, 1 * MS),
        ),
    )
    return b


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_busy_server(
    made: ModuleType, busy: Breakdown, width: int, golden: Callable[[str, str], None]
) -> None:
    said = text.diagnosis(made.diagnosis(breakdown=busy), width)
    assert all(line == line.rstrip() and cells(line) <= width for line in said.splitlines())
    golden(f"busy.{width}.txt", said)


@pytest.mark.parametrize("width", [20, 40])
def test_in_little_room_it_is_still_said(made: ModuleType, busy: Breakdown, width: int) -> None:
    assert "others-prefill" in text.diagnosis(made.diagnosis(breakdown=busy), width, ascii=True)


def test_the_answer_is_on_the_first_screen(made: ModuleType, busy: Breakdown) -> None:
    first = "\n".join(text.diagnosis(made.diagnosis(breakdown=busy)).splitlines()[:24])
    assert "long-output:" in first and "max_new_tokens=40" in first and "gain" in first


def test_one_owner_of_all_percentiles_is_named_once(busy: Breakdown) -> None:
    assert course.owned(busy.owners, "ttft_ns") == ["prefill 80 %"]
    assert course.owned(busy.owners, "e2e_ns") == ["p50 decode 80 %", "p95-p99 preempted 80 %"]
    assert course.owned((), "e2e_ns") == []


def test_a_group_is_named_where_its_tail_is_another_phase_than_that_of_all() -> None:
    owners = (
        owner("ttft_ns", 95, Phase.PREFILL),
        owner("ttft_ns", 95, Phase.PREFILL, "prompt<256"),
        owner("ttft_ns", 95, Phase.FRONTEND, "operation=chat"),
        owner("ttft_ns", 99, Phase.FRONTEND, "prompt<256"),
    )
    assert course.apart(owners) == ["TTFT p95 of operation=chat: 100 ns, frontend 80 %"]


def test_the_goal_says_what_slow_is(busy: Breakdown) -> None:
    ink = Ink()
    assert course.slowest(busy, Goal.E2E, ink)[1].split()[0].endswith("-5")
    assert course.slowest(busy, Goal.TTFT, ink)[1].split()[0].endswith("-1")


def test_ids_that_end_alike_are_given_whole(made: ModuleType, busy: Breakdown) -> None:
    alike = [
        replace(r, request=made.request(f"request-{n}-of-one-conversation"))
        for n, r in enumerate(busy.requests)
    ]
    lines = course.slowest(replace(busy, requests=tuple(alike)), Goal.E2E, Ink())
    assert "request-4-of-one-conversation" in lines[1]


def test_ids_are_shown_and_never_obeyed(made: ModuleType, busy: Breakdown) -> None:
    evil = [replace(r, request=made.request(f"\x1b[2J{n}")) for n, r in enumerate(busy.requests)]
    said = text.diagnosis(made.diagnosis(breakdown=replace(busy, requests=tuple(evil))))
    assert r"\x1b[2J4" in said and "\x1b" not in said


def test_few_tokens_and_few_requests_make_no_tables(made: ModuleType, busy: Breakdown) -> None:
    few = replace(busy, requests=busy.requests[:3], pace=Pace(0, 10, (0,) * 239 + (99,), (1,) * 240))
    assert course.slowest(few, Goal.E2E, Ink()) == [] and course.pace(few, Ink()) == []


def test_what_costs_little_is_not_told(busy: Breakdown) -> None:
    slow = replace(busy, phases=(PhaseTime(Phase.QUEUE, 10**12),))
    assert course.stalls(slow, Ink()) == []
