"""Two diagnosed recordings side by side: what changed, phase by phase, and whether noise explains it."""

from phasetrace.analyze.compare.comparison import compare

__all__ = ["compare"]
