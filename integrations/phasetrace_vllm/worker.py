"""What is wrapped in the processes of the workers: how long a start took, and what the weights weigh.

A worker tells them as facts of its process. How long a step took on the device, it does not say yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock, layout
from phasetrace_agent.hooking import Hook, wrap
from phasetrace_agent.recorder import Recorder

from .facts import ENGINE_KEY

Function = Callable[..., Any]
now = clock.now

START = Hook("vllm.worker")
# What a start consists of, by the method of a worker that does it
STAGES = {
    "init_device": "device_start_ns",
    "load_model": "model_load_ns",
    "determine_available_memory": "profiling_ns",  # on CPUs the model is compiled and warmed up in it
    "compile_or_warm_up_model": "warm_up_ns",
}


def hook_worker(recorder: Recorder, module: Any) -> list[str]:
    """Wrap each stage on the classes of this module that define it; a subclass calls the outer one's."""
    stages = Stages(recorder)
    for name in ("Worker", "CPUWorker"):
        worker = vars(module).get(name)
        if worker is None or worker.__module__ != module.__name__:
            continue
        for method, fact in STAGES.items():
            if method in vars(worker):
                wrap(worker, method, stages.around(method, fact))
    return []


class Stages:
    """Tells each stage once it is over. A stage inside of another is part of it."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._running: str | None = None

    def around(self, method: str, fact: str) -> Callable[[Function], Function]:
        """Time one stage."""

        def make_wrapper(original: Function) -> Function:
            def stage(worker: Any, *args: Any, **kwargs: Any) -> Any:
                if not START.on or not self.recorder.enabled or self._running is not None:
                    return original(worker, *args, **kwargs)
                self._running = method
                begin = now()
                try:
                    result = original(worker, *args, **kwargs)
                finally:
                    self._running = None
                try:
                    told: dict[str, Any] = {"engine": "vllm", fact: now() - begin}
                    if method == "load_model":
                        told.update(weights(getattr(worker, "model_runner", None)))
                    self.recorder.facts(layout.ENGINE, ENGINE_KEY, told)
                except Exception as error:
                    START.fail(error)
                return result

            return stage

        return make_wrapper


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
