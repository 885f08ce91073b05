"""Numbers in sentences: evidence names durations, shares and counts as a person would."""

from __future__ import annotations


def seconds(ns: float) -> str:
    """`1.25 s`, `31.4 ms`, `12 us`: three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            value = ns / size
            return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{ns:.0f} ns"


def percent(share: float) -> str:
    """`95 %`; below 10 % with one decimal."""
    return f"{share * 100:.0f} %" if share >= 0.0995 else f"{share * 100:.1f} %"


def count(number: float, noun: str, plural: str | None = None) -> str:
    """`1 request`, `1,200 tokens`, `4 batches`."""
    return f"{number:,.0f} " + (noun if round(number) == 1 else plural or f"{noun}s")


def times(factor: float) -> str:
    """`3.2x`, `41x`."""
    return f"{factor:.2g}x" if factor < 10 else f"{factor:,.0f}x"
