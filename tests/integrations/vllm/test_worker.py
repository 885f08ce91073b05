"""The stages of a worker's start, without vLLM."""

from types import SimpleNamespace
from typing import Any

from phasetrace_vllm.worker import compilation, hook_worker
from tests.integrations.vllm.fakes import Heard

PARAMETER = SimpleNamespace(numel=lambda: 10, element_size=lambda: 4)


def workers() -> Any:
    """A module with vLLM's two classes."""

    class Worker:
        model_runner: Any = None

        def init_device(self) -> None: ...

        def load_model(self, *, load_dummy_weights: bool = False) -> str:
            self.model_runner = SimpleNamespace(model=SimpleNamespace(parameters=lambda: [PARAMETER] * 3))
            return "loaded"

        def compile_or_warm_up_model(self) -> None:
            raise MemoryError

    class CPUWorker(Worker):
        def init_device(self) -> None:
            super().init_device()

    Worker.__module__ = CPUWorker.__module__ = "workers"
    return SimpleNamespace(__name__="workers", Worker=Worker, CPUWorker=CPUWorker)


def test_each_stage_is_told_once() -> None:
    heard, module = Heard(), workers()
    hook_worker(heard, module)
    worker = module.CPUWorker()
    worker.init_device()
    assert worker.load_model(load_dummy_weights=True) == "loaded"
    assert [name for name, *_ in heard.of("stage")] == ["device-start", "model-load"]
    assert all(begin <= end for _, begin, end in heard.of("stage"))
    ((_, _, told),) = heard.of("facts")
    assert (told.pop("engine"), told.pop("role")) == ("vllm", "worker")
    assert told == {"worker_parameters": 30, "worker_weight_bytes": 120}


def test_a_stage_that_fails_fails_as_before() -> None:
    heard, module = Heard(), workers()
    hook_worker(heard, module)
    try:
        module.Worker().compile_or_warm_up_model()
    except MemoryError:
        pass
    module.Worker().init_device()
    assert [name for name, *_ in heard.of("stage")] == ["device-start"]


def test_classes_of_other_modules_are_left_to_them() -> None:
    heard, module = Heard(), workers()
    original = module.Worker.init_device
    elsewhere = SimpleNamespace(__name__="cpu", Worker=module.Worker)
    hook_worker(heard, elsewhere)
    assert module.Worker.init_device is original


def test_what_compiling_took_is_told_where_anything_was_compiled() -> None:
    assert compilation(SimpleNamespace(language_model=2.5, encoder=0.5)) == {"compilation_s": 3.0}
    assert compilation(SimpleNamespace(language_model=0.0, encoder=0.0)) == {}
    assert compilation(None) == {}
