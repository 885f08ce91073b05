"""`warm-up` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import warm_up
from phasetrace.model import Finding
from tests.advise import scenes
from tests.advise.asked import ask


def test_warm_up() -> None:
    assert ask(warm_up, scenes.chat()) is None
    assert isinstance(ask(warm_up, scenes.warm_up()), Finding)


def test_compiling_again_and_again_is_warm_up_too() -> None:
    found = ask(warm_up, scenes.chat(step_ms=[4000, *[10] * 30]))
    assert isinstance(found, Finding)
    assert "shape" in found.recommendation
