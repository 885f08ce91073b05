"""A share that a user writes in percent, as in `--fail-on 15%`."""

from __future__ import annotations

import math

import click


def percent(text: str) -> float | None:
    """`15%` is 0.15; None for what is none."""
    if not text.endswith("%"):
        return None
    try:
        share = float(text[:-1]) / 100
    except ValueError:
        return None
    return share if math.isfinite(share) else None


class Percent(click.ParamType[float]):
    """From 0% on."""

    name = "percent"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it from what the user wrote."""
        share = percent(str(value))
        if share is None or share < 0:
            self.fail(f"{value!r} is no share; say it in percent, as in 10%", param, ctx)
        return share
