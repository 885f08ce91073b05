"""`bandwidth-bound` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import bandwidth_bound
from phasetrace.model import Ceilings, Finding, NotEnoughData
from tests.advise import scenes
from tests.advise.asked import LARGE, ask


def test_bandwidth_bound() -> None:
    large = scenes.chat(step_ms=10, model=LARGE)
    assert isinstance(ask(bandwidth_bound, large), NotEnoughData)
    assert isinstance(ask(bandwidth_bound, large, Ceilings(2e12)), Finding)
    assert ask(bandwidth_bound, large, Ceilings(20e12)) is None
