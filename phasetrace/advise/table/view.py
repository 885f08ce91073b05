"""What the rules for tables look at: the groups, the goal, the group in question, and the pairs of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from phasetrace.advise.table.contrast import MATTERS, NOTICED, Pair, pairs
from phasetrace.advise.table.setting import Setting
from phasetrace.model import Goal, Table


@dataclass(frozen=True)
class View:
    """All that a rule may judge by."""

    table: Table
    settings: tuple[Setting, ...]
    goal: Goal
    goal_stated: bool
    slo: Mapping[str, float] | None = None
    slight: bool = False  # whether experiments that show little are looked at, too

    @cached_property
    def subject(self) -> Setting:
        """The group in question: the worst on the goal's metric, else on the first one that was measured."""
        for goal in (self.goal, Goal.E2E, Goal.TPOT, Goal.TTFT, Goal.THROUGHPUT):
            measured = [(value, s) for s in self.settings if (value := s.metric(goal)) is not None]
            if measured and goal is Goal.THROUGHPUT:
                return min(measured, key=lambda found: (found[0], found[1].place))[1]
            if measured:
                return max(measured, key=lambda found: (found[0], -found[1].place))[1]
        return self.settings[0]

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Groups beside better ones, the cleanest comparison first."""
        return tuple(pair for pair in self.compared if pair.ratio >= MATTERS)

    @cached_property
    def compared(self) -> tuple[Pair, ...]:
        """Those pairs, then the pairs that differ in one thing and show little of it."""
        found = pairs(self.settings, self.goal)
        slight = [pair for pair in found if pair.ratio < MATTERS and len(pair.differs) == 1]
        return (*(pair for pair in found if pair.ratio >= MATTERS), *slight)

    def contrast(self, *names: str) -> Pair | None:
        """The cleanest pair that differs in one of these."""
        tried = [pair for pair in self.compared if pair.ratio >= NOTICED] if self.slight else self.pairs
        return next((pair for pair in tried if any(name in pair.differs for name in names)), None)

    @property
    def engine(self) -> str:
        """Its name, `other` where it is not told."""
        return self.table.engine or "other"


def view(table: Table, goal: Goal | None, slo: Mapping[str, float] | None) -> View:
    """The table seen for a goal: the one asked for, else the table's own, else what its numbers suggest."""
    settings = tuple(Setting(table, group, place) for place, group in enumerate(table.groups))
    if goal is None and slo:
        goal = Goal(next(iter(slo)))
    stated = goal or table.goal
    return View(table, settings, stated or suggested(settings), stated is not None, slo)


def suggested(settings: tuple[Setting, ...]) -> Goal:
    """The first metric that was measured: whole requests, then tokens, then the first one."""
    for goal in (Goal.E2E, Goal.TPOT, Goal.TTFT, Goal.THROUGHPUT):
        if any(s.metric(goal) is not None for s in settings):
            return goal
    return Goal.E2E
