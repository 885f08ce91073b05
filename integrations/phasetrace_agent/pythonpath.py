"""PYTHONPATH with the run directory in front."""

import os


def join(run, old):  # type: ignore[no-untyped-def]
    """`run` before what was there. An empty PYTHONPATH stays empty: `run:` would put the current folder on the path."""
    return run + os.pathsep + old if old else run


def holds(path, run):  # type: ignore[no-untyped-def]
    """Whether the run directory is on that PYTHONPATH; both may be bytes, as an `env=` may hold either."""
    return run in os.fsdecode(path or "").split(os.pathsep)
