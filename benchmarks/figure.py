"""What a benchmark found: a median with its spread, beside its budget."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table. `low` and `high` are quartiles, or the extremes of fewer than five rounds.

    A budget is a limit unless `at_least`; the ratio is what is used of it, so above 1 is over budget.
    """

    what: str
    median: float
    low: float
    high: float
    unit: str
    rounds: int
    budget: float | None = None
    at_least: bool = False

    @property
    def ratio(self) -> float | None:
        """The share of the budget that is used."""
        if self.budget is None:
            return None
        return self.budget / self.median if self.at_least else self.median / self.budget

    def cells(self) -> tuple[str, ...]:
        """What | measured | spread | rounds | budget | ratio."""
        budget, ratio = "-", "-"
        if self.budget is not None:
            budget = f"{'>=' if self.at_least else '<='} {number(self.budget)} {self.unit}"
            ratio = f"{self.ratio:.2f}" + ("  OVER" if (self.ratio or 0) > 1 else "")
        spread = f"{number(self.low)} to {number(self.high)}"
        return self.what, f"{number(self.median)} {self.unit}", spread, str(self.rounds), budget, ratio


def figure(
    what: str, values: Sequence[float], unit: str, budget: float | None = None, at_least: bool = False
) -> Figure:
    """The figure of several rounds."""
    low, high = spread(values)
    return Figure(what, statistics.median(values), low, high, unit, len(values), budget, at_least)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The quartiles; of fewer than five values the smallest and the largest."""
    if len(values) < 5:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def number(value: float) -> str:
    """Three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def table(figures: Iterable[Figure]) -> str:
    """All of them, in columns."""
    rows = [("what", "median", "spread", "rounds", "budget", "ratio"), *(f.cells() for f in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def dump(figures: Iterable[Figure]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(asdict(each)) + "\n" for each in figures)


def load(text: str) -> list[Figure]:
    """What `dump` wrote."""
    return [Figure(**json.loads(line)) for line in text.splitlines()]
