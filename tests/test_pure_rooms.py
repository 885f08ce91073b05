"""What the import contracts cannot see: builtins that do I/O in a pure room."""

import ast
from collections.abc import Iterator
from pathlib import Path

PURE = ("errors", "model", "semconv", "mapping", "analyze", "advise", "predict", "render")
IMPURE_BUILTINS = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}


def modules(root: Path) -> Iterator[Path]:
    """The modules of the pure rooms that exist."""
    for room in PURE:
        yield from (root / "phasetrace").glob(f"{room}.py")
        yield from (root / "phasetrace" / room).rglob("*.py")


def test_pure_rooms_call_no_builtin_that_does_io(root: Path) -> None:
    calls = [
        f"{path.relative_to(root)}:{node.lineno} {node.func.id}()"
        for path in modules(root)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_BUILTINS
    ]
    assert calls == []
