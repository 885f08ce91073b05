"""What was refused or repaired in the numbers of a trace, counted and said: nothing is mended in silence."""

from __future__ import annotations

from collections import Counter

from phasetrace.model import Defect

_MOST = 12  # sentences; more say no more than that the file is not to be trusted


class Doubts:
    """Sentences, and of how many requests each is true."""

    def __init__(self) -> None:
        self._said: Counter[str] = Counter()

    def say(self, sentence: str) -> None:
        """It is true of one more request."""
        self._said[sentence] += 1

    def defects(self, requests: int) -> tuple[Defect, ...]:
        """Each sentence once, the most frequent first."""
        return tuple(
            Defect(f"{sentence} ({count:,} of {requests:,} requests)")
            for sentence, count in self._said.most_common(_MOST)
        )
