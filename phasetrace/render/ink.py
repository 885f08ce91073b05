"""How text reaches a terminal: foreign strings made safe, styles, wrapping, columns, bars."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from phasetrace.model import Phase
from phasetrace.render.colors import LOOKS

Style = Callable[[str], str]
Cell = str | tuple[str, Style]

_TO_ASCII = str.maketrans(
    {
        "µ": "u",
        "→": "->",
        "–": "-",
        "—": "-",
        "×": "x",
        "≤": "<=",
        "≥": ">=",
        "≈": "~",
        "…": "...",
        "·": ".",
        "‑": "-",
    }
)
_BLOCKS = " ▁▂▃▄▅▆▇█"
_LEVELS = " .:-=+*#@"


@dataclass(frozen=True, slots=True)
class Ink:
    """What the output can show: its width in columns, colour or not, Unicode or only ASCII."""

    width: int = 80
    color: bool = False
    ascii: bool = False

    def say(self, text: str) -> str:
        """A foreign string, safe to print on one line: whatever a terminal would obey is spelled out."""
        return "".join(map(self._character, text))

    def code(self, text: str) -> list[str]:
        """Lines of code, safe to print; never wrapped, so that they can be copied."""
        return [self.say(line.replace("\t", "    ")) for line in text.split("\n")]

    def wrap(self, text: str, indent: str = "", first: str | None = None) -> list[str]:
        """A sentence in lines no wider than the output, but for single words that are."""
        lines = [indent if first is None else first]
        room = max(self.width, 20)
        empty = True
        for word in self.say(text).split():
            if not empty and cells(lines[-1]) + 1 + cells(word) > room:
                lines.append(indent)
                empty = True
            lines[-1] += word if empty else " " + word
            empty = False
        return lines

    def bold(self, text: str) -> str:
        """What matters most."""
        return self._sgr("1", text)

    def dim(self, text: str) -> str:
        """What matters least."""
        return self._sgr("2", text)

    def warn(self, text: str) -> str:
        """What limits the answer."""
        return self._sgr("33", text)

    def phase(self, phase: Phase, text: str) -> str:
        """In the phase's colour."""
        return self._sgr(f"38;5;{LOOKS[phase].xterm}", text)

    def fill(self, phase: Phase, width: int) -> str:
        """A stretch of a bar."""
        return self.phase(phase, self.mark(phase) * width)

    def mark(self, phase: Phase) -> str:
        """The character that stands for the phase in bar and legend: its fill, as good as the output can."""
        look = LOOKS[phase]
        return look.letter if self.ascii else "█" if self.color else look.fill

    def sparkline(self, heights: Iterable[float]) -> str:
        """One character a value; the largest fills its cell."""
        values = list(heights)
        top = max(values, default=0)
        levels = _LEVELS if self.ascii else _BLOCKS
        # Whatever is more than nothing shows: level 1 at least.
        return "".join(levels[max(1, round(8 * v / top))] if v > 0 and top > 0 else levels[0] for v in values)

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text

    def _character(self, c: str) -> str:
        if " " <= c <= "~":
            return c
        # Control, format (direction overrides, zero width), surrogate, private, unassigned; separators.
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            return ascii(c)[1:-1]
        if not self.ascii:
            return c
        plain = c.translate(_TO_ASCII)
        return plain if plain.isascii() else ascii(c)[1:-1]


def columns(rows: Sequence[Sequence[Cell]], right: Sequence[int] = (), indent: str = "  ") -> list[str]:
    """Rows in aligned columns two apart, those in `right` flush right, without trailing spaces.

    A cell is text, or text with the style that it gets after padding, so that a style never counts as width.
    """
    parted = [[(cell, str) if isinstance(cell, str) else cell for cell in row] for row in rows]
    plain = [[text for text, _ in row] for row in parted]
    widths = [max(map(cells, column)) for column in zip_longest(*plain, fillvalue="")]
    lines = []
    for row, texts in zip(parted, plain, strict=True):
        last = max((i for i, text in enumerate(texts) if text), default=-1)
        shown = []
        for i, text in enumerate(texts[: last + 1]):
            pad = " " * (widths[i] - cells(text))
            styled = row[i][1](text)
            shown.append(pad + styled if i in right else styled + ("" if i == last else pad))
        lines.append(indent + "  ".join(shown) if shown else "")
    return lines


def table_room(rows: Sequence[Sequence[str]], width: int, indent: str = "  ") -> int:
    """How wide one more column may be behind these."""
    widths = [max(map(cells, column)) for column in zip_longest(*rows, fillvalue="")]
    return width - cells(indent) - sum(w + 2 for w in widths)


def flow(items: Iterable[str], room: int, separator: str = ", ") -> list[str]:
    """Items one after the other in lines no wider than the room, but for single items that are."""
    lines = [""]
    for item in items:
        joined = lines[-1] + separator + item if lines[-1] else item
        if lines[-1] and cells(joined) + len(separator.rstrip()) > room:
            lines[-1] += separator.rstrip()
            lines.append(item)
        else:
            lines[-1] = joined
    return lines


def cells(text: str) -> int:
    """Columns that a plain string takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # its tables of widths are large, and most text needs none of them

    return cell_len(text)


def apportion(amounts: Sequence[float], width: int) -> list[int]:
    """Cells of a bar for each amount: they sum to `width`, by largest remainder."""
    total = sum(amounts)
    if total <= 0 or width <= 0:
        return [0] * len(amounts)
    exact = [width * a / total for a in amounts]
    given = [int(e) for e in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: exact[i] - given[i], reverse=True)
    for i in by_remainder[: width - sum(given)]:
        given[i] += 1
    return given
