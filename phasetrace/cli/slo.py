"""What a service has promised: `--slo chat`, `--slo ttft=0.5,tpot=0.05`, or a name with changes to it."""

from __future__ import annotations

import math

import click

# Seconds. Who reads a chat waits half a second without noticing and reads less than 20 tokens a second; who
# listens notices a silence of 0.3 s, and speech takes less than 10 tokens a second.
NAMED = {
    "chat": {"ttft": 0.5, "tpot": 0.05},
    "voice": {"ttft": 0.3, "tpot": 0.1},
}
METRICS = ("ttft", "tpot", "itl", "e2e")
HOW = "--slo takes chat, voice or metric=seconds, such as ttft=0.5,tpot=0.05"


class Slo(click.ParamType[dict[str, float]]):
    """A promise: metric -> seconds."""

    name = "slo"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        """Read it from what the user wrote."""
        limits: dict[str, float] = {}
        for item in str(value).split(","):
            metric, given, limit = item.strip().partition("=")
            if not given and metric in NAMED:
                limits |= NAMED[metric]
            elif metric in METRICS and (seconds := _positive(limit)) is not None:
                limits[metric] = seconds
            else:
                self.fail(f"{item!r} is no target; {HOW}", param, ctx)
        return limits


def _positive(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
