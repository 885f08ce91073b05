"""A program that uses vLLM without a server: `vllm_in_process.py offline|async MODEL TOLD [REQUESTS]`.

100 requests, or so many, of mixed prompts and outputs, more at a time than the engine runs. TOLD gets what
the engine's own statistics say of each, and a stopwatch around each streamed answer. Nothing here knows
phasetrace.
"""

import asyncio
import json
import random
import sys
import time

from vllm import LLM, AsyncEngineArgs, SamplingParams

ENGINE = {
    "enforce_eager": True,
    "max_model_len": 512,
    "dtype": "float32",
    "disable_log_stats": False,
}
SLOTS = 2  # and requests come much faster than so few can serve on any machine
RATE = 150  # a second


def workload(requests):
    """Prompts with what is asked for them; the same each time."""
    draw = random.Random(7)
    for row in range(requests):
        prompt = f"{row} " + "The river rises " * draw.choice((1, 8, 40))
        yield prompt, SamplingParams(max_tokens=draw.randint(2, 40), temperature=0, ignore_eos=True)


def statistics(stats):
    """In seconds."""
    return {
        "queue": stats.scheduled_ts - stats.queued_ts,
        "prefill": stats.first_token_ts - stats.scheduled_ts,
        "decode": stats.last_token_ts - stats.first_token_ts,
        "tokens": stats.num_generation_tokens,
    }


def offline(model, requests):
    """All at once, in a cache so small that requests lose their place."""
    llm = LLM(model, num_gpu_blocks_override=12, enable_prefix_caching=False, max_num_seqs=8, **ENGINE)
    prompts, asked = zip(*workload(requests), strict=True)
    answers = llm.generate(list(prompts), list(asked), use_tqdm=False)
    return [{"id": answer.request_id, **statistics(answer.metrics)} for answer in answers]


async def streaming(model, requests):
    """As they come, each streamed."""
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM

    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model, max_num_seqs=SLOTS, **ENGINE))
    found = []

    async def ask(row, prompt, asked):
        asked.output_kind = RequestOutputKind.DELTA
        begin = time.monotonic()
        times, stats = [], None
        async for output in engine.generate(prompt, asked, f"r{row}"):
            times.append(time.monotonic() - begin)
            stats = output.metrics
        watched = {"ttft": times[0], "e2e": times[-1]}
        found.append({"id": f"r{row}", **statistics(stats), **watched})

    async with asyncio.TaskGroup() as tasks:
        draw = random.Random(8)
        for row, (prompt, asked) in enumerate(workload(requests)):
            tasks.create_task(ask(row, prompt, asked))
            await asyncio.sleep(draw.expovariate(RATE))
    engine.shutdown()
    return found


if __name__ == "__main__":
    how, model, path, *more = sys.argv[1:]
    requests = int(more[0]) if more else 100
    told = offline(model, requests) if how == "offline" else asyncio.run(streaming(model, requests))
    with open(path, "w") as file:
        json.dump(told, file)
