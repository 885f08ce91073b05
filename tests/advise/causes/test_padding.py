"""`padding` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import padding
from phasetrace.model import Finding
from phasetrace.model import Sequence as Row
from tests.advise import scenes
from tests.advise.asked import ask


def test_padding() -> None:
    assert ask(padding, scenes.padding(long=20, short=18)) is None
    found = ask(padding, scenes.padding())
    assert isinstance(found, Finding)
    assert "like length" in found.recommendation
    loop = ask(padding, scenes.padding(gap_ms=1))
    assert isinstance(loop, Finding)
    assert "sorted by length, 3,104 positions of padding would stay" in loop.evidence
    assert loop.ns < found.ns
    fixed = scenes.chat(rows=[Row(20, 492, 32, "length")] * 4)
    found = ask(padding, fixed)
    assert isinstance(found, Finding)
    assert "fixed length" in found.recommendation
