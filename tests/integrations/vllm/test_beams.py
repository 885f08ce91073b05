"""A beam search in vLLM's frontend is one request, however many its frontend makes of it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_vllm import beams, frontend
from phasetrace_vllm.calls import current
from tests.integrations.vllm.fakes import Heard
from tests.integrations.vllm.test_frontend import OutputProcessor, asked, done

PARAMS = SimpleNamespace(beam_width=2, max_tokens=3)
BEAM = {"prompt": 4, "padding": 0, "output": 3, "reason": "length"}


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def processor(heard: Heard) -> Any:
    """A hooked processor of a class of its own."""
    kind = type("OutputProcessor", (), dict(vars(OutputProcessor)))
    frontend.hook_processor(heard, SimpleNamespace(OutputProcessor=kind))
    return kind()


def searched(processor: Any, abort: bool = False) -> None:
    """What a search asks of the engine: one request, then two at a time."""
    for step, rows in enumerate((1, 2, 2)):
        names = [f"{step}-{row}" for row in range(rows)]
        for name in names:
            processor.add_request(asked(name), None)
        if abort:
            processor.abort_requests(names)
        processor.process_outputs([done(name) for name in names if not abort])


def offline(heard: Heard, processor: Any) -> Any:
    class Mixin:
        def beam_search(self, prompts: Any, params: Any) -> Any:
            searched(processor)
            if prompts is None:
                raise ValueError
            beam = SimpleNamespace(
                orig_prompt={"prompt_token_ids": [1] * 4}, tokens=[1] * 7, finish_reason=None
            )
            return [SimpleNamespace(sequences=[beam, beam])]

    assert beams.hook_offline(heard, SimpleNamespace(BeamSearchOfflineMixin=Mixin)) == []
    return Mixin()


def online(heard: Heard, processor: Any) -> Any:
    class Mixin:
        async def beam_search(self, prompt: Any, request_id: str, params: Any) -> Any:
            await asyncio.create_task(asyncio.to_thread(searched, processor, prompt == "leave"))
            if prompt == "leave":
                raise asyncio.CancelledError
            choice = SimpleNamespace(token_ids=[1] * 3, finish_reason="length")
            yield SimpleNamespace(prompt_token_ids=[1] * 4, outputs=[choice, choice])

    assert beams.hook_online(heard, SimpleNamespace(BeamSearchOnlineMixin=Mixin)) == []
    return Mixin()


async def consume(generator: Any) -> int:
    return len([output async for output in generator])


def one_request(heard: Heard) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was said of the only request, at its arrival and in the end."""
    ((ident, _, arrived),) = heard.of("arrived")
    children = [detail["child"] for request, detail in heard.of("detail") if request == ident]
    assert children == ["0-0", "1-0", "1-1", "2-0", "2-1"]
    ((finished, _, told),) = heard.of("finished")
    assert finished == ident
    assert (arrived["mode"], arrived["settings"]) == ("beam", {"beam_width": 2, "max_tokens": 3})
    assert beams.searching.get() is None
    assert current.get() is None
    return arrived, told


def test_offline(heard: Heard, processor: Any) -> None:
    assert len(offline(heard, processor).beam_search(["prompt"], params=PARAMS)) == 1
    _, told = one_request(heard)
    assert (told["sequences"], told["reason"]) == ([BEAM, BEAM], "length")


def test_one_that_fails(heard: Heard, processor: Any) -> None:
    with pytest.raises(ValueError):
        offline(heard, processor).beam_search(None, PARAMS)
    _, told = one_request(heard)
    assert told == {"reason": "error", "error": "ValueError"}


def test_in_a_server(heard: Heard, processor: Any) -> None:
    assert asyncio.run(consume(online(heard, processor).beam_search("prompt", "r", params=PARAMS))) == 1
    _, told = one_request(heard)
    assert (told["sequences"], told["reason"]) == ([BEAM, BEAM], "length")


def test_a_client_of_a_server_that_goes_away(heard: Heard, processor: Any) -> None:
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(consume(online(heard, processor).beam_search("leave", "r", PARAMS)))
    _, told = one_request(heard)
    assert told == {"reason": "abort", "error": "aborted"}


def test_other_requests_are_no_part_of_a_search(heard: Heard, processor: Any) -> None:
    offline(heard, processor).beam_search(["prompt"], PARAMS)
    processor.add_request(asked("plain"), None)
    assert [data["external"] for _, _, data in heard.of("arrived")] == ["0-0", "plain"]
