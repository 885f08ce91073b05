"""From a Recording to a Breakdown: where each request's time went, and the statistics over requests.

Pure: no I/O, no clock, no engine. All work is O(steps + requests); nothing here loops over tokens.
"""

from phasetrace.analyze.breakdown import breakdown
from phasetrace.analyze.step_table import step_table

__all__ = ["breakdown", "step_table"]
