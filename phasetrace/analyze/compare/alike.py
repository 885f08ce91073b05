"""Which requests of one run are like which of the other, so that like is compared with like.

Two runs of the same prompts give pairs: prompts are told by how many a request holds and by their length,
equal ones by their order (hashes of prompts have a salt of their own in each run, and cannot be compared).
Where the same prompts were put into other requests (sorted, in larger batches), all stand for all. Else
requests are put into classes of prompt length, and those of AFTER count as often as BEFORE's do.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from phasetrace.analyze.token_gaps import Floats
from phasetrace.analyze.tokens import prompts
from phasetrace.model import Breakdown, Ints, Matched, Request, RequestBreakdown

SAME_PROMPTS = 0.9  # of both runs' requests: the rest may have failed, or come after the recording's end
# Of both runs' requests: compared with fewer, the rest would be what the runs differ by
ALIKE = 0.5
CLASS_WIDTHS = (1.25, 2.0, 4.0)  # times the shortest prompt of a class: the narrowest that leaves most in
MOST = 0.8

Key = tuple[int, int]  # prompts in a request; their mean length, or its class


@dataclass(frozen=True, slots=True)
class Alike:
    """Requests of both runs that have their like. In pairs: `before[i]` is like `after[i]`.

    Else `kinds` number the classes, one a request, and `shares` says how much of BEFORE each class is.
    """

    matched: Matched
    before: tuple[RequestBreakdown, ...]
    after: tuple[RequestBreakdown, ...]
    kinds: tuple[Ints, Ints]
    shares: Floats

    @property
    def paired(self) -> bool:
        """Whether each request stands beside its like."""
        return self.matched is Matched.PAIRS

    @property
    def weights(self) -> tuple[Floats, Floats]:
        """What each request counts in a mean over one of BEFORE's proportions; they sum to 1 on each side."""
        before, after = (
            self.shares[kinds] / np.bincount(kinds, minlength=len(self.shares))[kinds] for kinds in self.kinds
        )
        return before, after


def alike(before: Breakdown, after: Breakdown) -> Alike:
    """The closest likeness that the two have."""
    requests = before.requests, after.requests
    if found := _pairs(before, after):
        return found
    if same_prompts(*requests):
        return _of_one_kind(Matched.PROMPTS, *requests)
    return _classes(*requests) or _of_one_kind(Matched.ALL, *requests)


def prompt_length(request: Request) -> float | None:
    """Tokens of a prompt, the mean over the request's; None where one of them is unknown."""
    lengths = [sequence.prompt_tokens for sequence in request.sequences]
    known = [length for length in lengths if length is not None]
    return sum(known) / len(known) if known and len(known) == len(lengths) else None


def same_prompts(before: Sequence[RequestBreakdown], after: Sequence[RequestBreakdown]) -> bool:
    """Whether both hold prompts of the same lengths, whichever request each is in."""
    one, other = (
        Counter(s.prompt_tokens for r in side for s in r.request.sequences) for side in (before, after)
    )
    known = None not in one and None not in other
    return known and (one & other).total() >= SAME_PROMPTS * max(one.total(), other.total(), 1)


def _pairs(before: Breakdown, after: Breakdown) -> Alike | None:
    named = [_in_order(b) for b in (before, after)]
    if not all(named):
        return None
    shared = (Counter(map(_name, named[0])) & Counter(map(_name, named[1]))).total()
    if shared < SAME_PROMPTS * max(map(len, named)):
        return None
    diagnosed = [{r.request.id: r for r in b.requests} for b in (before, after)]
    waiting: dict[Key, list[Request]] = defaultdict(list)
    for request in reversed(named[1]):
        waiting[_name(request)].append(request)
    pairs = [
        (diagnosed[0][request.id], diagnosed[1][other.id])
        for request in named[0]
        if waiting[_name(request)] and (other := waiting[_name(request)].pop())
        if request.id in diagnosed[0] and other.id in diagnosed[1]
    ]
    if not pairs:
        return None
    one, other_side = zip(*pairs, strict=True)
    return _of_one_kind(Matched.PAIRS, one, other_side)


def _in_order(b: Breakdown) -> list[Request]:
    """All requests as they came, warm-up and failed ones too; empty where a prompt's length is unknown."""
    every = [r.request for r in (*b.requests, *b.warm_up)] + list(b.failed)
    if any(prompt_length(request) is None for request in every):
        return []
    return sorted(every, key=lambda request: (request.arrival_ns, request.id))


def _name(request: Request) -> Key:
    return prompts(request), round(prompt_length(request) or 0)


def _classes(before: Sequence[RequestBreakdown], after: Sequence[RequestBreakdown]) -> Alike | None:
    if any(prompt_length(r.request) is None for r in (*before, *after)):
        return None
    for width in CLASS_WIDTHS:
        found = _classes_of(before, after, width)
        kept = min(len(found.before) / len(before), len(found.after) / len(after)) if found else 0.0
        if kept >= MOST or (width == CLASS_WIDTHS[-1] and kept >= ALIKE):
            return found
    return None


def _classes_of(
    before: Sequence[RequestBreakdown], after: Sequence[RequestBreakdown], width: float
) -> Alike | None:
    def class_of(r: RequestBreakdown) -> int:
        return round(math.log(max(1.0, prompt_length(r.request) or 1.0), width))

    both = sorted(set(map(class_of, before)) & set(map(class_of, after)))
    if not both:
        return None
    place = {name: at for at, name in enumerate(both)}
    kept = [tuple(r for r in side if class_of(r) in place) for side in (before, after)]
    kinds = [np.array([place[class_of(r)] for r in side], np.int64) for side in kept]
    shares = np.bincount(kinds[0], minlength=len(both)) / len(kinds[0])
    return Alike(Matched.CLASSES, kept[0], kept[1], (kinds[0], kinds[1]), shares)


def _of_one_kind(
    matched: Matched, before: Iterable[RequestBreakdown], after: Iterable[RequestBreakdown]
) -> Alike:
    one, other = tuple(before), tuple(after)
    return Alike(matched, one, other, (np.zeros(len(one), int), np.zeros(len(other), int)), np.ones(1))
