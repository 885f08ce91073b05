"""Each metric before and after, the ratio with its interval, and the word for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phasetrace.analyze.compare.alike import Alike
from phasetrace.analyze.compare.columns import Quotient, at_length, quotients
from phasetrace.analyze.compare.resample import Statistic as Drawn
from phasetrace.analyze.compare.resample import block_of_each, interval, summed
from phasetrace.analyze.noise import RUNS_DIFFER
from phasetrace.analyze.token_gaps import Floats
from phasetrace.model import Ints, Matched, MetricChange, Mix, Statistic, Word

# Times: what saves 15 % is worth a change; chance that reaches further would have hidden it
SEEABLE = 1 / (1 - 0.15)
SPARE = 1.6  # times the interval expected of more requests: that of few is no more than a guess
HIGHER_IS_BETTER = "throughput_tok_s"
OF_A_REQUEST = ("ttft_ns", "e2e_ns")  # grow with the prompts and answers that a request holds
OF_LENGTH = ("e2e_ns", "throughput_tok_s")  # grow with the answer
SHAPE = 1.1  # times: prompts or answers that differ by less are taken as alike


@dataclass(frozen=True, slots=True)
class Noise:
    """What a ratio is held against."""

    blocks: tuple[Ints, Ints]  # of the compared requests
    paired: bool
    machine: float = 1.0  # times better that AFTER would be with BEFORE's share of the machine
    runs_differ: float = RUNS_DIFFER

    def change(
        self,
        metric: str,
        statistic: Statistic,
        values: tuple[float, float],
        off: tuple[float, float] | None,
        unlike: bool = False,
    ) -> Iterator[MetricChange]:
        """The ratio, bounded by what requests, runs and machine differ by, and the word for it.

        Nothing where one of the values is 0: it has no ratio to any other.
        """
        before, after = values
        if before <= 0 or after <= 0:
            return
        ratio = after / before if metric == HIGHER_IS_BETTER else before / after
        if off is None:
            word = Word.UNLIKE if unlike else Word.FEW
            yield MetricChange(metric, statistic, before, after, ratio, None, None, word)
            return
        low, high = off if metric != HIGHER_IS_BETTER else (1 / off[1], 1 / off[0])
        low, high = ratio * low / (1 + self.runs_differ), ratio * high * (1 + self.runs_differ)
        wide = low * min(1.0, self.machine), high * max(1.0, self.machine)
        word = Word.UNLIKE if unlike else _word((low, high), wide, off)
        enough = _enough(min(map(len, self.blocks)), off) if word is Word.FEW else None
        yield MetricChange(metric, statistic, before, after, ratio, *wide, word, enough)


def _word(runs: tuple[float, float], with_machine: tuple[float, float], off: tuple[float, float]) -> Word:
    """Of a ratio in bounds: what runs differ by, and the machine, too; `off` is what chance leaves of it."""
    if _reach_one(runs):
        return Word.FEW if off[0] * SEEABLE < 1 or off[1] > SEEABLE else Word.SAME
    if _reach_one(with_machine):
        return Word.MACHINE
    return Word.BETTER if runs[0] > 1 else Word.WORSE


def _enough(requests: int, off: tuple[float, float]) -> int:
    """How many requests would narrow the interval to what matters: it shrinks with their square root."""
    times = SPARE * math.log(off[1] / off[0]) / 2 / math.log(SEEABLE)
    needed = requests * max(1.0, times) ** 2
    size = 10.0 ** max(1, math.floor(math.log10(needed)) - 1)  # two digits: it is no more than a guess
    return int(math.ceil(needed / size) * size)


def _reach_one(bounds: tuple[float, float]) -> bool:
    return bounds[0] <= 1 <= bounds[1]


def noise_of(alike: Alike, at_once: tuple[float, float], machine: float, runs_differ: float) -> Noise:
    """The blocks that requests are drawn in; `at_once` is how many ran at a time."""
    counts = len(alike.before), len(alike.after)
    if alike.paired:
        blocks = block_of_each(counts[0], max(at_once))
        return Noise((blocks, blocks), True, machine, runs_differ)
    one, other = (block_of_each(count, each) for count, each in zip(counts, at_once, strict=True))
    return Noise((one, other), False, machine, runs_differ)


def mean_changes(alike: Alike, noise: Noise, mix: Mix) -> Iterator[MetricChange]:
    """The means; where answers changed their length by themselves, also at BEFORE's lengths."""
    sides = quotients(alike.before), quotients(alike.after)
    changed = answers_changed(mix)
    equal = at_length(alike.after, _lengths_before(alike)) if changed else None
    for metric, before in sides[0].items():
        of_length = changed and metric in OF_LENGTH
        unlike = not_alike(metric, mix) or (of_length and equal is None)
        yield from _mean(metric, Statistic.MEAN, (before, sides[1][metric]), alike, noise, unlike)
        if of_length and equal is not None:
            yield from _mean(metric, Statistic.EQUAL_LENGTH, (before, equal[metric]), alike, noise, unlike)


def answers_changed(mix: Mix) -> bool:
    """Whether answers have another length though nobody asked for it."""
    return not mix.cap_changed and differs(mix.output_tokens)


def differs(values: tuple[float, float] | None) -> bool:
    """Whether two means of what was asked for are too far apart to be taken as alike."""
    return values is not None and not values[0] / SHAPE <= values[1] <= values[0] * SHAPE


def not_alike(metric: str, mix: Mix) -> bool:
    """Whether a metric says nothing of the system, since what was asked for differs."""
    shape = differs(mix.prompts) and metric in OF_A_REQUEST
    length = differs(mix.prompt_tokens) and metric == HIGHER_IS_BETTER
    return shape or length or 0 in mix.compared


def _mean(
    metric: str,
    statistic: Statistic,
    sides: tuple[Quotient, Quotient],
    alike: Alike,
    noise: Noise,
    unlike: bool,
) -> Iterator[MetricChange]:
    count = len(alike.shares) if metric != HIGHER_IS_BETTER else 1
    kinds = alike.kinds if count > 1 else tuple(np.zeros_like(side) for side in alike.kinds)
    columns = [_by_kind(side, kind, count) for side, kind in zip(sides, kinds, strict=True)]
    shares = columns[0][:, count:].sum(0)
    if not shares.sum() or not columns[1][:, count:].sum():
        return
    of = standardised(shares / shares.sum())
    sums = [summed(side, blocks) for side, blocks in zip(columns, noise.blocks, strict=True)]
    before, after = (float(of(side.sum(0)[None])[0]) for side in sums)
    # The same prompts put together otherwise: all of them were asked, and none was drawn
    whole = alike.matched is Matched.PROMPTS and metric == HIGHER_IS_BETTER
    off = (1.0, 1.0) if whole else interval(sums[0], sums[1], of, noise.paired)
    yield from noise.change(metric, statistic, (before, after), off, unlike)


def standardised(shares: Floats) -> Drawn:
    """The quotient of each class, summed as BEFORE's shares have it; of all, where a draw lacks a class."""
    count = len(shares)

    def of(sums: Floats) -> Floats:
        over, under = sums[:, :count], sums[:, count:]
        whole = over.sum(1, keepdims=True) / under.sum(1, keepdims=True)
        each = np.divide(over, under, out=np.broadcast_to(whole, over.shape).copy(), where=under > 0)
        found: Floats = each @ shares
        return found

    return of


def _by_kind(quotient: Quotient, kinds: Ints, count: int) -> Floats:
    """Numerators and then denominators, a column a class."""
    columns = np.zeros((len(kinds), 2 * count))
    rows = np.arange(len(kinds))
    columns[rows, kinds], columns[rows, count + kinds] = quotient
    return columns


def _lengths_before(alike: Alike) -> Floats:
    """How long the answers of AFTER would be at BEFORE's lengths: its pair's, or the mean of its class."""
    own = np.array([r.request.longest_output or 0 for r in alike.before], float)
    if alike.paired:
        return own
    before, after = alike.kinds
    means = np.bincount(before, weights=own) / np.maximum(1, np.bincount(before))
    scale: Floats = means[after]
    return scale
