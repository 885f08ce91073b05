"""A request's life, told to a recorder that listens."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_agent import prefix
from phasetrace_agent.device_clock import POOL, DeviceClock
from phasetrace_agent.hooking import Hook
from phasetrace_transformers import device, hooks, parent, request, wrappers
from phasetrace_transformers.device import Device, HostCopies
from phasetrace_transformers.request import Request
from tests.integrations.transformers.fakes import FakeModel, FakeTensor, OnDevice, Pinned, Slow

ALONE = SimpleNamespace(chat=False, in_pipeline=False, tokenize=None)


class Listener:
    """Takes the recorder's verbs; what is said of a request is merged as the assembler does."""

    def __init__(self) -> None:
        self.count = 0
        self.data: dict[str, Any] = {}
        self.steps: list[Any] = []
        self.devices: list[Any] = []
        self.prefixes: list[Any] = []

    def next_id(self) -> int:
        self.count += 1
        return self.count

    def facts(self, scope: int, key: int, data: Mapping[str, Any]) -> None: ...

    def arrived(self, ident: int, time: int, data: Mapping[str, Any]) -> None:
        self.data.update(data, arrived=time)

    def detail(self, ident: int, data: Mapping[str, Any]) -> None:
        self.data.update(data)

    def finished(self, ident: int, time: int, data: Mapping[str, Any]) -> None:
        self.data.update(data, finished=time)

    def prefix(self, *args: Any) -> None:
        self.prefixes.append(args)

    def step(self, *args: Any) -> None:
        self.steps.append(args)

    def device(self, *args: Any) -> None:
        self.devices.append(args)


@pytest.fixture(autouse=True)
def salted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "salt", lambda recorder: b"s" * 16)


def made(listener: Any, model: FakeModel, *args: Any, before: Any = ALONE, **kwargs: Any) -> Request:
    return Request(listener, model, args, kwargs, before)


def one_token(told: Request, width: int) -> None:
    at = told.timeline.last
    told.forward_begins()
    told.timeline.prepared(at + 1, at + 2, 1, width, width)
    told.forward_ended()
    told.timeline.updated_kwargs(at + 3, at + 4)
    told.timeline.judged(at + 5, at + 6, width + 1)


def test_a_request_on_the_host() -> None:
    listener = Listener()
    told = made(listener, FakeModel(eos_token_id=2, max_new_tokens=4), FakeTensor([[7, 8, 9]]))
    one_token(told, 3)
    told.finished(told.timeline.last + 50, FakeTensor([[7, 8, 9, 2]]), None)
    assert listener.data["sequences"] == [{"prompt": 3, "padding": 0, "output": 1, "reason": "stop"}]
    assert (listener.data["reason"], listener.data["mode"], listener.data["cached"]) == ("stop", "greedy", 0)
    assert listener.prefixes[0][:2] == (told.id, 0)
    assert len(listener.steps) == 1


def test_what_lies_on_a_device_is_told_when_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, listener = Slow(), Listener()
    place = Device(DeviceClock(slow.event, listener.device), HostCopies(Pinned([], (64,)), slow.event))
    monkeypatch.setattr(device, "of", lambda kind, done: place)
    mask, ids = OnDevice([[0, 1, 1]]), OnDevice([[0, 8, 9]])
    told = made(listener, FakeModel(eos_token_id=2), ids, attention_mask=mask)
    assert "sequences" not in listener.data
    one_token(told, 3)
    told.finished(told.timeline.last + 50, OnDevice([[0, 8, 9, 2]]), None)
    told.let_go()
    assert "sequences" not in listener.data
    assert listener.devices == []
    slow.done = slow.given
    place.poll()
    assert listener.data["sequences"] == [{"prompt": 2, "padding": 1, "output": 1, "reason": "stop"}]
    assert [entry[:2] for entry in listener.devices] == [(told.id, 0)]
    assert listener.prefixes[0][3] == [2], "padding is no part of the prompt"


def test_an_error_is_told_by_its_type_alone() -> None:
    listener = Listener()
    told = made(listener, FakeModel(), FakeTensor([[7]]))
    told.finished(told.timeline.last + 50, None, KeyError("a secret"))
    assert (listener.data["reason"], listener.data["error"]) == ("error", "KeyError")
    assert "secret" not in str(listener.data)


def test_the_application_s_span_is_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    span = {"trace": "a" * 32, "span": "b" * 16, "begin_wall": 5}
    monkeypatch.setattr(parent, "active_span", lambda: span)
    listener = Listener()
    first = made(listener, FakeModel(), FakeTensor([[7]]))
    assert listener.data["parent"] == span
    end = first.timeline.last + 50
    first.finished(end, FakeTensor([[7, 8]]), None)
    made(listener, FakeModel(), FakeTensor([[7]]))
    assert listener.data["frontend_begin"] == end


def test_tokenising_belongs_to_a_pipeline_s_own_request() -> None:
    pipeline = SimpleNamespace(chat=True, in_pipeline=True, tokenize=[1, 2])
    inside, outside = Listener(), Listener()
    made(inside, FakeModel(), FakeTensor([[7]]), before=pipeline)
    pipeline.in_pipeline = False
    made(outside, FakeModel(), FakeTensor([[7]]), before=pipeline)
    assert (inside.data["tokenize"], inside.data["operation"]) == ([1, 2], "chat")
    assert "tokenize" not in outside.data
    assert outside.data["operation"] == "text_completion"


def test_let_go_keeps_no_tensor() -> None:
    ids = FakeTensor([[7]])
    told = made(Listener(), FakeModel(), ids, attention_mask=ids)
    told.finished(told.timeline.last + 50, FakeTensor([[7, 8]]), None)
    told.let_go()
    assert told.call.arguments == {}


@pytest.mark.parametrize("fails", ["the request", "hashing"])
def test_let_go_keeps_no_prompt(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def failing(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(request, "PREFIX", Hook("test"))
    monkeypatch.setattr(request.prefix, "chunks", failing)
    told = made(Listener(), FakeModel(), FakeTensor([[7]]))
    assert told.ids == [[7]]
    if fails == "hashing":
        told.finished(told.timeline.last + 50, FakeTensor([[7, 8]]), None)
        assert not request.PREFIX.on
    told.let_go()
    assert told.ids is None


def test_every_chunk_of_a_prompt_has_its_device_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, listener = Slow(), Listener()
    place = Device(DeviceClock(slow.event, listener.device), HostCopies(Pinned([], (64,)), slow.event))
    monkeypatch.setattr(device, "of", lambda kind, done: place)
    chunks = POOL + 10
    told = made(listener, FakeModel(), FakeTensor([[7] * 2 * chunks]))
    for _ in range(chunks):
        slow.done = slow.given
        at = told.timeline.last
        told.forward_begins()
        told.timeline.prepared(at + 1, at + 2, 1, 2, 2 * chunks)
    told.forward_ended()
    slow.done = slow.given
    place.poll()
    assert [entry[:2] for entry in listener.devices] == [(told.id, index) for index in range(chunks)]


def test_a_forked_child_tells_nothing_of_its_parents_call(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener()
    told = made(listener, FakeModel(), FakeTensor([[1, 2, 3]]))
    monkeypatch.setattr(wrappers.thread, "request", told)
    one_token(told, 3)
    wrappers.forked()
    assert wrappers.thread.request is None  # what it calls now is a request of its own
    one_token(told, 4)
    hooks.end(told, told.timeline.last + 1, None, None)
    assert len(listener.steps) == 1
    assert "finished" not in listener.data
