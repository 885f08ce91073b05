"""Starts an integration when the module it hooks has just been executed.

Nothing is imported before the application does so, and a module that nobody asked for costs one dictionary
look-up.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# What triggers which integration. Scanning entry points instead would cost 41 ms in every process.
TRIGGERS = {
    "transformers.generation.utils": "phasetrace_transformers",
}
# Records beside any engine; of no use without one.
COLLECTORS = ("phasetrace_host",)


class Finder:
    """Stands first on sys.meta_path and lets the others find what triggers an integration."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that the next finders give, with `exec_module` followed by our start."""
        if name not in TRIGGERS:
            return None
        for finder in sys.meta_path:
            if finder is Finder:
                continue
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                _follow(spec.loader, name)
                return spec
        return None


def _follow(loader: Loader | None, name: str) -> None:
    """Run the integration after this loader's `exec_module`; the loader is otherwise left as it is."""
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        activate(name)

    try:
        loader.exec_module = exec_module  # type: ignore[union-attr, method-assign]
    except Exception as error:
        _failed("importhook", error)


def install() -> None:
    """Put the finder in place, and start what is imported already. Again does no harm."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
    for name in TRIGGERS:
        if name in sys.modules and not _being_imported(sys.modules[name]):
            activate(name)


def uninstall() -> None:
    """Take the finder out; integrations that run go on."""
    if Finder in sys.meta_path:
        sys.meta_path.remove(Finder)


def _being_imported(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def activate(trigger: str) -> None:
    """Call `instrument(recorder)` of the integration that this module triggers, and of the collectors."""
    from . import bootstrap

    recorder = bootstrap.recorder()
    if recorder is None or not recorder.enabled:
        return
    for package in (TRIGGERS[trigger], *COLLECTORS):
        try:
            __import__(package)
            sys.modules[package].instrument(recorder)
        except Exception as error:
            _failed(package, error)


def _failed(where: str, error: Exception) -> None:
    try:
        from . import bootstrap

        recorder = bootstrap.recorder()
        if recorder is not None:
            recorder.failed(where, error)
    except Exception:
        pass
