"""Starts an integration when the module it hooks has just been executed.

Nothing is imported before the application does so, and a module that nobody asked for costs one dictionary
look-up.

An integration is a package with a function `instrument(recorder)`. It is called after each of its triggers,
so it hooks what it finds and minds being called again; the trigger is whole and in `sys.modules` then, but
not yet an attribute of its parent package. Its `HOOKS`, if it has any, says how many wrapped calls belong
to a record of each kind (`calibrate.costs`).
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from .recorder import Recorder

# What triggers which integration. Scanning entry points instead would cost 41 ms in every process.
TRIGGERS = {
    "transformers.generation.utils": "phasetrace_transformers",
    "transformers.generation_utils": "phasetrace_transformers",  # of old: to say that it is not hooked
    "transformers.pipelines.text_generation": "phasetrace_transformers",
    "transformers.pipelines.text2text_generation": "phasetrace_transformers",
    "transformers.pipelines.image_text_to_text": "phasetrace_transformers",
    "transformers.pipelines.any_to_any": "phasetrace_transformers",
    "transformers.generation.continuous_batching.continuous_api": "phasetrace_transformers",
    "vllm.v1.engine.core": "phasetrace_vllm",
    "vllm.v1.core.sched.scheduler": "phasetrace_vllm",
    "vllm.v1.engine.output_processor": "phasetrace_vllm",
    "vllm.v1.engine.async_llm": "phasetrace_vllm",
    "vllm.v1.engine.llm_engine": "phasetrace_vllm",
    "vllm.entrypoints.llm": "phasetrace_vllm",
    "vllm.entrypoints.generate.beam_search.offline": "phasetrace_vllm",
    "vllm.entrypoints.generate.beam_search.online": "phasetrace_vllm",
    "vllm.renderers.base": "phasetrace_vllm",
    "vllm.entrypoints.launchers.app": "phasetrace_vllm",
    "vllm.v1.worker.gpu_worker": "phasetrace_vllm",
    "vllm.v1.worker.cpu_worker": "phasetrace_vllm",
    "vllm.v1.worker.gpu_model_runner": "phasetrace_vllm",
    "vllm.v1.worker.cpu_model_runner": "phasetrace_vllm",
}
# Records beside any engine; of no use without one.
COLLECTORS = ("phasetrace_host",)


class Finder:
    """Stands first on sys.meta_path and lets the others find what triggers an integration."""

    @staticmethod
    def find_spec(name: str, path: "Any" = None, target: "Any" = None) -> "ModuleSpec | None":
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


def _follow(loader: "Loader | None", name: str) -> None:
    """Run the integration after this loader's `exec_module`; the loader is otherwise left as it is."""
    execute = getattr(loader, "exec_module", None)
    if execute is None or isinstance(loader, type):
        return

    def exec_module(module: "ModuleType") -> None:
        execute(module)
        if module.__name__ == name:  # the loader of a zip file serves many modules
            vars(loader).pop("exec_module", None)
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


def _being_imported(module: "ModuleType") -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def activate(trigger: str) -> None:
    """Call `instrument(recorder)` of the integration that this module triggers, and of the collectors."""
    from . import bootstrap  # which imports this

    recorder = bootstrap.recorder()
    if recorder is None or not recorder.enabled:
        return
    for package in (TRIGGERS[trigger], *COLLECTORS):
        try:
            __import__(package)
            integration: Any = sys.modules[package]
            integration.instrument(recorder)
            if hasattr(integration, "HOOKS") and _priced.get(package) is not recorder:
                _priced[package] = recorder
                _tell_costs(recorder, integration.HOOKS)
        except Exception as error:
            _failed(package, error)


_priced: "dict[str, Recorder]" = {}  # whom the costs have been told


def _tell_costs(recorder: "Recorder", hooks: "Mapping[str, int]") -> None:
    from . import calibrate, layout

    recorder.facts(layout.PROCESS, 0, {"costs": calibrate.costs(hooks)})


def _failed(where: str, error: Exception) -> None:
    try:
        from . import bootstrap
    except Exception:  # the application has thrown our modules out
        return
    try:
        recorder = bootstrap.recorder()
        if recorder is not None:
            recorder.failed(where, error)
    except Exception as another:
        bootstrap.pass_on(another)
    bootstrap.pass_on(error)
