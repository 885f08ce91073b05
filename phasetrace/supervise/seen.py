"""Why a run recorded nothing: what its processes have told, and what the command says about itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from phasetrace.model import Recording

OLDEST = (3, 9)
ISOLATING = "IES"  # python flags that keep PYTHONPATH or sitecustomize away
TAKING_A_VALUE = "WX"
ENDING_THE_FLAGS = "cm"


def python_versions(spool: Path) -> list[str]:
    """The version of each Python process that came by, as left in the spool."""
    names = [marker.name.split("-") for marker in (spool / "seen").glob("*-*")]
    return [name[1] for name in names]


def why_nothing(command: Sequence[str], versions: Sequence[str], recording: Recording) -> str:
    """The likeliest reason, in a sentence."""
    lost = sum(process.lost_records for process in recording.processes)
    if lost:
        return f"there was no room for the {lost} records: choose another place with --spool DIR"
    for process in recording.processes:
        for engine, reason in process.refused.items():
            return f"{engine} is not hooked: {reason}"
    engines = {f"{name} {version}" for p in recording.processes for name, version in p.engines.items()}
    if engines:
        return f"{', '.join(sorted(engines))} was loaded, and no text was asked of it"
    for process in recording.processes:
        for child in process.uncovered:
            return f"a Python process runs without phasetrace: {child}"
    if not versions:
        return _why_no_python(command)
    if all(_is_too_old(version) for version in versions):
        return f"Python {versions[0]} is too old: 3.9 or newer can be recorded"
    return "no process imported transformers or vllm"


def isolating_flags(command: Sequence[str]) -> str:
    """The flags of a Python command line that keep the agent out."""
    found = ""
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-") or word.startswith("--") or word == "-":
            break
        for at, flag in enumerate(word[1:], start=2):
            if flag in ISOLATING:
                found += flag
            elif flag in TAKING_A_VALUE:
                if at == len(word):  # the value is the next word
                    next(words, None)
                break
            elif flag in ENDING_THE_FLAGS:
                return found
    return found


def _why_no_python(command: Sequence[str]) -> str:
    flags = isolating_flags(command)
    if Path(command[0]).name.startswith("python") and flags:
        return f"python -{flags} ignores PYTHONPATH, through which it would be recorded; run it without"
    return (
        "no Python process was seen: the command starts none, or starts it with -I, -E or -S or an "
        f"environment of its own; `phasetrace doctor -- {Path(command[0]).name} ...` says more"
    )


def _is_too_old(version: str) -> bool:
    numbers = tuple(int(n) for n in version.split(".")[:2] if n.isdigit())
    return bool(numbers) and numbers < OLDEST
