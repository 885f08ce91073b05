"""The live line says what the last seconds held, and never disturbs anything."""

from __future__ import annotations

import dataclasses
import io

import numpy as np

from phasetrace.model import Phase, Recording, Steps
from phasetrace.render.ink import Ink
from phasetrace.render.live import Now, live_line
from phasetrace.supervise.live import Live
from tests.builders import EPOCH, MS, recording, request, steps
from tests.supervise.runs import Runs, app


def busy(taken: Steps, running: int, waiting: int) -> Steps:
    ones = np.ones(len(taken), np.int64)
    return dataclasses.replace(
        taken, running=running * ones, waiting=waiting * ones, new_tokens=running * ones
    )


def test_now_is_the_window_and_nothing_older() -> None:
    live = Live(io.StringIO())
    old = busy(steps(4, begin=EPOCH), 9, 9)
    begin = EPOCH + 60_000 * MS
    fresh = busy(steps(10, begin=begin, first_index=4), 2, 1)
    live.record(recording(request(steps=old), steps=[old]))
    live.record(recording(request("r2", steps=fresh), steps=[fresh]))
    now = live.now(int(fresh.end_ns[-1]) + MS)
    assert (now.running, now.waiting, now.requests) == (2, 1, 2)
    assert now.tokens_s == 2.0  # 20 tokens in a window of 10 s
    assert now.itl_ns == 10 * MS and now.ttft_ns == 10 * MS
    assert set(now.phases) >= {Phase.PREFILL, Phase.DECODE}


def test_while_a_step_takes_long_the_requests_that_wait_for_it_are_counted() -> None:
    live = Live(io.StringIO())
    taken = busy(steps(3), 2, 1)
    live.record(Recording(steps=(taken,)))
    live.draw(under_way=3)
    now = live.now(int(taken.end_ns[-1]) + 5_000 * MS)
    assert now.running is None and now.waiting is None
    assert "3 under way" in live_line(now, Ink())


def test_without_a_request_nothing_runs_however_fresh_the_last_step() -> None:
    live = Live(io.StringIO())
    taken = busy(steps(3), 2, 1)
    live.record(Recording(steps=(taken,)))
    live.draw(under_way=0)
    assert "0 under way" in live_line(live.now(int(taken.end_ns[-1]) + MS), Ink())


def test_before_anything_ran_the_line_says_so() -> None:
    assert "0 under way  0 requests done" in live_line(Live(io.StringIO()).now(EPOCH), Ink())


def test_the_line_fits_and_leaves_out_from_the_end_and_small_phases_first() -> None:
    now = Now(3, 1, 4, 12, 420.0, 4e8, 2e7, {Phase.QUEUE: 1, Phase.PREFILL: 20, Phase.DECODE: 79})
    whole = live_line(now, Ink(width=200))
    assert whole.endswith("prefill 20 %  decode 79 %")
    for width in (20, 40, 79):
        assert len(live_line(now, Ink(width=width))) <= width
        assert whole.startswith(live_line(now, Ink(width=width)))
    assert live_line(now, Ink(width=len(whole) - 1)).endswith("ITL 20.0 ms  prefill 20 %  decode 79 %")
    assert live_line(now, Ink(width=len(whole) - 26)).endswith("ITL 20.0 ms  decode 79 %")


def test_in_a_file_the_lines_are_plain() -> None:
    stream = io.StringIO()
    live = Live(stream)
    live.draw()
    live.draw()  # at once: not again
    assert stream.getvalue().count("\n") == 1
    live.close()
    assert stream.getvalue().count("\n") == 2 and "\x1b" not in stream.getvalue()


def test_a_stream_that_is_closed_does_not_matter() -> None:
    stream = io.StringIO()
    live = Live(stream)
    stream.close()
    live.draw()
    live.close()


def test_run_live_shows_a_line_and_keeps_the_applications_output(runs: Runs) -> None:
    done = runs.run(app("generate", 2), "--live")
    assert done.returncode == 0
    assert "phasetrace:  " in done.stderr and "phasetrace:  " not in done.stdout
    assert len(runs.recording().requests) == 2


def test_a_page_for_prometheus_that_cannot_be_served_is_said_and_costs_nothing(runs: Runs) -> None:
    done = runs.run(app("generate", 1), "--metrics", "192.0.2.1:9464")
    assert done.returncode == 0
    assert "no metrics are served" in done.stderr
    assert len(runs.recording().requests) == 1


def test_an_address_that_is_none_ends_before_the_command_starts(runs: Runs) -> None:
    done = runs.run(app("generate", 1), "--metrics", "nowhere")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "[HOST:]PORT" in done.stderr
