"""Makes the folders of a run: the run directory that goes on PYTHONPATH, and the spool."""

from __future__ import annotations

import os
import shutil

_PACKAGES = ("phasetrace_agent", "phasetrace_transformers", "phasetrace_vllm", "phasetrace_host")

_ENTRY_POINTS = """\
[vllm.general_plugins]
phasetrace = phasetrace_agent.bootstrap:start

[opentelemetry_instrumentor]
phasetrace = phasetrace_agent.instrumentor:Instrumentor
"""


def make(path: str | os.PathLike[str], version: str = "0") -> None:
    """Fill `path` with what a recorded Python loads: never a module named `phasetrace`."""
    path = os.fspath(path)
    os.makedirs(path, exist_ok=True)  # workers that drop their privileges still read it
    here = os.path.dirname(os.path.abspath(__file__))
    for name in _PACKAGES:
        folder = _find(os.path.dirname(here), name)
        if folder:
            _link(folder, os.path.join(path, name))
    _link(os.path.join(here, "sitecustomize.py"), os.path.join(path, "sitecustomize.py"))
    info = os.path.join(path, "phasetrace-%s.dist-info" % version)
    os.mkdir(info)
    _write(os.path.join(info, "METADATA"), "Metadata-Version: 2.1\nName: phasetrace\nVersion: %s\n" % version)
    _write(os.path.join(info, "entry_points.txt"), _ENTRY_POINTS)


def make_spool(path: str | os.PathLike[str]) -> None:
    """A spool that only its owner may read, with the salt for the hashes of prompts."""
    path = os.fspath(path)
    os.makedirs(path, mode=0o700, exist_ok=True)
    os.makedirs(os.path.join(path, "seen"), mode=0o700, exist_ok=True)
    salt = os.path.join(path, "salt")
    if not os.path.exists(salt):
        with open(os.open(salt, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(os.urandom(16))


def _find(beside: str, name: str) -> str | None:
    """A package beside ours: installed, or in the repository, where collectors have a folder of their own."""
    for folder in (os.path.join(beside, name), os.path.join(os.path.dirname(beside), "collectors", name)):
        if os.path.isfile(os.path.join(folder, "__init__.py")):
            return folder
    return None


def _link(source: str, target: str) -> None:
    """A link where Python may keep compiled files beside the source; else a copy, to keep them there."""
    if os.access(source if os.path.isdir(source) else os.path.dirname(source), os.W_OK):
        os.symlink(source, target)
    elif os.path.isdir(source):
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
