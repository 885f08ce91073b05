"""How long a worker took for each step, without vLLM; on a fake device, not verified on a GPU."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_vllm import executions
from phasetrace_vllm.executions import Executions
from tests.integrations.transformers.fakes import Slow
from tests.integrations.vllm.fakes import Heard


class Worker:
    """A worker that takes the times that a test sets, on a clock that the test owns."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = SimpleNamespace(type=device)

    def execute_model(self, scheduler_output: Any) -> Any:
        CLOCK.now += 100
        return scheduler_output.returns

    def sample_tokens(self, grammar_output: Any) -> str:
        CLOCK.now += 7
        return "sampled"


CLOCK = SimpleNamespace(now=1000)


def step(tokens: int, returns: Any = None) -> Any:
    """What the engine core sends."""
    return SimpleNamespace(total_num_scheduled_tokens=tokens, returns=returns)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """What is heard of the class above once it is hooked."""
    heard = Heard()
    made = Executions(heard)
    CLOCK.now = 1000
    monkeypatch.setattr(executions, "now", lambda: CLOCK.now)
    monkeypatch.setattr(executions.EXECUTE, "on", True)
    monkeypatch.setattr(Worker, "execute_model", made.around_execute(Worker.execute_model))
    monkeypatch.setattr(Worker, "sample_tokens", made.around_sample(Worker.sample_tokens))
    return heard


def test_a_step_is_computed_and_sampled(heard: Heard) -> None:
    worker = Worker()
    assert worker.execute_model(step(8)) is None
    assert heard.of("execution") == []
    CLOCK.now += 5000  # the engine core makes masks
    assert worker.sample_tokens(grammar_output=None) == "sampled"
    assert heard.of("execution") == [(0, 8, 1000, 6107, 107)]


def test_a_step_whose_model_gives_the_tokens_itself(heard: Heard) -> None:
    worker = Worker()
    assert worker.execute_model(scheduler_output=step(3, "tokens")) == "tokens"
    assert heard.of("execution") == [(0, 3, 1000, 1100, 100)]


def test_empty_steps_are_counted_and_not_told(heard: Heard) -> None:
    worker = Worker()
    worker.execute_model(step(0))
    worker.sample_tokens(None)
    worker.execute_model(step(2, "tokens"))
    assert [said[:2] for said in heard.of("execution")] == [(1, 2)]


def test_each_engine_of_a_process_has_a_count_of_its_own(heard: Heard) -> None:
    first, second = Worker(), Worker()
    for worker in (first, first, second, first):
        worker.execute_model(step(2))
        worker.sample_tokens(None)
    assert [said[0] for said in heard.of("execution")] == [0, 1, 0, 2]


def test_on_a_device_it_is_told_when_the_device_is_done(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Slow()
    torch = SimpleNamespace(fake=SimpleNamespace(Event=lambda enable_timing: device.event()))
    monkeypatch.setitem(sys.modules, "torch", torch)
    worker = Worker("fake")
    worker.execute_model(step(4))
    worker.sample_tokens(None)
    assert heard.of("execution") == []
    device.done = device.given
    worker.execute_model(step(5))
    worker.sample_tokens(None)
    assert heard.of("execution") == [(0, 4, 1000, 1107, 1_000_000)]


def test_a_failed_step_fails_as_before(heard: Heard) -> None:
    worker = Worker()
    with pytest.raises(AttributeError):
        worker.execute_model(SimpleNamespace(total_num_scheduled_tokens=1))
    assert heard.of("execution") == []
    assert executions.EXECUTE.on
