"""Text as every format takes it."""

from __future__ import annotations


def valid(value: str) -> str:
    """Text that is valid UTF-8: a lone surrogate, as in an undecodable file name, becomes a question mark."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
