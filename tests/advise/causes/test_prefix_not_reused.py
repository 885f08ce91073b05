"""`prefix-not-reused` in recorded steps: a good case, a bad one, and where too little is known."""

from dataclasses import replace

from phasetrace.advise.causes import prefix_not_reused
from phasetrace.model import Finding, NotEnoughData, PrefixChunk, Recording
from tests.advise import scenes
from tests.advise.asked import ask


def hashed(recording: Recording, shared: int) -> Recording:
    """Prompts whose first `shared` chunks of 32 tokens are the same."""
    requests = tuple(
        replace(r, prefixes=((*[PrefixChunk(k, 32) for k in range(shared)], PrefixChunk(1000 + n, 32)),))
        for n, r in enumerate(recording.requests)
    )
    return replace(recording, requests=requests)


def test_prefix_not_reused() -> None:
    recording = scenes.chat(prompt=640, prefill_ms=900)
    assert ask(prefix_not_reused, hashed(recording, 0)) is None
    assert isinstance(ask(prefix_not_reused, hashed(recording, 18)), Finding)
    assert isinstance(ask(prefix_not_reused, recording), NotEnoughData)
    shared = ask(prefix_not_reused, hashed(recording, 18))
    assert isinstance(shared, Finding)
    assert "no_grad" in shared.commands[0]  # without it the cache cannot be copied
    cached = scenes.shifted(hashed(recording, 18), cached_tokens=576)
    assert ask(prefix_not_reused, cached) is None


def test_a_conversation_keeps_one_cache() -> None:
    """Each turn repeats all before it: one shared prefix would reuse the first turn only."""
    recording = scenes.chat(prompt=640, prefill_ms=900)
    turns = tuple(
        replace(r, prefixes=(tuple(PrefixChunk(k, 32) for k in range(10 + n)),))
        for n, r in enumerate(recording.requests)
    )
    found = ask(prefix_not_reused, replace(recording, requests=turns))
    assert isinstance(found, Finding)
    assert "DynamicCache()" in found.commands[0]


def test_a_front_that_differs_hides_what_is_shared() -> None:
    recording = hashed(scenes.calls(8, prompt=352, prefill_ms=800, tokens=4), 10)
    changed = tuple(
        replace(r, prefixes=((PrefixChunk(9000 + n, 16), *r.prefixes[0]),))
        for n, r in enumerate(recording.requests)
    )
    found = ask(prefix_not_reused, replace(recording, requests=changed))
    assert isinstance(found, Finding)
    assert "start to differ at their first tokens" in found.recommendation
    assert "320 tokens" in found.recommendation
