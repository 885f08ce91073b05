"""Percentiles of TTFT, e2e and ITL before and after, from histograms that blocks sum to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from phasetrace.analyze.compare.alike import Alike
from phasetrace.analyze.compare.metrics import Noise, not_alike
from phasetrace.analyze.compare.resample import Statistic as Drawn
from phasetrace.analyze.compare.resample import interval
from phasetrace.analyze.step_table import StepTable
from phasetrace.analyze.token_gaps import Floats, token_gaps
from phasetrace.model import Breakdown, Ints, MetricChange, Mix, RequestBreakdown, Statistic

PERCENTILES = {Statistic.P50: 0.5, Statistic.P95: 0.95}
FEWEST = {Statistic.P50: 8, Statistic.P95: 40}  # requests: of fewer, one or two lie beyond the 95th
BIN = math.log(1.01)  # values closer than that are not told apart
BINS = round(math.log(1e15) / BIN)  # from a nanosecond to some days

Sides = tuple[Floats, Floats]
Weighted = tuple[Floats, Floats, Ints]  # values, what each counts, and its block


def percentile_changes(
    alike: Alike, breakdowns: Sequence[Breakdown], tables: Sequence[StepTable], noise: Noise, mix: Mix
) -> Iterator[MetricChange]:
    """Of the metrics of which there are enough to have them; of ITL the tail, since TPOT is its mean."""
    for metric in ("ttft_ns", "e2e_ns"):
        one, other = (_known(metric, side) for side in (alike.before, alike.after))
        if one is None or other is None:
            continue
        for statistic, fewest in FEWEST.items():
            if min(len(one), len(other)) >= fewest:
                yield from _of_requests(metric, statistic, (one, other), alike, noise, mix)
    known = [b.metrics.get("itl_ns") for b in breakdowns]
    if known[0] is not None and known[1] is not None:
        sides = [
            histograms(_gaps(b, table, int(blocks.max()) + 1))
            for b, table, blocks in zip(breakdowns, tables, noise.blocks, strict=True)
        ]
        off = _off((sides[0], sides[1]), PERCENTILES[Statistic.P95], paired=False)
        values = known[0].p95, known[1].p95
        yield from noise.change("itl_ns", Statistic.P95, values, off, not_alike("itl_ns", mix))


def histograms(pieces: Iterable[Weighted]) -> Floats:
    """What counts in each bin of each block: (blocks, BINS)."""
    found = np.zeros((0, BINS))
    for values, weights, blocks in pieces:
        if len(values) == 0:
            continue
        count = max(len(found), int(blocks.max()) + 1)
        bins = np.clip((np.log(np.maximum(values, 1.0)) / BIN).astype(int), 0, BINS - 1)
        added = np.bincount(blocks * BINS + bins, weights=weights, minlength=count * BINS)
        found = np.pad(found, ((0, count - len(found)), (0, 0))) + added.reshape(count, BINS)
    return found


def _of_requests(
    metric: str, statistic: Statistic, values: Sides, alike: Alike, noise: Noise, mix: Mix
) -> Iterator[MetricChange]:
    part = PERCENTILES[statistic]
    exact = [_quantile(*each, part) for each in zip(values, alike.weights, strict=True)]
    sides = [histograms([each]) for each in zip(values, alike.weights, noise.blocks, strict=True)]
    off = _off((sides[0], sides[1]), part, noise.paired)
    yield from noise.change(metric, statistic, (exact[0], exact[1]), off, not_alike(metric, mix))


def _known(metric: str, requests: Sequence[RequestBreakdown]) -> Floats | None:
    values = [r.ttft_ns if metric == "ttft_ns" else r.e2e_ns for r in requests]
    return np.array(values, float) if None not in values else None


def _quantile(values: Floats, weights: Floats, part: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order[min(np.searchsorted(reached, part * reached[-1]), len(values) - 1)]])


def _gaps(b: Breakdown, table: StepTable, blocks: int) -> Iterator[Weighted]:
    """Times between tokens, in so many equal stretches of the time in which requests came and were served."""
    begin = min(r.request.arrival_ns for r in b.requests)
    end = max(r.request.finished_ns or r.request.arrival_ns for r in b.requests)
    for end_ns, gap_ns, tokens in token_gaps([r.request for r in b.requests], table).by_end(table):
        place = (end_ns - begin) * blocks // max(1, end - begin)
        yield gap_ns.astype(float), tokens.astype(float), np.clip(place, 0, blocks - 1)


def _off(sides: Sides, part: float, paired: bool) -> tuple[float, float] | None:
    used = np.flatnonzero(sides[0].sum(0) + sides[1].sum(0))
    return interval(sides[0][:, used], sides[1][:, used], _quantile_of(used, part), paired, seen=True)


def _quantile_of(bins: Ints, part: float) -> Drawn:
    def of(counts: Floats) -> Floats:
        reached = np.cumsum(counts, axis=1)
        place = (reached < part * reached[:, -1:]).sum(1)
        found: Floats = np.exp(BIN * bins[np.minimum(place, len(bins) - 1)])
        return found

    return of
