"""Sizes as people write them: 500MB, 2G, 1.5 GiB."""

from __future__ import annotations

import re

import click

LEAST = 1_000_000  # with less, a trace would be begun anew all the time
_WRITTEN = re.compile(r"(\d{1,18}(?:\.\d*)?)\s*(?:([KMGT])(I?)B?|B)?", re.IGNORECASE)


def size(text: str) -> int:
    """The bytes that a text says: K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024.

    Raises:
        BadParameter: it is no size, or too small a one.
    """
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        raise click.BadParameter(f"{text!r} is no size; give one like 500MB or 2GB")
    number, prefix, binary = written.groups()
    power = " KMGT".index(prefix.upper()) if prefix else 0
    found = int(float(number) * (1024 if binary else 1000) ** power)
    if found < LEAST:
        raise click.BadParameter(f"{text} is too small for a trace; give at least 1MB")
    return found
