"""Whatever stands in a file: a recording that can be analysed, or one line. A fixed part of `make fuzz`."""

from __future__ import annotations

import multiprocessing

import pytest

from tests.read.fuzzing import piece, seeds

INPUTS = 1_000  # 1 % of the campaign's, the same each time


@pytest.mark.parametrize("reader", seeds())
def test_no_input_makes_it_crash_hang_or_fill_memory(reader: str) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # limits of memory are a whole process's
        came, findings = pool.apply(piece, (reader, 0, INPUTS))
    assert not findings
    assert sum(came.values()) == INPUTS
