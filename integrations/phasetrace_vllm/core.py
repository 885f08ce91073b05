"""What is wrapped in the process of the engine core: where a request comes in, and the scheduler's verbs."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock, layout, prefix
from phasetrace_agent.hooking import Hook, argument, wrap
from phasetrace_agent.recorder import Recorder

from . import extract, facts
from .batches import Batches
from .members import Known

Function = Callable[..., Any]
now = clock.now

START = Hook("vllm.start")
RECEIVE = Hook("vllm.receive")
STEP = Hook("vllm.step")

_SCHEDULER = ("add_request", "schedule", "update_from_output", "_free_request", "_preempt_request")


def hook_core(recorder: Recorder, module: Any) -> list[str]:
    """Wrap `EngineCore`; the names that are not where they are expected come back."""
    missing = [name for name in ("preprocess_add_request",) if name not in vars(module.EngineCore)]
    if missing:
        return missing
    core = core_of(recorder)
    wrap(module.EngineCore, "__init__", core.around_init)
    wrap(module.EngineCore, "preprocess_add_request", core.around_preprocess)
    return []


def hook_scheduler(recorder: Recorder, module: Any) -> list[str]:
    """Wrap `Scheduler`; the asynchronous one inherits all of this."""
    scheduler = module.Scheduler
    missing = [name for name in _SCHEDULER if name not in vars(scheduler)]
    if missing:
        return missing
    core = core_of(recorder)
    wrap(scheduler, "add_request", core.around_add)
    wrap(scheduler, "schedule", core.around_schedule)
    wrap(scheduler, "update_from_output", core.around_update)
    wrap(scheduler, "_free_request", core.around_free)
    wrap(scheduler, "_preempt_request", core.around_preempt)
    return []


def hook_grammar(recorder: Recorder, module: Any) -> list[str]:
    """Wrap where masks for structured output are made."""
    wrap(module.StructuredOutputManager, "grammar_bitmask", core_of(recorder).around_grammar)
    return []


_cores: list[Core] = []


def _nobody() -> None:
    """What a reference to no scheduler gives."""


def core_of(recorder: Recorder) -> Core:
    """The one of this process."""
    if not _cores:
        _cores.append(Core(recorder))
    return _cores[0]


class Core:
    """All schedulers of this process; there is one, but for tests and in-process engines."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._batches: weakref.WeakKeyDictionary[Any, Batches] = weakref.WeakKeyDictionary()
        # The scheduler asked for last, if it lives, and its steps: one object, since threads may ask at once
        self._latest: tuple[Callable[[], Any], Batches] = _nobody, Batches(recorder)

    def batches(self, scheduler: Any) -> Batches:
        """The steps of this scheduler."""
        latest = self._latest
        if latest[0]() is scheduler:
            return latest[1]
        found = self._batches.get(scheduler)
        if found is None:
            found = self._batches.setdefault(scheduler, Batches(self.recorder))
        self._latest = weakref.ref(scheduler), found
        return found

    # ---- requests

    def around_init(self, original: Function) -> Function:
        """Facts are told once the engine stands, since the knobs asked for are not those in effect."""

        def __init__(engine: Any, /, *args: Any, **kwargs: Any) -> None:
            begin = now()
            original(engine, *args, **kwargs)
            if START.on and self.recorder.enabled:
                try:
                    self.recorder.stage("engine-start", begin, now())
                    facts.tell(self.recorder, engine.vllm_config, self.batches(engine.scheduler).stream)
                    self.recorder.facts(
                        layout.ENGINE, facts.ENGINE_KEY, {"engine": "vllm", "role": "engine core"}
                    )
                except Exception as error:
                    START.fail(error)

        return __init__

    def around_preprocess(self, original: Function) -> Function:
        """A request reaches the engine core, in the thread that reads its socket."""

        def preprocess_add_request(engine: Any, /, *args: Any, **kwargs: Any) -> Any:
            entered = now()
            result = original(engine, *args, **kwargs)
            if RECEIVE.on and self.recorder.enabled:
                try:
                    request = argument(args, kwargs, 0, "request")
                    known = self._received(self.batches(engine.scheduler), request, entered)
                    if known is not None:
                        self._awaits_grammar(known, result[0])
                        self._hash_prompt(known, request)
                except Exception as error:
                    RECEIVE.fail(error)
            return result

        return preprocess_add_request

    def _received(self, batches: Batches, request: Any, time: int) -> Known | None:
        if request.sampling_params is None or request.request_id in batches.requests:
            return None  # pooling, or more input for a request that streams its prompt
        known = batches.add(request.request_id)
        data = extract.arrival(request)
        data.update(side="core", stream=batches.stream, model=batches.stream)  # each has one of its own
        self.recorder.arrived(known.id, time, data)
        self.recorder.mark(known.id, layout.RECEIVED, time)
        return known

    def _awaits_grammar(self, known: Known, request: Any) -> None:
        """Structured output waits for its grammar, which a thread of vLLM's compiles."""
        wanted = getattr(request, "structured_output_request", None)
        future = getattr(wanted, "_grammar", None)
        add_done_callback = getattr(future, "add_done_callback", None)
        if add_done_callback is not None:
            add_done_callback(lambda _: self.recorder.mark(known.id, layout.GRAMMAR_READY, now()))

    def _hash_prompt(self, known: Known, request: Any) -> None:
        """In the thread that reads the socket: the engine's own loop goes on beside it."""
        secret = prefix.salt(self.recorder)
        tokens = getattr(request, "prompt_token_ids", None)
        if secret and tokens:
            self.recorder.prefix(known.id, 0, *prefix.chunks(tokens, secret))

    def around_add(self, original: Function) -> Function:
        """The scheduler has it: till then it waited for the step that was running."""

        def add_request(scheduler: Any, /, *args: Any, **kwargs: Any) -> Any:
            if RECEIVE.on and self.recorder.enabled:
                try:
                    time = now()
                    request = argument(args, kwargs, 0, "request")
                    batches = self.batches(scheduler)
                    known = batches.requests.get(request.request_id)
                    if known is None:
                        known = self._received(batches, request, time)
                    if known is not None and not known.scheduled:
                        self.recorder.mark(known.id, layout.QUEUED, time)
                except Exception as error:
                    RECEIVE.fail(error)
            return original(scheduler, *args, **kwargs)

        return add_request

    def around_free(self, original: Function) -> Function:
        """The scheduler is done with a request, whatever the reason."""

        def _free_request(scheduler: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = original(scheduler, *args, **kwargs)
            if STEP.on and self.recorder.enabled:
                try:
                    self.batches(scheduler).ended(argument(args, kwargs, 0, "request"), now())
                except Exception as error:
                    STEP.fail(error)
            return result

        return _free_request

    def around_preempt(self, original: Function) -> Function:
        """A request loses its place."""

        def _preempt_request(scheduler: Any, /, *args: Any, **kwargs: Any) -> Any:
            if STEP.on and self.recorder.enabled:
                try:
                    request = argument(args, kwargs, 0, "request")
                    self.batches(scheduler).preempted(request.request_id, now())
                except Exception as error:
                    STEP.fail(error)
            return original(scheduler, *args, **kwargs)

        return _preempt_request

    # ---- steps

    def around_schedule(self, original: Function) -> Function:
        """A step is put together."""
        recorder = self.recorder

        def schedule(scheduler: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not STEP.on or not recorder.enabled:
                return original(scheduler, *args, **kwargs)
            begin = now()
            try:
                latest = self._latest
                batches = latest[1] if latest[0]() is scheduler else self.batches(scheduler)
                batches.scheduling = begin
            except Exception as error:
                STEP.fail(error)
                return original(scheduler, *args, **kwargs)
            if len(args) == 1 and not kwargs:  # as vLLM calls it: to unpack takes 100 ns more
                output = original(scheduler, args[0])
            else:
                output = original(scheduler, *args, **kwargs)
            try:
                batches.scheduled(scheduler, output, begin, now())
            except Exception as error:
                STEP.fail(error)
            return output

        return schedule

    def around_grammar(self, original: Function) -> Function:
        """Masks for structured output, made for the step that was scheduled last; else this is not called."""

        def grammar_bitmask(manager: Any, /, *args: Any, **kwargs: Any) -> Any:
            begin = now()
            masks = original(manager, *args, **kwargs)
            if STEP.on and self.recorder.enabled:
                try:
                    for scheduler, batches in list(self._batches.items()):
                        if getattr(scheduler, "structured_output_manager", None) is manager:
                            batches.masked(begin, now())
                except Exception as error:
                    STEP.fail(error)
            return masks

        return grammar_bitmask

    def around_update(self, original: Function) -> Function:
        """A step's tokens are out where this ends."""

        def update_from_output(scheduler: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not STEP.on:  # with recording off nothing was scheduled that we know of
                return original(scheduler, *args, **kwargs)
            begin = now()
            try:
                latest = self._latest
                batches = latest[1] if latest[0]() is scheduler else self.batches(scheduler)
                if len(args) == 2:
                    output, ran = args
                else:
                    output = argument(args, kwargs, 0, "scheduler_output")
                    ran = argument(args, kwargs, 1, "model_runner_output")
                batches.updating = True
                if output.scheduled_spec_decode_tokens:
                    batches.speculated(ran)
            except Exception as error:
                STEP.fail(error)
                return original(scheduler, *args, **kwargs)
            try:
                if len(args) == 2 and not kwargs:
                    result = original(scheduler, output, ran)
                else:
                    result = original(scheduler, *args, **kwargs)
            finally:
                batches.updating = False
            try:
                batches.updated(scheduler, output, ran, result, begin, now())
            except Exception as error:
                STEP.fail(error)
            return result

        return update_from_output
