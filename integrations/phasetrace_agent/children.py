"""Notices Python children that start without us, so that a recording that covers only a part says so."""

from __future__ import annotations

import os

from . import bootstrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

# Where each event keeps (program, arguments, environment).
_EVENTS = {
    "subprocess.Popen": (0, 1, 3),
    "os.exec": (0, 1, 2),
    "os.posix_spawn": (0, 1, 2),
}
_MOST = 16  # different kinds of uncovered children told by one process

_told: set[tuple[str, str]] = set()


def look(event: str, args: Any, run: str) -> None:
    """Look at a process that is about to start, and tell of it, once a kind, if it will not load us."""
    program, argv, env = (args[at] for at in _EVENTS[event])
    if isinstance(argv, (str, bytes, os.PathLike)):
        argv = [argv]
    found = uncovered(argv[0] if program is None else program, argv, env, run)
    if found and found not in _told and len(_told) < _MOST:
        _told.add(found)
        recorder = bootstrap.recorder()
        if recorder is not None and recorder.enabled:
            recorder.trouble({"uncovered": found[0], "why": found[1]})


def uncovered(
    program: Any, argv: Sequence[Any], env: Mapping[Any, Any] | None, run: str
) -> tuple[str, str] | None:
    """(what, why) of a Python child that will not load us. Names programs and flags, never arguments."""
    interpreter, options = _interpreter(os.fsdecode(program), [os.fsdecode(arg) for arg in argv])
    if interpreter is None:
        return None
    flags = [flag for flag in _flags(options) if flag in "IES"]
    if flags:
        return " ".join([interpreter, *("-" + flag for flag in flags)]), "flags"
    values = os.environ if env is None else env
    if not _value(values, "PHASETRACE_SPOOL") or not _holds(_value(values, "PYTHONPATH"), run):
        return interpreter, "environment"
    return None


def _interpreter(program: str, argv: list[str]) -> tuple[str | None, list[str]]:
    """(basename, its own arguments) if the program is Python, or a script that asks for it."""
    name = os.path.basename(program)
    if _is_python(name):
        return name, argv[1:]
    shebang = _shebang(program)
    if not shebang:
        return None, []
    name = os.path.basename(shebang[0])
    if name == "env":
        shebang = [word for word in shebang[1:] if not word.startswith("-") and "=" not in word] or [""]
        name = os.path.basename(shebang[0])
    return (name, shebang[1:]) if _is_python(name) else (None, [])


def _is_python(name: str) -> bool:
    return name.startswith("python") and not name[len("python") :].strip("0123456789.t")


def _shebang(program: str) -> list[str]:
    folders = [""] if "/" in program else os.get_exec_path()
    for folder in folders:
        path = os.path.join(folder, program)
        if not os.path.isfile(path):
            continue
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            first = os.read(file, 256).split(b"\n", 1)[0]
        finally:
            os.close(file)
        return os.fsdecode(first[2:]).split() if first.startswith(b"#!") else []
    return []


def _flags(arguments: Sequence[str]) -> Iterator[str]:
    """The single-letter options of the interpreter, up to the script, -m or -c."""
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("--"):
            if argument == "--check-hash-based-pycs":
                next(rest, None)
            continue
        if not argument.startswith("-") or argument == "-":
            return
        for at, letter in enumerate(argument[1:], start=1):
            if letter in "cm":
                return
            if letter in "WX":  # the rest of the word is its value, or the next word is
                if at == len(argument) - 1:
                    next(rest, None)
                break
            yield letter


def _holds(path: str | bytes | None, folder: str) -> bool:
    return folder in os.fsdecode(path or "").split(os.pathsep)


def _value(environment: Mapping[Any, Any], name: str) -> Any:
    value = environment.get(name)
    return value if value is not None or environment is os.environ else environment.get(name.encode())
