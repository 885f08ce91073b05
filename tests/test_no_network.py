"""No picture and no page of the repository fetches anything from a network when it is looked at."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from scripts.picture import picture

ROOT = Path(__file__).parents[1]
SHOWN = {".svg", ".html", ".css", ".js", ".mjs", ".md"}
# What a browser fetches by itself; a link that a reader may follow is no fetch.
FETCHES = [
    r"url\(\s*[\"']?(https?:)?//",
    r"@import\b[^;]*//",
    r"<(script|img|image|iframe|use|link|source|audio|video|embed|object)\b[^>]*(https?:)?//",
    r"!\[[^\]]*\]\(\s*<?(https?:)?//",
    r"\bimport\s*\(?\s*[\"'](https?:)?//",
    r"(\bfrom|\bfetch\()\s*[\"'](https?:)?//",
]
FETCH = re.compile("|".join(FETCHES), re.IGNORECASE)


def shown() -> list[Path]:
    """The repository's files that are looked at."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this copy is no clone")
    return [ROOT / name for name in listed.stdout.splitlines() if Path(name).suffix in SHOWN]


def test_what_is_shown_fetches_nothing() -> None:
    found = [str(path.relative_to(ROOT)) for path in shown() if FETCH.search(path.read_text("utf-8"))]
    assert found == []


def test_the_files_are_found() -> None:
    names = {path.name for path in shown()}
    assert {"README.md", "verdict.svg", "style.css", "main.js", "looking.md"} <= names


def test_a_picture_of_a_terminal_fetches_nothing() -> None:
    made = picture("\x1b[1mpadding\x1b[0m: 88 %\n  \x1b[38;5;4m███\x1b[0m", "$ phasetrace diagnose")
    assert not FETCH.search(made) and "padding" in made and made.startswith("<svg")


@pytest.mark.parametrize(
    "text",
    [
        '<style>src: url("https://cdn.example/font.woff2")</style>',
        "background: url(//cdn.example/a.png)",
        '@import "https://cdn.example/a.css";',
        '<script src="https://cdn.example/a.js"></script>',
        '<image xlink:href="http://cdn.example/a.png"/>',
        "![badge](https://img.example/badge.svg)",
        'import { a } from "https://cdn.example/a.js";',
        'fetch("https://api.example")',
    ],
)
def test_a_fetch_is_known_when_seen(text: str) -> None:
    assert FETCH.search(text)


def test_a_link_is_no_fetch() -> None:
    assert not FETCH.search("[Keep a Changelog](https://keepachangelog.com)")
    assert not FETCH.search('<svg xmlns="http://www.w3.org/2000/svg"><g clip-path="url(#a)"/></svg>')
