"""Runs the command, drains what it records, writes the trace, says what came of it.

The heavy rooms (numpy, OTLP) are imported inside functions on purpose: the command starts first, and our
signals are blocked before a library can start threads that would take them.
"""

from phasetrace.supervise.attach import instrument, uninstrument
from phasetrace.supervise.command import run
from phasetrace.supervise.examine import examine
from phasetrace.supervise.options import DETAILS, RunOptions, RunResult
from phasetrace.supervise.recover import recover

__all__ = ["DETAILS", "RunOptions", "RunResult", "examine", "instrument", "recover", "run", "uninstrument"]
