"""The interval of a ratio of two runs: their requests drawn again, in blocks of neighbours.

Requests that ran at once, or soon after each other, had the same machine and the same batch: they are no
observations of their own. So blocks of neighbours are drawn, not requests (Carlstein 1986), with the block
length growing as the third root of their number (Hall, Horowitz and Jing 1995). Where blocks are few, the
interval is stretched as Student's t is against the normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from phasetrace.analyze.token_gaps import Floats
from phasetrace.model import Ints

DRAWS = 2_000
SEED = 1986  # the same files say the same
COVERED = 0.95
FEWEST = 3  # blocks: two have no spread to speak of
SOME = 8  # blocks, where there are as many requests: with fewer, the stretch is wider than what it bounds
LEFT = 5  # blocks, where they are made longer
MANY = 200  # blocks: more say no more, and take longer

Statistic = Callable[[Floats], Floats]  # (draws, columns) -> (draws)


def block_of_each(count: int, at_once: float) -> Ints:
    """The block of each of `count` requests in order of arrival, of which so many ran at once."""
    length = max(count ** (1 / 3), at_once, 1.0)
    blocks = int(min(MANY, max(count / length, min(count, SOME))))
    return np.arange(count) * blocks // max(1, count)


def summed(columns: Floats, blocks: Ints) -> Floats:
    """Sums over each block: (requests, columns) -> (blocks, columns)."""
    sums = np.zeros((int(blocks[-1]) + 1 if len(blocks) else 0, columns.shape[1]))
    np.add.at(sums, blocks, columns)
    return sums


def interval(
    before: Floats, after: Floats, statistic: Statistic, paired: bool, seen: bool = False
) -> tuple[float, float] | None:
    """What the ratio before / after may be off by: factors below and above 1 that bound it with 95 %.

    `before` and `after` are sums over blocks (blocks, columns); paired ones are drawn together. The same is
    done with blocks twice as long, and so on, and the widest holds, since nobody knows how far neighbours are
    alike. A statistic that is one of the values `seen` lies no further than its draws. None where there are
    too few blocks.
    """
    found = _interval(before, after, statistic, paired, seen)
    if found is None or min(len(before), len(after)) < 2 * LEFT:
        return found
    longer = interval(_twice_as_long(before), _twice_as_long(after), statistic, paired, seen) or found
    return min(found[0], longer[0]), max(found[1], longer[1])


def _interval(
    before: Floats, after: Floats, statistic: Statistic, paired: bool, seen: bool
) -> tuple[float, float] | None:
    blocks = min(len(before), len(after))
    if blocks < FEWEST:
        return None
    random = np.random.default_rng(SEED)
    drawn = _draws(random, len(before))
    others = drawn if paired else _draws(random, len(after))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(statistic(drawn @ before) / statistic(others @ after))
        middle = np.log(statistic(before.sum(0)[None]) / statistic(after.sum(0)[None]))[0]
    if not math.isfinite(middle):
        return None
    off = (found - middle)[np.isfinite(found)]
    if len(off) < DRAWS / 2:
        return None
    low, high = np.quantile(off, [(1 - COVERED) / 2, (1 + COVERED) / 2]) * stretch(blocks)
    if seen:
        low, high = max(low, off.min()), min(high, off.max())
    return math.exp(min(0.0, low)), math.exp(max(0.0, high))


def _twice_as_long(sums: Floats) -> Floats:
    """Each block with its neighbour; the last three together where they are odd in number."""
    return np.add.reduceat(sums, np.arange(0, len(sums) - 1, 2))


def stretch(blocks: int) -> float:
    """Student's t against the normal quantile, and what a spread of few blocks falls short by.

    t by Fisher and Cornish's expansion (1960), within 3 % from 2 degrees of freedom on.
    """
    z, free = NormalDist().inv_cdf((1 + COVERED) / 2), blocks - 1
    t = (
        z
        + (z**3 + z) / 4 / free
        + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / free**2
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / free**3
    )
    return t / z * math.sqrt(blocks / free)


def _draws(random: np.random.Generator, blocks: int) -> Floats:
    return random.multinomial(blocks, np.full(blocks, 1 / blocks), size=DRAWS).astype(float)
