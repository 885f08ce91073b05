"""Nouns made of what a file claims hold what they are declared to hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phasetrace.mapping.typed import checked, counts, integers, moments, scalars, texts
from phasetrace.model import ModelFacts, Process
from tests.builders import generation


def test_what_is_right_passes() -> None:
    for noun in (*generation().requests, *generation().processes, *generation().models.values()):
        assert checked(noun) is noun


@pytest.mark.parametrize("value", ["4", 4.0, True, b"4", [4], 1 << 63])
def test_a_number_is_an_integer_of_64_bits(value: Any) -> None:
    with pytest.raises(ValueError, match="pid"):
        checked(Process("key", value, 1))


@pytest.mark.parametrize("value", [-1, 1.0, 1 << 63])
def test_a_time_is_not_negative(value: Any) -> None:
    with pytest.raises(ValueError, match="begin_ns"):
        checked(Process("key", 4, 1, begin_ns=value))


@pytest.mark.parametrize("value", [-1, 1 << 62])
def test_a_column_of_times_neither(value: int) -> None:
    assert moments(np.array([0, 5])).tolist() == [0, 5]
    with pytest.raises(ValueError, match="time"):
        moments(np.array([5, value]))


@pytest.mark.parametrize("value", [4, 4.0, True, b"4", ["4"]])
def test_a_text_is_a_text(value: Any) -> None:
    with pytest.raises(ValueError, match="name"):
        checked(ModelFacts("key", name=value))


def test_lists_hold_one_kind() -> None:
    assert integers([1, 2]) == [1, 2] and texts(["a"]) == ["a"]
    for wrong in ([1, "a"], [True], "ab", 5, None):
        with pytest.raises(ValueError, match="a list"):
            integers(wrong)


def test_entries_of_other_kinds_are_passed_over() -> None:
    assert scalars({"a": 1, "b": [1], "c": b"x", "d": "y"}) == {"a": 1, "d": "y"}


@pytest.mark.parametrize("value", [-1, 1 << 48])
def test_an_impossible_count(value: int) -> None:
    with pytest.raises(ValueError, match="count"):
        counts([1, value])
