"""Whether a trace can be written, asked before a command runs for an hour."""

from __future__ import annotations

import tempfile
from pathlib import Path

from phasetrace.errors import UsageError


def check(path: Path) -> None:
    """Raise unless a trace file can be made there. Leaves nothing behind."""
    if str(path) == "-":
        raise UsageError("-o needs a file: stdout belongs to the command")
    if (
        path.exists() and not path.is_file()
    ):  # a device or a folder; an existing trace is moved aside, these are not
        raise UsageError(f"cannot write {path}: it is not a regular file")
    try:
        with tempfile.TemporaryFile(
            dir=path.absolute().parent
        ):  # asking for permission says yes to root too often
            pass
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another place with -o") from None
