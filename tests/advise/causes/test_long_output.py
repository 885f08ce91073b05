"""`long-output` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import long_output
from phasetrace.model import Finding, NotEnoughData
from tests.advise import scenes
from tests.advise.asked import ask


def test_long_output() -> None:
    assert ask(long_output, scenes.chat()) is None
    assert isinstance(ask(long_output, scenes.long_output()), Finding)
    assert isinstance(ask(long_output, scenes.chat(tokens=100), goal_stated=True), Finding)
    uncounted = scenes.shifted(scenes.long_output(), sequences=())
    assert isinstance(ask(long_output, uncounted), NotEnoughData)
