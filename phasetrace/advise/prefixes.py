"""Prompts that are alike behind a front that differs: hashes of chunks that earlier prompts held elsewhere.

The hashes are of single chunks, whose ends depend on the tokens there, so that equal text is found again
whatever stands before it. A cache of prefixes cannot use that: it ends at the first token that differs.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from phasetrace.analyze.prefix import PrefixTree
from phasetrace.model import Request, RequestBreakdown

TURNS = 3  # that repeat more and more: two prompts of a shared prefix do so by chance


@dataclass(frozen=True, slots=True)
class Front:
    """Requests whose prompts go on like an earlier one behind a difference."""

    requests: int
    behind: int  # tokens, over all of them, that an earlier prompt held, too, behind the first that differs
    differs_at: float  # tokens before the difference, median
    each: float  # tokens behind it, median


def behind_front(requests: Iterable[Request]) -> Front | None:
    """None where no prompt is like an earlier one behind a difference. Prompts of one process and model."""
    seen: dict[tuple[str, str | None], set[int]] = defaultdict(set)
    trees: dict[tuple[str, str | None], PrefixTree] = defaultdict(PrefixTree)
    found: list[tuple[int, int]] = []
    for request in sorted(requests, key=lambda r: (r.arrival_ns, r.id)):
        where = request.process, request.model
        prompts = [[(chunk.hash, chunk.tokens) for chunk in prompt] for prompt in request.prefixes]
        for prompt in prompts:
            alike = sum(tokens for chunk, tokens in prompt if chunk in seen[where])
            lead = trees[where].shared_tokens(prompt)
            if alike > lead:
                found.append((lead, alike - lead))
        for prompt in prompts:
            seen[where].update(chunk for chunk, _ in prompt)
            trees[where].add(prompt)
    if not found:
        return None
    return Front(
        requests=len(found),
        behind=sum(behind for _, behind in found),
        differs_at=statistics.median(lead for lead, _ in found),
        each=statistics.median(behind for _, behind in found),
    )


def grows(requests: list[RequestBreakdown]) -> bool:
    """Each request repeats more than the one before it: the turns of a conversation, each with all before."""
    repeated = [
        r.repeated_prompt_tokens
        for r in sorted(requests, key=lambda r: (r.request.arrival_ns, r.request.id))
        if r.repeated_prompt_tokens
    ]
    return len(repeated) >= TURNS and all(a < b for a, b in pairwise(repeated))
