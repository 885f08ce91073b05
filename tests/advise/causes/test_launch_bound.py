"""`launch-bound` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import launch_bound
from phasetrace.model import Finding, Part
from tests.advise import scenes
from tests.advise.asked import LARGE, ask, on_device


def test_launch_bound() -> None:
    assert ask(launch_bound, scenes.chat()) is None
    small = {**LARGE, "weight_bytes": 250_000_000}
    assert isinstance(ask(launch_bound, scenes.chat(step_ms=30, model=small)), Finding)
    assert ask(launch_bound, scenes.chat(step_ms=30, model=LARGE)) is None
    idle = on_device(scenes.chat(step_ms=30, model=LARGE), 0.2)
    found = ask(launch_bound, idle)
    assert isinstance(found, Finding)
    assert found.confidence == "high"
    python = {Part.FORWARD: 0.5, Part.PREPARE: 0.25, Part.UPDATE: 0.25}
    found = ask(launch_bound, scenes.chat(parts=python))
    assert isinstance(found, Finding)
    assert found.confidence == "low"
