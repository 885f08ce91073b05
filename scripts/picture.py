"""Turn what a terminal shows into a picture for the documentation.

FORCE_COLOR=1 phasetrace diagnose trace.json | python scripts/picture.py "$ phasetrace diagnose" verdict.svg
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

BAR = re.compile("\x1b\\[38;(5;\\d+)m(█+)\x1b\\[0m")
INDENTED = re.compile(r'x="([\d.]+)"( y="[\d.]+" textLength=")([\d.]+)("[^>]*>)((?:&#160;)+)')
FETCHED = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # rich has fonts come from a network
CELL = 12.2  # how wide rich makes a character


def picture(ansi: str, title: str) -> str:
    # Blocks become rectangles: as letters they would leave gaps wherever the font is another.
    ansi = BAR.sub(lambda bar: f"\x1b[48;{bar[1]}m{' ' * len(bar[2])}\x1b[0m", ansi)
    lines = ansi.rstrip("\n").splitlines()
    width = max(Text.from_ansi(line).cell_len for line in lines)
    console = Console(
        record=True, width=width + 1, file=io.StringIO(), force_terminal=True, color_system="256"
    )
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True)
    return INDENTED.sub(moved, FETCHED.sub("", console.export_svg(title=title)))


def moved(text: re.Match[str]) -> str:
    """Text that begins further right, without the spaces in front, which some viewers leave out."""
    x, y, length, rest, spaces = text.groups()
    indent = CELL * spaces.count(";")
    return f'x="{float(x) + indent:.1f}"{y}{float(length) - indent:.1f}{rest}'


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(picture(sys.stdin.read(), sys.argv[1]), encoding="utf-8")
