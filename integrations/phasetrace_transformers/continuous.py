"""Continuous batching (`generate_batch` and its manager): requests with a real queue, steps with a batch.

The engine runs in a thread of its own, so nothing here is thread-local: a request is known by the engine's
name for it. It arrives when the engine made its state, since from then on it stands in the engine's queue.
"""

from __future__ import annotations

import sys

from phasetrace_agent.hooking import wrap
from phasetrace_agent.recorder import Recorder

from .continuous_requests import Requests
from .continuous_steps import Steps

MODULE = "transformers.generation.continuous_batching"

_engine: Engine | None = None


def hook_continuous(recorder: Recorder) -> None:
    """Wrap the manager, the processor and the scheduler, where this version has them."""
    global _engine
    api = sys.modules.get(MODULE + ".continuous_api")
    scheduler = sys.modules.get(MODULE + ".scheduler")
    if api is None or scheduler is None:
        return
    if _engine is None:
        _engine = Engine(recorder)
    _engine.tell(recorder)
    requests, steps = _engine.requests, _engine.steps
    wrap(api.ContinuousBatchingManager, "add_request", requests.around_add_request)
    wrap(scheduler.Scheduler, "add_waiting_request", requests.around_add_waiting)
    processor = api.ContinuousBatchProcessor
    wrap(processor, "prepare_next_batch", steps.around_prepare)
    if not wrap(processor, "_generation_step", steps.around_forward):
        wrap(api.ContinuousBatchingManager, "_generation_step", steps.around_forward_of_manager)
    wrap(processor, "update_batch", steps.around_update)
    wrap(processor, "_handle_request_error", steps.around_error)


class Engine:
    """What is known of all managers in this process."""

    def __init__(self, recorder: Recorder) -> None:
        self.requests = Requests(recorder)
        self.steps = Steps(self.requests)

    def tell(self, recorder: Recorder) -> None:
        """From now on tell this recorder; another one knows nothing of what was told before."""
        if recorder is not self.requests.recorder:
            self.requests.begin(recorder)
            self.steps.begin()
