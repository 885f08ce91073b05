from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from phasetrace.model import Part, RequestStatus, StallCause, StepCount
from phasetrace.render import waterfall
from phasetrace.render.ink import cells
from phasetrace.render.timeline import timeline

MS = 1_000_000


def test_a_request(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    golden("waterfall.txt", waterfall.request(made.request_breakdown(), made.recording()))


def test_prefill_in_chunks_in_ascii(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    chunked = made.request(
        prefill_chunks=(StepCount(0, 512), StepCount(1, 512)),
        first_token_ns=120 * MS,
        settings={"do_sample": True, "max_new_tokens": 120},
    )
    said = waterfall.request(
        replace(made.request_breakdown(), request=chunked), made.recording(), 60, ascii=True
    )
    assert said.isascii()
    golden("waterfall.ascii.txt", said)


def test_marks_of_a_trace_of_others(made: ModuleType) -> None:
    foreign = replace(
        made.request_breakdown(),
        request=made.request(derived=frozenset({"first_token_ns"}), cached_tokens=None, last_token_ns=None),
    )
    said = waterfall.request(foreign, made.recording(source="otlp"))
    assert "derived: first token; unknown: received by the engine, last token, cached tokens" in said
    own = waterfall.request(foreign, made.recording())
    assert "derived: first token\n" in own and "unknown:" not in own


def test_a_failed_request(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    failed = made.request("bad", status=RequestStatus.FAILED, error_type="RuntimeError", finished_ns=None)
    golden("waterfall.failed.txt", waterfall.unfinished(failed, made.recording()))


def test_a_list_of_requests(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    slow = replace(made.request_breakdown(), request=made.request("slow\x1b[2J"), e2e_ns=9_000 * MS)
    failed = made.request("bad", status=RequestStatus.CUT_OFF)
    golden("list.txt", waterfall.listing([slow, made.request_breakdown()], (failed,)))


def test_a_request_without_steps_has_its_phases(made: ModuleType) -> None:
    said = waterfall.request(made.request_breakdown(), made.recording(steps=(), pauses=()))
    assert "decode" in said and "ITL" not in said and "stalls" not in said


@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("color", [False, True])
def test_lines_keep_to_the_width(made: ModuleType, width: int, color: bool) -> None:
    lines = waterfall.request(made.request_breakdown(), made.recording(), width).splitlines()
    assert all(line == line.rstrip() and cells(line) <= width for line in lines)


def test_a_stall_holds_what_overran(made: ModuleType) -> None:
    steps = timeline(made.request(), made.recording())
    assert steps is not None
    (stall,) = steps.stalls()
    assert (stall.token, stall.gap_ns, stall.at_ns, stall.cause) == (51, 60 * MS, 600 * MS, StallCause.GC)
    assert next(iter(stall.parts)) is Part.GC
    assert stall.parts[Part.GC] == 50 * MS


def test_strings_of_a_trace_are_shown_and_never_obeyed(made: ModuleType) -> None:
    evil = made.request("\x1b[2J", mode="\r", finish_reason="\x07", settings={"a\x1b": "\x1b]"})
    said = waterfall.request(replace(made.request_breakdown(), request=evil), made.recording())
    assert not any(c in said for c in "\x1b\r\x07")
