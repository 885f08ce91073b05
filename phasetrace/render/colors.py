"""How each phase looks, everywhere: one colour, and where there is none one fill or one letter.

The colours are Okabe and Ito's, which people with any colour blindness tell apart.
"""

from __future__ import annotations

from typing import NamedTuple

from phasetrace.model import Phase


class Look(NamedTuple):
    """A phase's colour, its fill without colour, its letter without Unicode."""

    hex: str
    fill: str
    letter: str

    @property
    def xterm(self) -> int:
        """The nearest of the 256 colours that practically every terminal has."""
        return 16 + sum(
            weight * _cube_step(int(self.hex[at : at + 2], 16)) for at, weight in ((1, 36), (3, 6), (5, 1))
        )


LOOKS: dict[Phase, Look] = {
    Phase.CLIENT: Look("#CC79A7", "○", "c"),
    Phase.FRONTEND: Look("#F0E442", "░", "f"),
    Phase.QUEUE: Look("#D55E00", "▒", "q"),
    Phase.PREFILL: Look("#E69F00", "▓", "P"),
    Phase.DECODE: Look("#0072B2", "█", "D"),
    Phase.PREEMPTED: Look("#56B4E9", "×", "x"),
    Phase.DELIVERY: Look("#009E73", "≡", "v"),
    Phase.UNATTRIBUTED: Look("#999999", "·", "."),
}

_CUBE = (0, 95, 135, 175, 215, 255)  # the levels of xterm's colour cube


def _cube_step(level: int) -> int:
    return min(range(6), key=lambda step: abs(_CUBE[step] - level))
