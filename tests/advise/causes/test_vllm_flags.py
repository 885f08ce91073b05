"""The flags that findings name are those of the vLLM that the tests run."""

import ast
import re
from pathlib import Path

import pytest

from phasetrace.advise.causes import RULES
from tests.conftest import ENGINES

CAUSES = Path(__file__).parents[3] / "phasetrace" / "advise" / "causes"
# `vllm serve` and its frontend define these beside the engine's own
PLACES = ("engine/arg_utils.py", "entrypoints")
OTHERS = {"--cpus", "--engine-config"}  # of `docker run`, and our own
FLAG = re.compile(r"--[a-z][a-z0-9-]+")


@pytest.fixture(scope="module")
def defined() -> str:
    package = next(ENGINES.glob("vllm/lib/python3.*/site-packages/vllm"), None)
    if package is None:
        pytest.skip("vLLM is not installed; `make engines-vllm` sets it up")
    files = [package / PLACES[0], *(package / PLACES[1]).rglob("*.py")]
    return "".join(file.read_text(encoding="utf-8") for file in files)


def named() -> set[str]:
    """In the commands for vLLM: those of the words of a cause, and those that are made of numbers."""
    found: set[str] = set()
    for path in CAUSES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == "vllm":
                        found |= set(FLAG.findall(ast.unparse(value)))
    for rule in RULES:
        found |= {flag for said in rule.words.commands.get("vllm", ()) for flag in FLAG.findall(said)}
    return found - OTHERS


def test_every_flag_exists(defined: str) -> None:
    missing = sorted(flag for flag in named() if f'"{flag}"' not in defined)
    assert named() and missing == []
