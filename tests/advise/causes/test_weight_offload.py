"""`weight-offload` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import weight_offload
from phasetrace.model import Finding, NotEnoughData
from tests.advise import scenes
from tests.advise.asked import LARGE, ask, without_steps


def test_weight_offload() -> None:
    assert ask(weight_offload, scenes.chat(model=LARGE)) is None
    offloaded = scenes.chat(step_ms=800, model={**LARGE, "offloaded_bytes": 7_000_000_000})
    assert isinstance(ask(weight_offload, offloaded), Finding)
    assert isinstance(ask(weight_offload, without_steps(offloaded)), NotEnoughData)
