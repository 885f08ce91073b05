"""`frontend` in recorded steps: a good case, a bad one, and where too little is known."""

from dataclasses import replace

from phasetrace.advise.causes import frontend
from phasetrace.model import Finding
from tests.advise import scenes
from tests.advise.asked import ask
from tests.builders import MS


def test_frontend() -> None:
    assert ask(frontend, scenes.chat()) is None
    early = [replace(r, arrival_ns=r.arrival_ns - 300 * MS) for r in scenes.chat().requests]
    found = ask(frontend, replace(scenes.chat(), requests=tuple(early)))
    assert isinstance(found, Finding)
    assert "before it calls the model" in found.recommendation
    tokenizing = [replace(r, tokenize_ns=290 * MS) for r in early]
    found = ask(frontend, replace(scenes.chat(), requests=tuple(tokenizing)))
    assert isinstance(found, Finding)
    assert "Tokenise" in found.recommendation
