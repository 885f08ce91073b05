"""Whether what a file claims is what a noun of `model` holds: anything may stand in an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

from phasetrace.model import Ints

Noun = TypeVar("Noun")

LARGEST = 1 << 63  # columns of integers hold no more
MOST_COUNTED = 1 << 48  # tokens or steps; sums of them stay far below LARGEST
SCALARS = frozenset({bool, int, float, str, NoneType})


def checked(noun: Noun) -> Noun:
    """The noun, if each plain field of it holds what it is declared to hold.

    Raises:
        ValueError: one does not.
    """
    for name, allowed in _plain_fields(cast(Any, type(noun))).items():
        value = getattr(noun, name)
        least = 0 if name.endswith("_ns") else -LARGEST
        if type(value) not in allowed or (type(value) is int and not least <= value < LARGEST):
            raise ValueError(f"{name} is not what it should be")
    return noun


@cache
def _plain_fields(noun: Any) -> dict[str, frozenset[type]]:
    """The types that each field may have, of the fields that hold one value."""
    hints = get_type_hints(noun)
    allowed = {field.name: _alternatives(hints[field.name]) for field in fields(noun)}
    return {name: types for name, types in allowed.items() if types <= SCALARS}


def _alternatives(hint: Any) -> frozenset[type]:
    return frozenset(get_args(hint) if isinstance(hint, UnionType) else (hint,))


def integers(value: object) -> list[int]:
    """A list of integers; ValueError for anything else."""
    return _list_of(value, int)


def texts(value: object) -> list[str]:
    """A list of strings; ValueError for anything else."""
    return _list_of(value, str)


def _list_of(value: object, kind: type) -> list[Any]:
    if not isinstance(value, list) or any(type(item) is not kind for item in value):
        raise ValueError("a list holds something else than it should")
    return value


def scalars(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are one value each; a later version may know of others."""
    return {name: value for name, value in values.items() if type(value) in SCALARS}


def text_entries(values: Mapping[str, Any]) -> dict[str, str]:
    """The entries that are strings."""
    return {name: value for name, value in values.items() if type(value) is str}


def whole_numbers(values: Mapping[str, Any]) -> dict[str, int]:
    """The entries that are integers."""
    return {name: value for name, value in values.items() if type(value) is int}


def counts(values: Iterable[int]) -> None:
    """Raise ValueError unless all of these can be numbers of tokens or steps."""
    if not all(0 <= value < MOST_COUNTED for value in values):
        raise ValueError("a count is impossible")


def moments(times: Ints) -> Ints:
    """The times; ValueError where one is impossible."""
    if len(times) and not 0 <= times.min() <= times.max() < LARGEST // 2:
        raise ValueError("a time is impossible")
    return times


def packed(value: object) -> bytes:
    """The bytes of a packed column; TypeError for anything else."""
    if not isinstance(value, bytes):
        raise TypeError("not a packed column")
    return value
