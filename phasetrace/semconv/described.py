"""What every name has: a unit and a meaning."""

from __future__ import annotations

from enum import Enum


class Described(str, Enum):
    """A string with a unit (UCUM, "" where none) and a meaning: `NAME = ("key", "unit", "meaning")`."""

    unit: str
    meaning: str

    def __new__(cls, value: str, unit: str, meaning: str) -> Described:
        """Make the member equal to its key."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.unit = unit
        member.meaning = meaning
        return member

    def __str__(self) -> str:
        """The key itself, so that it can be formatted and written as such."""
        return str.__str__(self._value_)
