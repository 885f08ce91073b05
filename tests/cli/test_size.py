"""Sizes as people write them."""

from __future__ import annotations

import click
import pytest

from phasetrace.cli.size import size


@pytest.mark.parametrize(
    "text, bytes_",
    [
        ("1000000", 10**6),
        ("1000000B", 10**6),
        ("500MB", 500 * 10**6),
        ("2g", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("1Ti", 2**40),
        (" 64 mb ", 64 * 10**6),
    ],
)
def test_sizes(text: str, bytes_: int) -> None:
    assert size(text) == bytes_


@pytest.mark.parametrize("text", ["", "x", "GB", "-1GB", "1PB", "1e9", "1..5GB", "nan", "2GB!", "9" * 400])
def test_what_is_none(text: str) -> None:
    with pytest.raises(click.BadParameter, match="no size; give one like 500MB"):
        size(text)


def test_too_small_a_one() -> None:
    with pytest.raises(click.BadParameter, match="too small for a trace"):
        size("10KB")
