"""Runs the measuring program in the application's Python, and keeps what a machine reached."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from phasetrace.errors import UsageError
from phasetrace.model import Ceilings

PROGRAM = "measure.py"


def measure(python: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each line that the program prints: progress, measurements, an error.

    Raises:
        UsageError: that Python cannot be started.
    """
    program = _program()
    try:
        running = subprocess.Popen(
            [python, str(program), json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except OSError as error:
        raise UsageError(
            f"{python} cannot be started: {error.strerror}; name a Python with --python"
        ) from None
    assert running.stdout is not None
    try:
        for line in running.stdout:
            try:
                found = json.loads(line)
            except ValueError:
                continue  # a library that prints
            if isinstance(found, dict):
                yield found
        if running.wait():
            yield {"error": f"the measuring program ended with {running.returncode}"}
    finally:
        running.kill()
        running.stdout.close()
        running.wait()


def _program() -> Path:
    from importlib.util import find_spec

    found = find_spec("phasetrace_transformers")
    assert found is not None and found.submodule_search_locations
    return Path(next(iter(found.submodule_search_locations))) / PROGRAM


def kept_in() -> Path:
    """Where the ceilings of this machine are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "phasetrace" / "ceilings.json"


def keep(device: str, ceilings: Ceilings) -> Path:
    """Write down what a device of this machine reached; the latest counts.

    Raises:
        UsageError: there is no place for it.
    """
    path = kept_in()
    known = _read(path)
    known[_kind(device)] = {"bandwidth_bytes_s": ceilings.bandwidth_bytes_s, "flops_s": ceilings.flops_s}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot keep the ceilings in {path}: {error.strerror}; leave it with --no-keep"
        ) from None
    return path


def kept(device: str, path: Path | None = None) -> Ceilings | None:
    """What bench kept of this kind of device, here or in that file; None where there is nothing."""
    path = path or kept_in()
    found: Any = _read(path).get(_kind(device))
    try:
        source = f"phasetrace bench, {path}"
        return Ceilings(float(found["bandwidth_bytes_s"]), float(found["flops_s"]), source)
    except (TypeError, KeyError, ValueError):
        return None


def _kind(device: str) -> str:
    """What a recording says of `cuda:0`: the kind."""
    return device.split(":")[0]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
