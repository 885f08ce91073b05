"""Fisher's exact test against its published values, and for many requests."""

import pytest

from phasetrace.analyze.compare.failures import by_chance


@pytest.mark.parametrize(
    ("failed", "ended", "chance"),
    [
        ([1, 3], [4, 4], 17 / 70),  # Fisher's lady, who tells three cups of four
        ([0, 4], [4, 4], 1 / 70),
        ([0, 1], [10, 10], 0.5),
        ([2, 0], [10, 10], 1.0),
    ],
)
def test_the_chance_of_so_many(failed: list[int], ended: list[int], chance: float) -> None:
    assert by_chance(failed, ended) == pytest.approx(chance)


def test_of_many_requests() -> None:
    assert by_chance([100, 200], [100_000, 100_000]) < 1e-6
