"""Prompt tokens that an earlier request had computed are found, whatever comes after them."""

from dataclasses import replace

from phasetrace.analyze.prefix import repeated_prompt_tokens
from phasetrace.model import PrefixChunk, Request
from tests import builders
from tests.builders import EPOCH


def prompt(name: str, *chunks: int, at: int = 0, cached: int | None = None) -> Request:
    prefixes = (tuple(PrefixChunk(chunk, 32) for chunk in chunks),)
    return replace(builders.request(name, begin=EPOCH + at), prefixes=prefixes, cached_tokens=cached)


def test_a_shared_prefix_counts_from_the_second_request_on() -> None:
    found = repeated_prompt_tokens(
        [prompt("b", 1, 2, 4, at=1), prompt("a", 1, 2, 3), prompt("c", 9, 2, at=2)]
    )
    assert found == {"a": 0, "b": 64, "c": 0}


def test_what_was_cached_was_not_computed_again() -> None:
    found = repeated_prompt_tokens([prompt("a", 1, 2, 3), prompt("b", 1, 2, 4, at=1, cached=64)])
    assert found == {"a": 0, "b": 0}


def test_without_hashes_nothing_is_claimed() -> None:
    assert repeated_prompt_tokens([builders.request()]) == {}
