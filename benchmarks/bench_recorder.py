"""What one engine step costs in the engine's process: the record, and the hooks of `generate()` around it.

The recorder writes into real spool segments. The hooks stand on an engine of empty methods, and what the
empty methods cost without hooks is measured in the same round and taken off.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

from benchmarks.figure import Figure, figure
from phasetrace_agent import clock, layout, rundir
from phasetrace_agent.hooking import wrap
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import Spool
from phasetrace_transformers import wrappers
from phasetrace_transformers.request import Request

FIXED_US, EACH_US = 2.0, 0.05  # the budget of a step, and of a scheduled sequence in it
CODES = (3, 4, 5, 6, 7)  # prepare, forward, update, logits, sampling: as many segments as a real step has
CHANGED = 8  # one sequence in so many joins, leaves or yields another number of tokens than one


def measure(quick: bool = False) -> Iterator[Figure]:
    """A figure a batch size, and one for a whole step of `generate()`."""
    yield from of_size(*((3, 500) if quick else (25, 4000)))


def of_size(rounds: int, calls: int) -> Iterator[Figure]:
    """The same with so many rounds of so many calls."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = new_recorder(Path(folder))
        for sequences in (1, 32, 256):
            budget = FIXED_US + EACH_US * sequences
            times = repeat(rounds, calls, plain_step(recorder))
            yield figure(f"step record, {sequences} sequences, none changed", times, "us", budget)
            times = repeat(rounds, calls, changed_step(recorder, sequences))
            yield figure(f"step record, {sequences} sequences, 1 in {CHANGED} changed", times, "us", budget)
            times = repeat(rounds, calls, full_step(recorder, sequences))
            yield figure(f"step record, {sequences} sequences, all changed", times, "us", budget)
        yield figure("all hooks of one generate() step", hooked_steps(recorder, rounds, calls), "us")


def new_recorder(folder: Path) -> Recorder:
    """One that writes into this folder, without end."""
    rundir.make_spool(folder / "spool")
    return Recorder(Endless(str(folder / "spool")))


class Endless(Spool):
    """Starts its segment over instead of opening the next: a benchmark writes more than a disk holds."""

    def replace(self, full, length):
        full.used = layout.HEADER_BYTES
        return full


def plain_step(recorder: Recorder) -> Callable[[int], None]:
    """A step in which no sequence did other than give one token: the usual one."""

    def step(index: int) -> None:
        now = clock.now()
        recorder.step(1, index, now, CODES, (now + 1, now + 2, now + 3, now + 4, now + 5))

    return step


def changed_step(recorder: Recorder, sequences: int) -> Callable[[int], None]:
    """A step in which some sequences joined, with their prompts, and as many left."""
    some = tuple(range(max(1, sequences // CHANGED)))
    prompts = tuple((ident, 256) for ident in some)

    def step(index: int) -> None:
        now = clock.now()
        recorder.step(
            1, index, now, CODES, (now + 1, now + 2, now + 3, now + 4, now + 5), some, some, prompts
        )

    return step


def full_step(recorder: Recorder, sequences: int) -> Callable[[int], None]:
    """A step that verified a speculation for every sequence: the worst there is."""
    pairs = tuple((ident, 4) for ident in range(sequences))

    def step(index: int) -> None:
        now = clock.now()
        recorder.step(
            1, index, now, CODES, (now + 1, now + 2, now + 3, now + 4, now + 5), (), (), pairs, pairs
        )

    return step


def hooked_steps(recorder: Recorder, rounds: int, calls: int) -> list[float]:
    """Microseconds that the hooks of a step add to an engine's empty methods."""
    plain, hooked = engine(False), engine(True)
    ids = SimpleNamespace(shape=(1, 100))
    request = Request(recorder, Model(), (), {"input_ids": None}, wrappers.thread)
    times = []
    for _ in range(rounds):
        without = each(calls, lambda _: plain(ids))
        wrappers.thread.request = request
        try:
            times.append(each(calls, lambda _: hooked(ids)) - without)
        finally:
            wrappers.thread.request = None
    return times


def engine(hooked: bool) -> Callable[[object], None]:
    """A step of an engine that does nothing, with hooks or without."""

    class Mixin:
        def prepare_inputs_for_generation(self, input_ids, **kwargs):
            return {"input_ids": input_ids}

        def _update_model_kwargs_for_generation(self, outputs, model_kwargs, **kwargs):
            return model_kwargs

    class Processors:
        def __call__(self, input_ids, scores):
            return scores

    class Criteria:
        def __call__(self, input_ids, scores, **kwargs):
            return False

    if hooked:
        wrap(Mixin, "prepare_inputs_for_generation", wrappers.around_prepare)
        wrap(Mixin, "_update_model_kwargs_for_generation", wrappers.around_update)
        wrap(Processors, "__call__", wrappers.around_processors)
        wrap(Criteria, "__call__", wrappers.around_criteria)
    instance, processors, criteria = Mixin(), Processors(), Criteria()
    known: dict[str, object] = {}

    def step(ids: object) -> None:
        instance.prepare_inputs_for_generation(ids, use_cache=True)
        instance._update_model_kwargs_for_generation(None, known, is_encoder_decoder=False)
        processors(ids, None)
        criteria(ids, None)

    return step


class Model:
    """As much of a model as a request looks at."""

    config = SimpleNamespace(is_encoder_decoder=False)
    generation_config = SimpleNamespace()

    def parameters(self):
        return ()


def repeat(rounds: int, calls: int, step: Callable[[int], None]) -> list[float]:
    """Microseconds a call, of each round."""
    return [each(calls, step) for _ in range(rounds)]


def each(calls: int, step: Callable[[int], None]) -> float:
    """Microseconds a call. Of this thread's own time: others on the machine are not the recorder's cost."""
    gc.disable()
    begin = time.thread_time_ns()
    for index in range(calls):
        step(index)
    end = time.thread_time_ns()
    gc.enable()
    return (end - begin) / calls / 1000
