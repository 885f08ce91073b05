"""From the monotonic clock that all processes of a host share to wall time."""

from __future__ import annotations

from statistics import median_low

_LATEST_NS = (1 << 62) - 1  # the year 2116; two of these add up within 64 bits


def possible(*times: int) -> None:
    """Raise ValueError unless all of these can be times, of whichever clock."""
    if max(times) > _LATEST_NS:
        raise ValueError("a time is impossible")


class WallClock:
    """One offset for a whole run, so that differences between times stay exact.

    The first use fixes it: the median of the pairs seen until then, since a process may have been held up
    between its two clock readings.
    """

    def __init__(self) -> None:
        self._pairs: list[int] = []
        self._offset: int | None = None

    def pair(self, monotonic: int, wall: int) -> None:
        """Take note of a pair of readings; ValueError where one is impossible."""
        possible(monotonic, wall)
        if self._offset is None:
            self._pairs.append(wall - monotonic)

    @property
    def offset(self) -> int:
        """What to add to a monotonic time."""
        if self._offset is None:
            self._offset = median_low(self._pairs) if self._pairs else 0
        return self._offset

    def at(self, monotonic: int) -> int:
        """A monotonic time as nanoseconds since the Unix epoch."""
        return monotonic + self.offset
