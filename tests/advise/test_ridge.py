"""How much of a forward pass stays when it computes fewer positions."""

import pytest

from phasetrace.advise.evidence import gather
from phasetrace.advise.ridge import left, ridge
from phasetrace.analyze import breakdown
from tests.advise import scenes


@pytest.mark.parametrize(
    ("device", "dtype", "likely"),
    [("cpu", "float32", 20), ("cpu", "bfloat16", 40), ("cuda:0", "float16", 200), (None, None, 200)],
)
def test_arithmetic_binds_earlier_on_a_cpu(device: str | None, dtype: str | None, likely: int) -> None:
    model = {"device": device, "dtype": dtype}
    assert ridge(gather(breakdown(scenes.chat(model=model))))[1] == likely


def test_above_the_ridge_a_pass_shrinks_with_its_positions_and_below_it_does_not() -> None:
    assert left(20, 160, 1) == left(20, 160, 20) == 0.125
    assert left(20, 160, 80) == 0.5
    assert left(200, 160, 1) == 1.0
