"""Continuous batching, with an engine that names every argument, told to a recorder that listens."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_agent import clock, prefix
from phasetrace_agent.hooking import wrap
from phasetrace_transformers.continuous import Engine
from phasetrace_transformers.continuous_requests import ADD
from phasetrace_transformers.continuous_steps import STEP
from tests.integrations.transformers.fakes import FakeModel, Parameter


class Listener:
    """Notes every verb."""

    enabled = True

    def __init__(self) -> None:
        self.count = 0
        self.said: list[tuple[Any, ...]] = []

    def next_id(self) -> int:
        self.count += 1
        return self.count

    def __getattr__(self, verb: str) -> Any:
        return lambda *args: self.said.append((verb, *args))

    def of(self, verb: str) -> list[tuple[Any, ...]]:
        return [said[1:] for said in self.said if said[0] == verb]


class State:
    """A request, as 4.x keeps it."""

    def __init__(self, name: str) -> None:
        self.request_id = name
        self.full_prompt_ids = self.prompt_ids = [5, 6, 7]
        self.static_outputs: list[int] = []
        self.eos_token_id = 2
        self.status = "DECODING"
        self.created_time = clock.now() / 1e9


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A scheduler, a processor and a manager, hooked, and who listens."""

    class Scheduler:
        _requests_to_cancel: tuple[str, ...] = ()

        def add_waiting_request(self, state: State) -> State:
            return state

    class Processor:
        def __init__(self) -> None:
            self.scheduler = Scheduler()
            self.requests_in_batch: list[State] = []

        def prepare_next_batch(self) -> bool:
            return True

        def update_batch(self) -> None:
            for state in self.requests_in_batch:
                state.static_outputs.append(2)
                state.status = "FINISHED"

        def _handle_request_error(self, error: Exception, state: State) -> State:
            return state

    class Manager:
        model = FakeModel(Parameter(5))

        def add_request(self, input_ids: list[int], request_id: str) -> str:
            return request_id

        def _generation_step(self, batch_processor: Processor) -> Processor:
            return batch_processor

    monkeypatch.setattr(prefix, "salt", lambda recorder: b"s" * 16)
    hooks = (ADD, STEP)
    assert all(hook.on for hook in hooks)
    listener = Listener()
    hooked = Engine(listener)  # type: ignore[arg-type]
    wrap(Scheduler, "add_waiting_request", hooked.requests.around_add_waiting)
    wrap(Processor, "prepare_next_batch", hooked.steps.around_prepare)
    wrap(Processor, "update_batch", hooked.steps.around_update)
    wrap(Processor, "_handle_request_error", hooked.steps.around_error)
    wrap(Manager, "add_request", hooked.requests.around_add_request)
    wrap(Manager, "_generation_step", hooked.steps.around_forward_of_manager)
    yield SimpleNamespace(manager=Manager(), processor=Processor(), hooked=hooked, listener=listener)
    failed = [hook.where for hook in hooks if not hook.on]
    for hook in hooks:
        hook.on = True
    assert failed == []


@pytest.mark.parametrize("early", [True, False], ids=["told before it is taken", "told after it was taken"])
def test_an_engine_may_name_every_argument(engine: Any, early: bool) -> None:
    state, processor = State("a"), engine.processor
    if early:
        assert engine.manager.add_request(input_ids=[5, 6, 7], request_id="a") == "a"
    assert processor.scheduler.add_waiting_request(state=state) is state
    if not early:
        assert engine.manager.add_request(input_ids=[5, 6, 7], request_id="a") == "a"
    processor.requests_in_batch = [state]
    assert processor.prepare_next_batch()
    assert engine.manager._generation_step(batch_processor=processor) is processor
    processor.update_batch()
    told = engine.listener
    assert [len(told.of(verb)) for verb in ("arrived", "prefix", "step", "finished")] == [1, 1, 1, 1]
    assert told.of("finished")[0][2]["reason"] == "stop"
    assert (engine.hooked.requests._known, engine.hooked.requests._early) == ({}, {})


def test_a_failed_request_is_told(engine: Any) -> None:
    state = State("a")
    engine.processor.scheduler.add_waiting_request(state)
    assert engine.processor._handle_request_error(error=KeyError("a secret"), state=state) is state
    assert engine.listener.of("finished")[0][2] == {"reason": "error", "error": "KeyError"}


def test_another_recorder_is_told_from_its_start(engine: Any) -> None:
    state, processor = State("a"), engine.processor
    processor.scheduler.add_waiting_request(state)
    processor.requests_in_batch = [state]
    processor.prepare_next_batch()
    second = Listener()
    before = clock.now()
    engine.hooked.tell(engine.listener)  # the same: nothing is forgotten
    assert engine.hooked.requests._known
    engine.hooked.tell(second)
    engine.manager._generation_step(processor)  # a step that it saw no beginning of
    processor.update_batch()
    state.status = "DECODING"
    processor.prepare_next_batch()
    engine.manager._generation_step(processor)
    processor.update_batch()
    assert engine.listener.of("step") == []
    ((_, index, begin, *_),) = second.of("step")
    assert index == 0
    assert begin >= before
    assert len(second.of("arrived")) == 1
