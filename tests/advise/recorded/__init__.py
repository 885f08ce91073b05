"""Recordings of the planted faults, made on the real vLLM, without what no rule looks at.

`python -m tests.advise.recorded TRACE NAME` keeps one.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
