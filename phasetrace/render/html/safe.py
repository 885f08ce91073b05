"""Foreign strings on their way to the page."""

from __future__ import annotations

import math
from typing import Any

from phasetrace.render.ink import Ink

LONGEST = 4_000  # characters: what is longer was not written to be read
_INK = Ink(width=1_000_000)


def safe(value: Any, longest: int = LONGEST) -> Any:
    """Plain data with what a terminal or a page would obey spelled out in its strings, and long ones cut.

    A number that is none is unknown.
    """
    if isinstance(value, str):
        cut = value if len(value) <= longest else f"{value[:longest]}… ({len(value):,} characters)"
        return "\n".join(_INK.code(cut))
    if isinstance(value, dict):
        return {key: safe(inner, longest) for key, inner in value.items()}
    if isinstance(value, list):
        return [safe(inner, longest) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
