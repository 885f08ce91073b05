"""Whether a trace can be written, asked before a command runs for an hour."""

from __future__ import annotations

import tempfile
from pathlib import Path

from phasetrace.errors import UsageError


def check(path: Path) -> None:
    """Raise unless a trace file can be made there. Leaves nothing behind."""
    if str(path) == "-":
        raise UsageError("-o needs a file: stdout belongs to the command")
    try:
        # An existing trace is moved aside; a device or a folder is not.
        if path.exists() and not path.is_file():
            raise UsageError(f"cannot write {path}: it is not a regular file")
        # Asking for permission says yes to root too often.
        with tempfile.TemporaryFile(dir=path.absolute().parent):
            pass
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another place with -o") from None
