"""The error tree. The library raises, the command line prints one line and returns the exit code.

PhasetraceError
├── UsageError             what the user asked for cannot be done; says what to do instead
├── TraceFormatError       a file is not what it should be (file, line, what was expected)
└── NothingRecordedError   a file or run holds no LLM request
"""

from __future__ import annotations


class PhasetraceError(Exception):
    """Base of everything phasetrace raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 2


class UsageError(PhasetraceError):
    """The request cannot be carried out as given (missing file, unwritable output, unknown command)."""


class TraceFormatError(PhasetraceError):
    """An input is not in the format that its content promises."""


class NothingRecordedError(PhasetraceError):
    """The input is well formed and holds nothing that can be diagnosed."""
