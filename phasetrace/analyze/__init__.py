"""From a Recording to a Breakdown: where each request's time went, and the statistics over requests.

Pure: no I/O, no clock, no engine. All work is O(steps + requests); nothing here loops over tokens.
"""

from phasetrace.analyze.breakdown import breakdown

__all__ = ["breakdown"]
