"""Turn what a terminal shows into a picture for the documentation.

FORCE_COLOR=1 phasetrace diagnose trace.json | python scripts/picture.py "$ phasetrace diagnose" verdict.svg
"""

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text


def picture(ansi: str, title: str) -> str:
    lines = ansi.rstrip("\n").splitlines()
    width = max(Text.from_ansi(line).cell_len for line in lines)
    console = Console(
        record=True, width=width + 1, file=io.StringIO(), force_terminal=True, color_system="256"
    )
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True)
    return console.export_svg(title=title)


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(picture(sys.stdin.read(), sys.argv[1]), encoding="utf-8")
