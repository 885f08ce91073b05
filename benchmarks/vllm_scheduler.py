"""What bench_vllm measures in vLLM's own environment: our hooks around a real scheduler's real objects.

`python vllm_scheduler.py MODEL SPOOL ROUNDS CALLS`. A scheduler decodes as many sequences as asked for.

Where nothing changes: one step of it gives the objects, and the hooks are called on them again and again
around methods that only hand them out. What those cost without hooks is measured in the same round and taken
off. As in a service: the scheduler goes on, requests end after 16 to 384 tokens and another comes for each;
the time of its own methods is taken off, and so is what reading the clock takes. There the hooks find the
caches as the scheduler left them, and whoever comes or goes has marks of his own to be written.
"""

import gc
import itertools
import json
import random
import statistics
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
METHODS = Scheduler.schedule, Scheduler.update_from_output, Scheduler._free_request


class Endless(Spool):
    """Starts its segment over instead of opening the next: a benchmark writes more than a disk holds."""

    def replace(self, full, length):
        full.used = layout.HEADER_BYTES
        return full


def scheduler(model: str) -> Scheduler:
    """A real one, with room for every sequence."""
    sizes = {"max_num_seqs": 256, "max_num_batched_tokens": 8192, "max_model_len": 512}
    knobs = {"enforce_eager": True, "dtype": "float32", "enable_prefix_caching": False}
    config = EngineArgs(model, **knobs, **sizes).create_engine_config()
    config.cache_config.num_gpu_blocks = BLOCKS
    attention = FullAttentionSpec(block_size=BLOCK, num_kv_heads=2, head_size=32, dtype=torch.float32)
    caches = KVCacheConfig(
        num_blocks=BLOCKS, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], attention)]
    )
    return Scheduler(config, caches, StructuredOutputManager(config), BLOCK)


def fill(real: Scheduler, core: Core, sequences: int) -> None:
    """As many requests, known to both."""
    for row in range(sequences):
        arrive(real, core, f"request-{row}", 400)


def arrive(real: Scheduler, core: Core | None, name: str, tokens: int) -> None:
    """A request that wants so many tokens."""
    asked = SamplingParams(max_tokens=tokens, ignore_eos=True)
    asked.update_from_generation_config({}, 0)
    real.add_request(Request(name, [7] * 8, asked, None))
    if core is not None:
        core.batches(real).add(name)


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


class Meter:
    """Time in the hooks around a method: that of the whole call, less that of the method itself."""

    def __init__(self) -> None:
        self.ns = 0

    def between(self, around, method):
        """`method` with the hooks of `around`, metered."""
        clock = time.perf_counter_ns

        def inner(*args):
            begin = clock()
            result = method(*args)
            self.ns -= clock() - begin
            return result

        hooked = around(inner)

        def outer(*args):
            begin = clock()
            result = hooked(*args)
            self.ns += clock() - begin
            return result

        return outer


def served(real: Scheduler, core: Core | None, sequences: int, steps: int) -> dict[str, list[float]]:
    """Microseconds of each step in the hooks (without a core: in the meter itself), by what it changed."""
    meter, lengths, numbers = Meter(), random.Random(sequences), itertools.count()
    arounds = (
        (core.around_schedule, core.around_update, core.around_free) if core else (lambda method: method,) * 3
    )
    schedule, update, free = map(meter.between, arounds, METHODS)
    Scheduler._free_request = free  # which the scheduler itself calls
    found = {"nobody comes or goes": [], "somebody comes or goes": []}
    before = set()
    gc.disable()
    for _ in range(steps):
        for _ in range(sequences - len(real.requests)):
            arrive(real, core, f"request-{next(numbers)}", lengths.randint(16, 384))
        meter.ns = 0
        output = schedule(real, False)
        update(real, output, run(output))
        same = before == set(output.num_scheduled_tokens) == set(real.requests)
        found["nobody comes or goes" if same else "somebody comes or goes"].append(meter.ns / 1000)
        before = set(real.requests)
    gc.enable()
    return found


def in_service(model: str, recorder: Recorder, sequences: int, steps: int) -> dict[str, list[float]]:
    """The same less the meter's own, from when the batch had filled."""
    without = served(scheduler(model), None, sequences, steps)
    meters = statistics.median(time for times in without.values() for time in times)
    found = served(scheduler(model), Core(recorder), sequences, steps)
    return {how: [time - meters for time in times[len(times) // 5 :]] for how, times in found.items()}


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
        found[sequences] = {
            "none changed": hooked(scheduler(model), core, sequences, rounds, calls),
            **in_service(model, recorder, sequences, calls),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
