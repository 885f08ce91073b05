"""PYTHONPATH is meant for the application, whose packages may be built for another Python: it is not for us.

Importing this module takes its entries off our own `sys.path`, before anything is imported that could be
found there. What the application gets is not changed.
"""

import os
import sys
from pathlib import Path

OWN_ROOT = Path(__file__).resolve().parents[2]


def without(path: list[str], pythonpath: str) -> list[str]:
    """`path` without the entries of `pythonpath`, except for the one that phasetrace itself came from."""
    foreign = {os.path.abspath(entry) for entry in pythonpath.split(os.pathsep) if entry}
    foreign -= {entry for entry in foreign if Path(entry).resolve() in (OWN_ROOT, OWN_ROOT / "integrations")}
    return [entry for entry in path if os.path.abspath(entry) not in foreign]


sys.path[:] = without(sys.path, os.environ.get("PYTHONPATH", ""))
