"""`many-sequences` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import many_sequences
from phasetrace.model import Finding
from phasetrace.model import Sequence as Row
from tests.advise import scenes
from tests.advise.asked import ask


def test_many_sequences() -> None:
    rows = [Row(100, 0, 32, "length")] * 5
    assert ask(many_sequences, scenes.chat(rows=rows)) is None
    found = ask(many_sequences, scenes.chat(rows=rows, settings={"num_beams": 5}, mode="beam"))
    assert isinstance(found, Finding)
    assert found.confidence == "low"
