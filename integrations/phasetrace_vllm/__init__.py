"""Records vLLM: every process of it, a record a step. Tested with 0.32.

What is hooked, and why there:

- `EngineCore.preprocess_add_request`: a request reaches the engine core, in the thread that reads its socket.
- `Scheduler.add_request`, `schedule`, `update_from_output`: queued, and the steps. The scheduler's own output
  object ties the two ends of a step together.
- `Scheduler._free_request`, `_preempt_request`: a request ends, for any reason, or loses its place.
- `StructuredOutputManager.grammar_bitmask`: masks of structured output.
- `EngineCore.__init__`: the knobs in effect.
- `OutputProcessor.add_request`, `process_outputs`, `_finish_request`, `abort_requests`, `propagate_error`:
  the frontend's side of a request, offline and in a server alike.
- `LLM.generate` and its like, `LLMEngine.add_request`, `AsyncLLM.add_request`, and a middleware around what
  `build_app` returns: the call that requests come by, its span and its `traceparent`.
- `beam_search` of `LLM` and of the server: what it asks of the engine is one request of the user.
- `BaseRenderer.render_cmpl`, `render_chat` and their asynchronous twins: tokenising.
- `init_device`, `load_model`, `determine_available_memory`, `initialize_from_config` and
  `compile_or_warm_up_model` of the workers, `profile_run`, `warming_up_model` and `capture_model` of the
  model runners: what a start consists of.
- `Worker.execute_model`, `sample_tokens`: how long a worker took for each step.

Nothing of it depends on vLLM's statistics or tracing being on.
"""

from __future__ import annotations

import sys
from typing import Any

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder

from .facts import ENGINE_KEY

KNOWN = ((0, 32), (0, 33))
# What the hooks of one record cost, in plain wrapped calls of `calibrate`, as measured: a step passes two
# hooks and counts its batch; a prompt of a thousand tokens is hashed
HOOKS = {
    "step": 4,
    "arrived": 60,
    "mark": 2,
    "finished": 30,
    "ended": 6,
    "execution": 4,
    "prefix": 200,
}


def instrument(recorder: Recorder) -> None:
    """Hook what has been imported of vLLM. Called again as more of it is; again does no harm."""
    version = version_of(sys.modules.get("vllm._version"), sys.modules.get("vllm"))
    reason = refusal(version)
    if reason is None:
        reason = _hook(recorder)
    refused = {} if reason is None else {"refused": reason}
    recorder.facts(layout.ENGINE, ENGINE_KEY, {"engine": "vllm", "version": version, **refused})


def _hook(recorder: Recorder) -> str | None:
    """Wrap what is there; a reason why not, else None."""
    from . import beams, core, frontend, worker

    missing: list[str] = []
    for name, needed, hook in (
        ("vllm.v1.engine.core", "EngineCore", core.hook_core),
        ("vllm.v1.core.sched.scheduler", "Scheduler", core.hook_scheduler),
        ("vllm.v1.structured_output", "StructuredOutputManager", core.hook_grammar),
        ("vllm.v1.engine.output_processor", "OutputProcessor", frontend.hook_processor),
        ("vllm.v1.engine.async_llm", "AsyncLLM", frontend.hook_async),
        ("vllm.v1.engine.llm_engine", "LLMEngine", frontend.hook_engine),
        ("vllm.entrypoints.llm", "LLM", frontend.hook_offline),
        ("vllm.entrypoints.generate.beam_search.offline", "BeamSearchOfflineMixin", beams.hook_offline),
        ("vllm.entrypoints.generate.beam_search.online", "BeamSearchOnlineMixin", beams.hook_online),
        ("vllm.renderers.base", "BaseRenderer", frontend.hook_renderer),
        ("vllm.entrypoints.launchers.app", "build_app", frontend.hook_app),
        ("vllm.v1.worker.gpu_worker", "Worker", worker.hook_worker),
        ("vllm.v1.worker.cpu_worker", "CPUWorker", worker.hook_worker),
        ("vllm.v1.worker.gpu_model_runner", "GPUModelRunner", worker.hook_runner),
        ("vllm.v1.worker.cpu_model_runner", "CPUModelRunner", worker.hook_runner),
    ):
        module = sys.modules.get(name)
        if hasattr(module, needed):  # else it is in the midst of its import, and we are called again after it
            missing += hook(recorder, module)
    return "no " + ", ".join(missing) if missing else None


def version_of(*modules: Any) -> str:
    """The version of vLLM; its package metadata is absent in the wheel for CPUs."""
    for module in modules:
        version = getattr(module, "__version__", None)
        if isinstance(version, str):
            return version
    return ""


def refusal(version: str) -> str | None:
    """Why this version is not hooked."""
    parts = version.split(".")
    try:
        known = (int(parts[0]), int(parts[1]))
    except (ValueError, IndexError):
        return "version unknown"
    if KNOWN[0] <= known <= KNOWN[-1]:
        return None
    return "version %s, known are %s" % (".".join(parts[:2]), " to ".join("%d.%d" % v for v in KNOWN))
