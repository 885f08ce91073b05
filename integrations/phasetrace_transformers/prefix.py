"""Prefix hashes: salted, unchained hashes over content-defined chunks of a prompt's token ids. Pure.

Where a chunk ends depends on the tokens there, so that equal text cuts equally wherever it stands: after a
differing front the hashes fall in step again at the next boundary. The salt, which never leaves the run,
keeps the hashes from telling the text.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

SHORTEST = 8
LONGEST = 128
# After the shortest length each token ends the chunk with this chance: 32 tokens on average
_ODDS = 24
_MASK = (1 << 32) - 1
_BOUNDARY = (1 << 32) // _ODDS


def chunks(tokens: Sequence[int], salt: bytes) -> tuple[list[int], list[int]]:
    """Hashes and lengths of a prompt's chunks, laid end to end."""
    first, second = (int.from_bytes(salt[i : i + 4].ljust(4, b"\x5a"), "little") | 1 for i in (0, 4))
    hashes: list[int] = []
    lengths: list[int] = []
    begin, count = 0, len(tokens)
    while begin < count:
        end, limit = begin + SHORTEST, min(begin + LONGEST, count)
        # Two neighbours decide, so that one frequent token does not cut every chunk short
        while end < limit and (tokens[end - 1] * first + tokens[end - 2] * second) & _MASK >= _BOUNDARY:
            end += 1
        end = min(end, limit)
        hashes.append(_hash(tokens[begin:end], salt))
        lengths.append(end - begin)
        begin = end
    return hashes, lengths


def _hash(tokens: Sequence[int], salt: bytes) -> int:
    return int.from_bytes(blake2b(array("q", tokens).tobytes(), digest_size=8, key=salt).digest(), "little")
