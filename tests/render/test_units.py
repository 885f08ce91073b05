import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.model import Prediction
from phasetrace.render import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (7, "7.00 ns"),
        (999, "999 ns"),
        (999_949, "1.00 ms"),
        (31_400_000, "31.4 ms"),
        (999_600_000, "1.00 s"),
        (1_243_000_000, "1.24 s"),
        (99_960_000_000, "100 s"),
        (599_000_000_000, "599 s"),
        (750_000_000_000, "12.5 min"),
        (7_200_000_000_000, "2.00 h"),
        (-31_400_000, "-31.4 ms"),
        (None, "?"),
        (math.nan, "?"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_fits(ns: float | None, text: str) -> None:
    assert units.duration(ns) == text


@given(st.integers(0, 10**15))
def test_a_duration_is_within_its_rounding(ns: int) -> None:
    size = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
    number, unit = units.duration(ns).split()
    assert float(number.replace(",", "")) * size[unit] == pytest.approx(ns, rel=0.0051)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.951, "95 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (0.004, "0.4 %"),
        (0.0002, "0.02 %"),
        (1e-9, "<0.001 %"),
        (None, "?"),
        (math.inf, "?"),
    ],
)
def test_a_share_is_never_a_false_zero(ratio: float | None, text: str) -> None:
    assert units.share(ratio) == text


def test_a_gain_tells_before_after_interval_and_ratio() -> None:
    assert (
        units.gain(Prediction("e2e_s", 30.0, 9.1, 8.7, 9.6, 3.3)) == "e2e 30.0 s -> 9.10 s (8.70-9.60), 3.3x"
    )


def test_a_gain_in_other_units_than_before_says_so() -> None:
    said = units.gain(Prediction("ttft_s", 1.2, 0.9996, 0.81, 1.1, 1.2))
    assert said == "TTFT 1.20 s -> 1.00 s (810 ms-1.10 s), 1.20x"


def test_a_gain_in_throughput() -> None:
    said = units.gain(Prediction("throughput_tok_s", 50, 1400, 1200, 1500, 28))
    assert said == "throughput 50.0 -> 1,400 tok/s (1,200-1,500), 28x"


def test_counts() -> None:
    assert (units.count(None), units.count(1200)) == ("?", "1,200")
    assert (units.counted(1, "request"), units.counted(2, "request")) == ("1 request", "2 requests")
