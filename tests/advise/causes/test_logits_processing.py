"""`logits-processing` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import logits_processing
from phasetrace.model import Finding, NotEnoughData
from tests.advise import scenes
from tests.advise.asked import LARGE, ask, on_device


def test_logits_processing() -> None:
    assert ask(logits_processing, scenes.chat()) is None
    assert isinstance(ask(logits_processing, scenes.logits()), Finding)
    on_gpu = scenes.logits(model=LARGE)
    assert isinstance(ask(logits_processing, on_gpu), NotEnoughData)
    assert ask(logits_processing, on_device(on_gpu, 0.95)) is None
