"""The environment of a recorded command: what it had, and the way to the agent."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from phasetrace.supervise.folder import Folder

SPOOL = "PHASETRACE_SPOOL"
RUN = "PHASETRACE_RUN"
PYTHONPATH = "PYTHONPATH"


def recorded(environment: Mapping[str, str], folder: Folder) -> dict[str, str]:
    """`environment` for a command whose Python processes are to be recorded into `folder`."""
    return {
        **environment,
        SPOOL: str(folder.spool),
        RUN: str(folder.run),
        PYTHONPATH: first_on_path(str(folder.run), environment.get(PYTHONPATH, "")),
    }


def first_on_path(entry: str, path: str) -> str:
    """`entry` before `path`, once. An empty path adds nothing: `dir:` would put the current folder on it."""
    rest = [other for other in path.split(os.pathsep) if other != entry] if path else []
    return os.pathsep.join([entry, *rest])


def joined(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The environment that records into the run we are in, if we are in one that still has its spool."""
    spool, run = environment.get(SPOOL), environment.get(RUN)
    if not (spool and run and Path(spool).is_dir() and Path(run).is_dir()):
        return None
    return {**environment, PYTHONPATH: first_on_path(run, environment.get(PYTHONPATH, ""))}


def forget(environment: MutableMapping[str, str], folder: Folder) -> None:
    """Take out again what `recorded` put in."""
    for name in (SPOOL, RUN):
        environment.pop(name, None)
    path = [entry for entry in environment.get(PYTHONPATH, "").split(os.pathsep) if entry != str(folder.run)]
    if path:
        environment[PYTHONPATH] = os.pathsep.join(path)
    else:
        environment.pop(PYTHONPATH, None)
