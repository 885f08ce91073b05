"""What bench_vllm measures in vLLM's own environment: our hooks around a real scheduler's real objects.

`python vllm_scheduler.py MODEL SPOOL ROUNDS CALLS`. A scheduler decodes as many sequences as asked for; one
step of it gives the objects, and the hooks are called on them again and again around methods that only hand
them out. What those cost without hooks is measured in the same round and taken off.
"""

import gc
import json
import sys
import time

import torch
from vllm import EngineArgs, SamplingParams
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

from phasetrace_agent import layout, rundir
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import Spool
from phasetrace_vllm.core import Core

BLOCK, BLOCKS = 128, 4096
SIZES = (1, 32, 256)


class Endless(Spool):
    """Starts its segment over instead of opening the next: a benchmark writes more than a disk holds."""

    def replace(self, full, length):
        full.used = layout.HEADER_BYTES
        return full


def scheduler(model: str) -> Scheduler:
    """A real one, with room for every sequence."""
    sizes = {"max_num_seqs": 256, "max_num_batched_tokens": 8192, "max_model_len": 512}
    config = EngineArgs(model, enforce_eager=True, dtype="float32", **sizes).create_engine_config()
    config.cache_config.num_gpu_blocks = BLOCKS
    attention = FullAttentionSpec(block_size=BLOCK, num_kv_heads=2, head_size=32, dtype=torch.float32)
    caches = KVCacheConfig(
        num_blocks=BLOCKS, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], attention)]
    )
    return Scheduler(config, caches, StructuredOutputManager(config), BLOCK)


def fill(real: Scheduler, core: Core, sequences: int) -> None:
    """As many requests, known to both."""
    for row in range(sequences):
        asked = SamplingParams(max_tokens=400, ignore_eos=True)
        asked.update_from_generation_config({}, 0)
        request = Request(f"request-{row}", [row] * 8, asked, None)
        real.add_request(request)
        core.batches(real).add(request.request_id)


def run(output: object) -> ModelRunnerOutput:
    """What a model runner would return: a token for each."""
    names = list(output.num_scheduled_tokens)
    return ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: row for row, name in enumerate(names)},
        sampled_token_ids=[[7] for _ in names],
    )


class Step:
    """The scheduler's part of an engine's step, with hooks where there is a core."""

    def __init__(self, core: Core | None, schedule, update) -> None:
        self.schedule = schedule if core is None else core.around_schedule(schedule)
        self.update = update if core is None else core.around_update(update)

    def take(self, real: Scheduler, run) -> tuple[object, ModelRunnerOutput, object]:
        """One step; what it was made of."""
        output = self.schedule(real, False)  # by position, as the engine core does
        ran = run(output)
        return output, ran, self.update(real, output, ran)


def hooked(real: Scheduler, core: Core, sequences: int, rounds: int, calls: int) -> list[float]:
    """Microseconds that a step's hooks add, by round."""
    fill(real, core, sequences)
    whole = Step(core, Scheduler.schedule, Scheduler.update_from_output)
    for _ in range(4):
        output, ran, result = whole.take(real, run)
    assert len(ran.sampled_token_ids) == len(core.batches(real).members.batch) == sequences
    empty = (lambda *_: output), (lambda *_: result)
    times = []
    for _ in range(rounds):
        without, with_hooks = (per_call(Step(hooks, *empty), real, ran, calls) for hooks in (None, core))
        times.append(with_hooks - without)
    return times


def per_call(step: Step, real: Scheduler, ran: ModelRunnerOutput, calls: int) -> float:
    """Microseconds of this thread's own time a step."""
    schedule, update = step.schedule, step.update
    gc.disable()
    begin = time.thread_time_ns()
    for _ in range(calls):
        output = schedule(real, False)
        update(real, output, ran)
    end = time.thread_time_ns()
    gc.enable()
    return (end - begin) / calls / 1000


def main() -> None:
    """Measure each size, and print the times as JSON."""
    model, folder, rounds, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    rundir.make_spool(folder)
    recorder = Recorder(Endless(folder))
    found = {}
    for sequences in SIZES:
        core = Core(recorder)
        found[sequences] = hooked(scheduler(model), core, sequences, rounds, calls)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
