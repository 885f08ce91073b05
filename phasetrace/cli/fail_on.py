"""When `diagnose` exits with 1: `--fail-on any`, `--fail-on 15%`, `--fail-on padding,no-kv-cache`."""

from __future__ import annotations

import click

from phasetrace.cli.percent import percent
from phasetrace.model import Diagnosis, Finding
from phasetrace.semconv import Cause

ANY = "any"
FINE = (Cause.HEALTHY, Cause.UNKNOWN)  # verdicts that find no fault
ROUNDING = 1e-9  # 1.25x is 20 %, whatever floats make of it
HOW = "--fail-on takes any, causes, or a gain such as 15%; `phasetrace explain` lists the causes"


class FailOn(click.ParamType[tuple[str, ...]]):
    """A list of causes, of gains in percent, or `any`."""

    name = "fail-on"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Read it from what the user wrote."""
        items = tuple(item.strip() for item in str(value).split(","))
        known = {ANY, *(cause.value for cause in Cause)}
        for item in items:
            if item not in known and percent(item) is None:
                self.fail(f"{item!r} is none of these; {HOW}", param, ctx)
        return items


def fails(diagnosis: Diagnosis, items: tuple[str, ...]) -> bool:
    """Whether the diagnosis is beyond what the user accepts."""
    return any(_fails(diagnosis, item) for item in items)


def _fails(d: Diagnosis, item: str) -> bool:
    if item == ANY:
        return d.cause not in FINE
    share = percent(item)
    if share is None:
        return item == d.cause or any(item == f.cause for f in d.findings)
    return any(_gain(f) >= share - ROUNDING for f in d.findings)


def _gain(f: Finding) -> float:
    """The part of the time that the fix saves: 3x faster is 67 %."""
    if f.prediction is None or not f.prediction.ratio > 1:
        return 0.0
    return 1 - 1 / f.prediction.ratio
