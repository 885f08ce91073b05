"""What is wrapped in the processes of the workers: the stages of a start, and what the weights weigh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock, layout
from phasetrace_agent.hooking import Hook, wrap
from phasetrace_agent.recorder import Recorder

from .executions import Executions
from .facts import ENGINE_KEY

Function = Callable[..., Any]
now = clock.now

START = Hook("vllm.worker")
WORKERS = ("Worker", "CPUWorker")
RUNNERS = ("GPUModelRunner", "CPUModelRunner")
# What a start consists of, by the method that does it
STAGES = {
    "init_device": "device-start",
    "load_model": "model-load",
    "determine_available_memory": "profiling",  # on CPUs the model is compiled and warmed up in it
    "initialize_from_config": "kv-cache",
    "compile_or_warm_up_model": "warm-up",
}
STAGES_OF_RUNNERS = {
    "profile_run": "profile-run",
    "warming_up_model": "warm-up-run",
    "capture_model": "graph-capture",
}


def hook_worker(recorder: Recorder, module: Any) -> list[str]:
    """Wrap each stage and the execution of steps, on the classes of this module that define them."""
    _wrap_stages(recorder, module, WORKERS, STAGES)
    worker = vars(module).get("Worker")
    if worker is not None and worker.__module__ == module.__name__:
        executions = Executions(recorder)
        wrap(worker, "execute_model", executions.around_execute)
        wrap(worker, "sample_tokens", executions.around_sample)
    return []


def hook_runner(recorder: Recorder, module: Any) -> list[str]:
    """Wrap the stages inside of those of a worker."""
    _wrap_stages(recorder, module, RUNNERS, STAGES_OF_RUNNERS)
    return []


def _wrap_stages(recorder: Recorder, module: Any, classes: tuple[str, ...], methods: dict[str, str]) -> None:
    stages = Stages(recorder)
    for name in classes:
        found = vars(module).get(name)
        if found is None or found.__module__ != module.__name__:
            continue
        for method, stage in methods.items():
            wrap(found, method, stages.around(method, stage))


class Stages:
    """Tells each stage once it is over; a method that calls the outer class's one is told once."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._running: set[str] = set()

    def around(self, method: str, name: str) -> Callable[[Function], Function]:
        """Time one stage."""

        def make_wrapper(original: Function) -> Function:
            def stage(owner: Any, /, *args: Any, **kwargs: Any) -> Any:
                if not START.on or not self.recorder.enabled or name in self._running:
                    return original(owner, *args, **kwargs)
                self._running.add(name)
                begin = now()
                try:
                    result = original(owner, *args, **kwargs)
                finally:
                    self._running.discard(name)
                try:
                    self.recorder.stage(name, begin, now())
                    if method == "load_model":
                        self._tell({"role": "worker", **weights(getattr(owner, "model_runner", None))})
                    elif method == "compile_or_warm_up_model":
                        self._tell(compilation(result))
                except Exception as error:
                    START.fail(error)
                return result

            return stage

        return make_wrapper

    def _tell(self, facts: dict[str, Any]) -> None:
        if facts:
            self.recorder.facts(layout.ENGINE, ENGINE_KEY, {"engine": "vllm", **facts})


def weights(runner: Any) -> dict[str, int]:
    """Parameters of this worker's shard of the model, and their bytes; asks no device."""
    model = getattr(runner, "model", None)
    if model is None:
        return {}
    count = size = 0
    for parameter in model.parameters():
        count += parameter.numel()
        size += parameter.numel() * parameter.element_size()
    return {"worker_parameters": count, "worker_weight_bytes": size}


def compilation(times: Any) -> dict[str, Any]:
    """Seconds that compiling took, by vLLM's own count; part of the stages in which it happened."""
    known = [getattr(times, name, 0.0) for name in ("language_model", "encoder")]
    seconds = sum(value for value in known if type(value) is float)
    return {"compilation_s": seconds} if seconds else {}
