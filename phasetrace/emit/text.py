"""Text as every format takes it."""

from __future__ import annotations

LONGEST = 4096  # characters that a receiver is sent


def valid(value: str) -> str:
    """Text that is valid UTF-8: a lone surrogate, as in an undecodable file name, becomes a question mark."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def brief(text: str) -> str:
    """A text that receivers take: a name in a trace may be of any length, and a file has all of it."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
