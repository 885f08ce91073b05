"""Which rows stretches of them cover, and how often: in memory of the stretches, not of the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from phasetrace.model import Ints, constant


class Coverage:
    """Weights added up over rows.

    Args:
        size: how many rows there are.
        stretches: begin, end and weight of each.
    """

    def __init__(self, size: int, stretches: Sequence[tuple[int, int, int]]) -> None:
        begin, end, weight = np.array(stretches, np.int64).reshape(-1, 3).T
        edges = np.unique(np.concatenate([[0], begin, end, [size]]))
        change = np.zeros(len(edges), np.int64)
        np.add.at(change, edges.searchsorted(begin), weight)
        np.add.at(change, edges.searchsorted(end), -weight)
        self._lengths = np.diff(edges)
        self._weights = np.cumsum(change)[:-1]

    @property
    def rows(self) -> npt.NDArray[np.bool_]:
        """Which ones are covered."""
        return np.repeat(self._weights > 0, self._lengths)

    @property
    def weights(self) -> Ints:
        """Of those that are covered."""
        covered = self._weights > 0
        found, lengths = self._weights[covered], self._lengths[covered]
        if len(found) and (found == found[0]).all():
            return constant(int(found[0]), int(lengths.sum()))
        return np.repeat(found, lengths)
