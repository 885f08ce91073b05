"""How numbers reach the page: columns as text, times as microseconds since the first request arrived."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import numpy as np

from phasetrace.mapping.columns import pack
from phasetrace.model import Ints

TICK_NS = 1_000
UNKNOWN = -1


def packed(values: Iterable[int] | Ints) -> str:
    """A column as `mapping.columns` packs it, in base64."""
    column = values if isinstance(values, np.ndarray) else np.fromiter(values, np.int64)
    return base64.b64encode(pack(column)).decode()


def ticks(ns: int, start: int) -> int:
    """A time as the page counts it."""
    return (ns - start) // TICK_NS
