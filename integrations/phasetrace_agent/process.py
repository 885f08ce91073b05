"""What is told of this process: basenames and flags, never an argument or a variable of the environment."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FLAGS = (
    ("dont_write_bytecode", "B"),
    ("isolated", "I"),
    ("ignore_environment", "E"),
    ("no_user_site", "s"),
    ("no_site", "S"),
    ("optimize", "O"),
    ("dev_mode", "Xdev"),
)


def facts() -> dict[str, Any]:
    """FACTS of scope PROCESS."""
    return {
        "executable": os.path.basename(sys.executable or ""),
        "script": _script(),
        "flags": " ".join("-" + flag for name, flag in _FLAGS if getattr(sys.flags, name, 0)),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "cores": _cores(),
    }


def _script() -> str:
    # Not sys.argv[0]: applications write into it, and it may then hold anything.
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.basename(file) if isinstance(file, str) else "-c"


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1
