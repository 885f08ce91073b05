"""What contradicts itself is refused and named."""

from dataclasses import replace

import numpy as np
import pytest

from phasetrace.analyze import breakdown
from phasetrace.model import Part, Process, RequestStatus, StepCount
from tests import builders
from tests.builders import EPOCH, MS

GOOD = builders.request("good", steps=builders.steps(4))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"first_token_ns": EPOCH - 48_000 * MS}, "negative"),
        ({"last_token_ns": EPOCH + 1}, "before"),
        ({"first_output_ns": EPOCH + 1}, "first output is"),
        ({"finished_ns": None}, "missing"),
        ({"cached_tokens": 99}, "impossible"),
        ({"sequences": (builders.Row(prompt_tokens=-1, output_tokens=4),)}, "impossible"),
        ({"sequences": (builders.Row(prompt_tokens=1, output_tokens=10_000_000),)}, "impossible rate"),
        ({"sequences": (builders.Row(prompt_tokens=1 << 62, output_tokens=4),)}, "prompt tokens: impossible"),
        ({"prefill_chunks": (StepCount(0, 1 << 40),)}, "prefilled tokens: impossible"),
        ({"status": RequestStatus.FAILED, "cached_tokens": -1}, "cached tokens: impossible"),
    ],
)
def test_a_contradiction_is_refused(change: dict[str, object], words: str) -> None:
    bad = replace(GOOD, id="bad", **change)  # type: ignore[arg-type]
    result = breakdown(builders.recording(GOOD, bad, steps=[builders.steps(4)]))
    assert [r.request.id for r in result.requests] == ["good"]
    assert any("bad" in d.defect and words in d.defect for d in result.defects)


def test_a_request_of_many_years_is_refused() -> None:
    result = breakdown(
        builders.recording(replace(GOOD, arrival_ns=GOOD.arrival_ns - 10**17), steps=[builders.steps(4)])
    )
    assert not result.requests
    assert "more than a year" in result.defects[0].defect


def test_a_duplicate_counts_once() -> None:
    result = breakdown(builders.recording(GOOD, GOOD, steps=[builders.steps(4)]))
    assert len(result.requests) == 1
    assert "2 times" in result.defects[0].defect


def test_steps_that_do_not_add_up_are_refused() -> None:
    steps = builders.steps(4)
    parts = {part: column // 2 for part, column in steps.parts.items()}
    result = breakdown(builders.recording(GOOD, steps=[replace(steps, parts=parts)]))
    assert not result.requests
    assert "does not close" in result.defects[0].defect


def test_steps_with_a_part_that_is_negative_are_refused() -> None:
    steps = builders.steps(4)
    parts = dict(steps.parts)
    parts[Part.SCHEDULE] = np.array([0, 0, -5, 0])
    parts[Part.OTHER] = steps.end_ns - steps.begin_ns - sum(c for p, c in parts.items() if p != Part.OTHER)
    result = breakdown(builders.recording(GOOD, steps=[replace(steps, parts=parts)]))
    assert not result.requests
    assert "does not close" in result.defects[0].defect


def test_failed_and_cut_off_requests_are_kept_out_without_a_defect() -> None:
    cut = replace(GOOD, id="cut", status=RequestStatus.CUT_OFF, finished_ns=None)
    result = breakdown(builders.recording(GOOD, cut, steps=[builders.steps(4)]))
    assert [r.id for r in result.failed] == ["cut"]
    assert not result.defects


def test_many_defects_are_counted() -> None:
    bad = [replace(GOOD, id=f"bad{n}", finished_ns=None) for n in range(9)]
    result = breakdown(builders.recording(GOOD, *bad, steps=[builders.steps(4)]))
    assert len(result.defects) == 6
    assert "4 more" in result.defects[-1].defect


def test_a_trace_of_others_without_a_configuration_says_how_to_state_one() -> None:
    def said(**changes: object) -> str:
        foreign = replace(builders.recording(GOOD, steps=[builders.steps(4)]), source="otlp", models={})
        return "\n".join(d.defect for d in breakdown(replace(foreign, **changes)).defects)  # type: ignore[arg-type]

    assert "--engine-config" in said(processes=())
    stated = Process(GOOD.process, 0, 0, facts={"max_num_seqs": 4})
    assert "--engine-config" not in said(processes=(stated,))
    assert "--engine-config" not in said(processes=(), source="phasetrace")
    unseen = replace(GOOD, scheduled_ns=None)  # by a client, who may know nothing of the server
    assert "--engine-config" not in said(processes=(), requests=(unseen,))
