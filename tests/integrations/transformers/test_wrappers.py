"""The wrappers around an engine's methods: nothing of ours reaches the application."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_transformers import wrappers
from phasetrace_transformers.timeline import Timeline

IDS = SimpleNamespace(shape=(1, 5))
WRAPPERS = {
    "PREPARE": wrappers.around_prepare,
    "UPDATE": wrappers.around_update,
    "LOGITS": wrappers.around_processors,
    "CRITERIA": wrappers.around_criteria,
    "STREAM": wrappers.around_streamer,
    "ENCODE": wrappers.around_encoder,
    "DRAFT": wrappers.around_draft,
}


@pytest.fixture(autouse=True)
def fresh_hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in WRAPPERS:
        monkeypatch.setattr(getattr(wrappers, name), "on", True)
    yield
    wrappers.thread.request = None


def in_request(timeline: Any) -> Any:
    request = SimpleNamespace(
        busy=False, device=None, timeline=timeline, call=SimpleNamespace(encoder_decoder=True)
    )
    wrappers.thread.request = request  # type: ignore[assignment]
    return request


class Broken:
    """A timeline of which every method fails."""

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError("a fault of ours")


def method(make: Callable[..., Any], result: Any = None) -> Callable[..., Any]:
    return make(lambda self, *args, **kwargs: {"input_ids": IDS} if result is None else result)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_fault_of_ours_turns_off_one_hook_and_nothing_else(name: str) -> None:
    in_request(Broken())
    wrapped = method(WRAPPERS[name])
    for _ in range(3):
        assert wrapped(object(), IDS) == {"input_ids": IDS}
    assert [hook for hook in WRAPPERS if not getattr(wrappers, hook).on] == [name]


@pytest.mark.parametrize("name", WRAPPERS)
def test_the_application_s_error_passes_and_hooks_go_on(name: str) -> None:
    request = in_request(Timeline(0, lambda *_: None))

    def failing(self: Any, ids: Any) -> None:
        raise LookupError("the application's own")

    wrapped = WRAPPERS[name](failing)
    with pytest.raises(LookupError, match="the application's own"):
        wrapped(object(), IDS)
    assert not request.busy
    assert all(getattr(wrappers, hook).on for hook in WRAPPERS)


@pytest.mark.parametrize("name", WRAPPERS)
def test_outside_of_a_request_a_call_passes_through(name: str) -> None:
    assert method(WRAPPERS[name], result=7)(object(), "no ids at all") == 7


def test_a_hook_inside_a_hook_belongs_to_the_outer_one() -> None:
    steps: list[Any] = []
    request = in_request(Timeline(0, lambda *step: steps.append(step)))
    inner = method(wrappers.around_prepare)
    outer = wrappers.around_draft(lambda self, ids: inner(self, ids))
    outer(object(), IDS)
    assert not request.timeline.forwarded, "the draft model's own forward is drafting"
    inner(object(), IDS)
    assert request.timeline.forwarded


def test_threads_have_requests_of_their_own() -> None:
    import threading

    in_request(Timeline(0, lambda *_: None))
    seen: list[Any] = []
    worker = threading.Thread(target=lambda: seen.append(wrappers.thread.request))
    worker.start()
    worker.join()
    assert seen == [None]
