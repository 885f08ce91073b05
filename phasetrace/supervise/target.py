"""Which Python a command will run, as far as can be told without running it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON = re.compile(r"(python|pypy)[0-9.]*t?")
LONGEST_SHEBANG = 512
FLAGS_WITH_A_VALUE = ("-W", "-X")


@dataclass(frozen=True, slots=True)
class Target:
    """The words that start the command's Python with its own flags, and how they were found."""

    python: tuple[str, ...]
    found: str


def resolve(command: Sequence[str]) -> Target | None:
    """The Python that `command` runs: itself, what its script asks for, or one behind a wrapper (`nice`)."""
    program = shutil.which(command[0])
    if program is None:
        return None
    if _is_python(program):
        return Target((program, *_flags(command[1:])), "the command itself")
    if Path(program).name in ("uv", "uvx") and "run" in command:
        at = command.index("run") + 1
        return Target((*command[:at], "python"), "the environment of `uv run`")
    asked = _shebang(program)
    if asked and _is_python(asked[0]):
        return Target((*asked[:1], *_flags(asked[1:])), f"what the script {Path(program).name} asks for")
    for at, word in enumerate(command[1:], start=1):  # env, nice, timeout, numactl, bash -c ...
        if _is_python(word) and shutil.which(word):
            return Target((word, *_flags(command[at + 1 :])), f"behind {Path(program).name}")
    return None


def _is_python(program: str) -> bool:
    return PYTHON.fullmatch(os.path.basename(program)) is not None


def _flags(words: Sequence[str]) -> list[str]:
    """The interpreter's own flags, before the script, -c or -m."""
    flags: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-" or word.startswith(("-c", "-m")):
            break
        ends = re.fullmatch(r"(-[A-Za-z]*)[cm]", word) if not word.startswith(FLAGS_WITH_A_VALUE) else None
        flags.append(ends[1] if ends else word)
        if ends:
            break
        if word in FLAGS_WITH_A_VALUE:
            flags += [next(rest, "")]
    return flags


def _shebang(program: str) -> list[str]:
    try:
        with open(program, "rb") as file:
            first = file.readline(LONGEST_SHEBANG)
    except OSError:
        return []
    if not first.startswith(b"#!"):
        return []
    words = os.fsdecode(first[2:]).split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words
