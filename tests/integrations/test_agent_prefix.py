"""Prefix hashes."""

import random
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace_agent import prefix
from phasetrace_agent.prefix import LONGEST, SHORTEST, chunks
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import Spool

SALT = bytes(range(16))
TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=400)


def text(length: int, seed: int = 1) -> list[int]:
    return random.Random(seed).choices(range(50_000), k=length)


@given(TOKENS)
def test_chunks_cover_the_prompt(tokens: list[int]) -> None:
    hashes, lengths = chunks(tokens, SALT)
    assert sum(lengths) == len(tokens)
    assert len(hashes) == len(lengths)
    assert all(SHORTEST <= length <= LONGEST for length in lengths[:-1])
    assert all(0 <= hash < 2**64 for hash in hashes)


@given(TOKENS)
def test_without_numpy_they_are_the_same(tokens: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numpy", None)
        plain = chunks(tokens, SALT)
    assert plain == chunks(tokens, SALT)


def test_chunks_are_about_32_tokens() -> None:
    _, lengths = chunks(text(40_000), SALT)
    assert 28 <= sum(lengths) / len(lengths) <= 36


def test_equal_text_matches_after_a_differing_front() -> None:
    document = text(3_000)
    one, _ = chunks(text(57, seed=2) + document, SALT)
    other, _ = chunks(text(331, seed=3) + document, SALT)
    assert len(set(one) & set(other)) >= len(other) - 20


def test_hashes_tell_nothing_without_the_salt() -> None:
    assert not set(chunks(text(500), SALT)[0]) & set(chunks(text(500), SALT[::-1])[0])


def test_one_token_repeated_is_cut_at_the_longest() -> None:
    hashes, lengths = chunks([7] * 300, b"\1" * 16)
    assert set(lengths[:-1]) <= {SHORTEST, LONGEST}
    assert len(set(hashes)) <= 2


def test_the_salt_is_the_spool_s(tmp_path: Path) -> None:
    (tmp_path / "salt").write_bytes(b"s" * 16)
    assert prefix.salt(Recorder(Spool(str(tmp_path)))) == b"s" * 16
    assert prefix.salt(Recorder(Spool(str(tmp_path / "none")))) == b""
