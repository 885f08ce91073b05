"""A service around vLLM, for the applications beside it: a small model, and requests that arrive over time.

The engine is `AsyncLLM` as a server has it, with its core in a process of its own. What the service prints at
the end was taken with its own clock.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
# The worker shares the process of the core: one less to start
os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

from small_model import make_model, make_tokenizer
from vllm import AsyncEngineArgs, SamplingParams
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

SMALL = {"hidden": 256, "layers": 4, "heads": 4, "kv_heads": 2}  # a step is mostly what it costs in any case
LARGER = {"hidden": 768, "layers": 4, "heads": 12, "kv_heads": 4}  # reading the weights is most of a step


@dataclass(frozen=True)
class Ask:
    """A request: what it says, how many tokens it wants back, and when it comes, in seconds."""

    prompt: str
    tokens: int
    at: float = 0.0
    stream: bool = True
    sampling: dict[str, Any] = field(default_factory=dict)


def start(size: dict[str, int], **knobs: Any) -> AsyncLLM:
    """An engine with a model of this size, which is made on the spot."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = make_tokenizer()
        make_model(tokenizer, **size).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        told = {"dtype": "float32", "enforce_eager": True, "max_model_len": 4096, **knobs}
        return AsyncLLM.from_engine_args(AsyncEngineArgs(folder, served_model_name="small", **told))


async def answer(engine: AsyncLLM, name: str, ask: Ask) -> tuple[float, float]:
    """TTFT and end-to-end time of a request, as its user sees them."""
    kind = RequestOutputKind.DELTA if ask.stream else RequestOutputKind.FINAL_ONLY
    settings = {"temperature": 0, "ignore_eos": True, **ask.sampling}
    sent, first = time.monotonic(), 0.0
    sampling = SamplingParams(max_tokens=ask.tokens, output_kind=kind, **settings)
    async for _ in engine.generate(ask.prompt, sampling, name):
        first = first or time.monotonic() - sent
    return first, time.monotonic() - sent


async def serve(engine: AsyncLLM, asks: Iterable[Ask], users: int = 1_000, name: str = "ask") -> float:
    """Answer all, print how that went, and return how long it took.

    A request is sent when its time has come and one of the users is not waiting for an answer.
    """
    begin, free = time.monotonic(), asyncio.Semaphore(users)

    async def send(number: int, ask: Ask) -> tuple[float, float]:
        await asyncio.sleep(max(0.0, begin + ask.at - time.monotonic()))
        async with free:
            return await answer(engine, f"{name}-{number}", ask)

    times = await asyncio.gather(*(send(number, ask) for number, ask in enumerate(asks)))
    took = time.monotonic() - begin
    first, whole = (statistics.mean(part) for part in zip(*times, strict=True))
    print(f"answered {len(times)} in {took:.2f} s: TTFT {first:.3f} s, end to end {whole:.3f} s on average")
    return took


def run(engine: AsyncLLM, asks: Iterable[Ask], users: int = 1_000) -> None:
    """Answer all requests, and end."""
    asyncio.run(serve(engine, asks, users))
    engine.shutdown()
