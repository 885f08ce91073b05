"""`small-batch` in recorded steps: a good case, a bad one, and where too little is known."""

from dataclasses import replace

from phasetrace.advise.causes import small_batch
from phasetrace.model import Finding, Goal, NotEnoughData
from phasetrace.model import Sequence as Row
from tests.advise import scenes
from tests.advise.asked import ask, without_steps


def test_small_batch() -> None:
    throughput = {"goal": Goal.THROUGHPUT}
    assert ask(small_batch, scenes.chat(), **throughput) is None
    assert isinstance(ask(small_batch, scenes.small_batch(), **throughput), Finding)
    assert isinstance(ask(small_batch, scenes.contending(), **throughput), Finding)
    # No more can share a step than call at a time, whatever the loop of a batch job could hold.
    few = ask(small_batch, scenes.contending(8), **throughput)
    assert isinstance(few, Finding)
    assert "about 8 here" in few.recommendation
    blind = without_steps(scenes.small_batch())
    assert isinstance(ask(small_batch, blind, **throughput), NotEnoughData)


def test_small_batch_leaves_conversations_and_streams_alone() -> None:
    throughput = {"goal": Goal.THROUGHPUT}
    recording = scenes.small_batch()
    growing = tuple(
        replace(r, sequences=(Row(14 + 20 * n, 0, 16, "stop"),)) for n, r in enumerate(recording.requests)
    )
    assert ask(small_batch, replace(recording, requests=growing), **throughput) is None
    streamed = scenes.small_batch(settings={"streamer": True})
    assert ask(small_batch, streamed, **throughput) is None


def test_small_batch_does_not_promise_what_arithmetic_forbids() -> None:
    """Where a prompt token costs as much as a step, sequences side by side cost as much as one by one."""
    bound = scenes.calls(64, prompt=100, prefill_ms=1000, step_ms=10, tokens=16, gap_ms=1)
    assert ask(small_batch, bound, goal=Goal.THROUGHPUT) is None
