"""Real spans in a folder beside the project, where it is here."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "cases" / "otlp"
_LINES = 5


def real_spans() -> list[bytes]:
    """The first lines of each file; none where the folder is absent."""
    return [
        b"".join(path.read_bytes().splitlines(keepends=True)[:_LINES])
        for path in sorted(FOLDER.glob("*.otlp.jsonl"))
    ]
