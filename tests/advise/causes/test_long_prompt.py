"""`long-prompt` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import long_prompt
from phasetrace.model import Finding, Goal, NotEnoughData
from tests.advise import scenes
from tests.advise.asked import ask


def test_long_prompt() -> None:
    ttft = {"goal": Goal.TTFT, "goal_stated": True}
    assert ask(long_prompt, scenes.chat(), **ttft) is None
    long = scenes.chat(prompt=6000, prefill_ms=1100)
    assert isinstance(ask(long_prompt, long, **ttft), Finding)
    assert ask(long_prompt, scenes.padding(), **ttft) is None
    uncounted = scenes.shifted(long, sequences=(), prefill_chunks=())
    assert isinstance(ask(long_prompt, uncounted, **ttft), NotEnoughData)
