"""`stream-consumer` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import stream_consumer
from phasetrace.model import Finding, NotEnoughData
from tests.advise import scenes
from tests.advise.asked import LARGE, ask, on_device


def test_stream_consumer() -> None:
    assert ask(stream_consumer, scenes.chat()) is None
    assert isinstance(ask(stream_consumer, scenes.stream_consumer()), Finding)


def test_a_streamer_that_waits_for_the_device_is_not_to_blame() -> None:
    on_gpu = scenes.stream_consumer(model=LARGE)
    assert isinstance(ask(stream_consumer, on_gpu), NotEnoughData)
    assert ask(stream_consumer, on_device(on_gpu, 0.97)) is None
    found = ask(stream_consumer, on_device(on_gpu, 0.3))
    assert isinstance(found, Finding)
    assert found.confidence == "medium"
