"""`gc-pause` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import gc_pause
from phasetrace.model import Finding
from tests.advise import scenes
from tests.advise.asked import ask


def test_gc_pause() -> None:
    assert ask(gc_pause, scenes.chat()) is None
    assert isinstance(ask(gc_pause, scenes.collected()), Finding)
