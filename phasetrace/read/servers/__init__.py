"""Traces from a server by its address: what is asked is in `question`, what it answers is read in `answer`.

Only the question is loaded here: what speaks HTTP takes as long to load as a small file takes to diagnose.
"""

from phasetrace.read.servers.question import asked, is_address

__all__ = ["asked", "is_address"]
