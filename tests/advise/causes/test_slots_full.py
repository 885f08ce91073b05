"""`slots-full` in recorded steps: a good case, a bad one, and where too little is known."""

from collections.abc import Mapping

from phasetrace.advise.causes import slots_full
from phasetrace.model import Finding, Recording
from tests import builders
from tests.advise import scenes
from tests.advise.asked import ask
from tests.builders import EPOCH


def crowd(step_ms: Mapping[int, float], cap: int = 8) -> Recording:
    """Requests on one engine: `cap` run, the rest wait until those have ended; `step_ms` by sequences."""
    requests, steps = [], []
    begin, index = EPOCH, 0
    arrival = EPOCH
    for wave, running in enumerate((2, cap, cap)):
        taken = builders.steps(
            20, ms=step_ms[running], rows=running, stream=1, begin=begin, first_index=index
        )
        requests += [
            builders.request(
                f"w{wave}-{n}", steps=taken, arrival_ns=arrival, received_ns=arrival, mode="continuous"
            )
            for n in range(running)
        ]
        steps.append(taken)
        begin, index = int(taken.end_ns[-1]), index + 20
        arrival = begin if wave == 0 else arrival
    return builders.recording(*requests, steps=steps)


def test_slots_full() -> None:
    assert ask(slots_full, scenes.chat()) is None
    assert isinstance(ask(slots_full, crowd({2: 10.0, 8: 11.0})), Finding)
    assert ask(slots_full, crowd({2: 10.0, 8: 40.0})) is None
