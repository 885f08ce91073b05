"""What is wrapped of the engine core and its scheduler, without vLLM."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_agent import layout
from phasetrace_vllm import core
from phasetrace_vllm.core import Core
from tests.integrations.vllm.fakes import Heard, outputs, ran, request, scheduled, scheduler


class Scheduler:
    """vLLM's verbs, by vLLM's names of their parameters."""

    def __init__(self) -> None:
        vars(self).update(vars(scheduler(running=1)))
        self.structured_output_manager = StructuredOutputManager()

    def add_request(self, request: Any) -> None:
        self.requests[request.request_id] = request

    def schedule(self, throttle_prefills: bool = False) -> Any:
        return scheduled(("r",), r=8)

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        return outputs(r=1)

    def _preempt_request(self, request: Any, timestamp: float) -> None: ...

    def _free_request(self, request: Any, delay_free_blocks: bool = False) -> None: ...


class StructuredOutputManager:
    """The same of structured output."""

    def grammar_bitmask(self, requests: Any) -> Any:
        return "masks"


class EngineCore:
    """The same of the engine core."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.vllm_config = SimpleNamespace(model_config=SimpleNamespace())

    def preprocess_add_request(self, request: Any) -> Any:
        return request, 0


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    """What is heard of the classes above once they are hooked."""
    heard = Heard()
    monkeypatch.setattr(core, "_cores", [])
    hooks = (core.hook_core, core.hook_scheduler, core.hook_grammar)
    for kind, hook in zip((EngineCore, Scheduler, StructuredOutputManager), hooks, strict=True):
        for name, plain in dict(vars(kind)).items():
            if callable(plain):
                monkeypatch.setattr(kind, name, plain)  # so that it is put back
        assert hook(heard, SimpleNamespace(**{kind.__name__: kind})) == []
    for hook in (core.START, core.RECEIVE, core.STEP):
        monkeypatch.setattr(hook, "on", True)
    yield heard


@pytest.mark.parametrize("named", [False, True])
def test_calls_by_position_and_by_keyword_are_recorded(heard: Heard, named: bool) -> None:
    def call(function: Any, **arguments: Any) -> Any:
        return function(**arguments) if named else function(*arguments.values())

    asked = request("r", sampling_params=None)
    asked.sampling_params = SimpleNamespace()
    engine = EngineCore()
    own = engine.scheduler
    call(engine.preprocess_add_request, request=asked)
    call(own.add_request, request=asked)
    output = call(own.schedule, throttle_prefills=False)
    assert call(own.structured_output_manager.grammar_bitmask, requests={}) == "masks"
    runner = ran(r=1)
    assert call(own.update_from_output, scheduler_output=output, model_runner_output=runner)
    call(own._preempt_request, request=asked, timestamp=1.0)
    call(own._free_request, request=asked, delay_free_blocks=False)
    assert core.RECEIVE.on and core.STEP.on
    assert [mark[1] for mark in heard.of("mark")] == [
        layout.RECEIVED,
        layout.QUEUED,
        layout.SCHEDULED,
        layout.PREEMPTED,
    ]
    ((_, _, _, codes, *_),) = heard.of("step")
    assert layout.PART_CODE["logits"] in codes
    assert len(heard.of("finished")) == 1


def test_each_engine_of_a_process_has_a_model_of_its_own(heard: Heard) -> None:
    """And none that another integration in it has."""
    heard.next_id()  # a model of that one
    for engine in (EngineCore(), EngineCore()):
        asked = request("r", sampling_params=SimpleNamespace())
        engine.preprocess_add_request(asked)
    assert core.START.on
    told = [key for scope, key, _ in heard.of("facts") if scope == layout.MODEL]
    assert told == [data["model"] for _, _, data in heard.of("arrived")]
    assert len({1, *told}) == 3


def test_a_scheduler_in_another_thread_does_not_get_between(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Core(Heard())
    first, second = Scheduler(), Scheduler()
    own = made.batches(first)

    others = [second]

    def interrupted(scheduler: Any) -> Any:
        def reference() -> Any:
            while others:
                made.batches(others.pop())  # as the other thread would, just now
            return scheduler

        return reference

    made.batches(second)
    monkeypatch.setattr(core, "weakref", SimpleNamespace(ref=interrupted))
    made.batches(first)
    assert made.batches(first) is own
