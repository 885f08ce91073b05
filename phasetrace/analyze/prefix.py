"""Shared prefixes not reused: prompt tokens computed although an earlier request had computed them."""

from __future__ import annotations

from collections.abc import Iterable

from phasetrace.model import Request

ROOT = 0


class PrefixTree:
    """All prompts seen so far, as a tree of chunks; a node is known by its number."""

    def __init__(self) -> None:
        self._children: dict[tuple[int, int], int] = {}

    def shared_tokens(self, chunks: Iterable[tuple[int, int]]) -> int:
        """Tokens of the leading (hash, tokens) chunks that some earlier prompt began with, too."""
        node, tokens = ROOT, 0
        for chunk, length in chunks:
            child = self._children.get((node, chunk))
            if child is None:
                break
            node, tokens = child, tokens + length
        return tokens

    def add(self, chunks: Iterable[tuple[int, int]]) -> None:
        """Remember a prompt."""
        node = ROOT
        for chunk, _ in chunks:
            node = self._children.setdefault((node, chunk), len(self._children) + 1)


def repeated_prompt_tokens(requests: Iterable[Request]) -> dict[str, int]:
    """Request id -> tokens in its leading chunks that an earlier request had computed, less cached ones.

    Prompts of one process and model share a tree; requests without hashes are left out.
    """
    trees: dict[tuple[str, str | None], PrefixTree] = {}
    found: dict[str, int] = {}
    for request in sorted(requests, key=lambda r: (r.arrival_ns, r.id)):
        if not request.prefixes:
            continue
        tree = trees.setdefault((request.process, request.model), PrefixTree())
        prompts = [[(chunk.hash, chunk.tokens) for chunk in prefix] for prefix in request.prefixes]
        shared = sum(tree.shared_tokens(prompt) for prompt in prompts)
        found[request.id] = max(0, shared - (request.cached_tokens or 0))
        for prompt in prompts:
            tree.add(prompt)
    return found
