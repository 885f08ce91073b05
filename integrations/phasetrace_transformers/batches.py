"""The states of the continuous batching engine, read in the shapes they have in 4.x and 5.x."""

from __future__ import annotations

from collections import deque
from typing import Any

from phasetrace_agent import clock


class Known:
    """A request the engine has."""

    __slots__ = ("id", "arrival", "scheduled")

    def __init__(self, ident: int, arrival: int) -> None:
        self.id = ident
        self.arrival = arrival  # read once: the engine's stamp is of another clock
        self.scheduled = False


class Loop:
    """The steps of one processor."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.index = 0
        self.end: int | None = None  # of the last step, while there is no pause after it
        self.begin = 0
        self.codes: list[int] = []
        self.ends: list[int] = []
        self.batches: deque[list[Scheduled]] = deque()  # scheduled, not yet processed
        self.members: set[int] = set()  # ids in the batch of the last step

    def cut(self, code: int, until: int) -> None:
        """The time until now was this."""
        self.codes.append(code)
        self.ends.append(until)


class Scheduled:
    """A request's part in one step, noted when it is scheduled: by its end the engine has moved on."""

    __slots__ = ("known", "state", "tokens", "given")

    def __init__(self, known: Known, member: Any) -> None:
        self.known = known
        self.state = getattr(member, "state", member)
        if self.state is member:  # 4.x
            self.tokens = len(member.prompt_ids)
        else:
            self.tokens = member.query_length
        self.given = 0  # tokens given out before this step

    @property
    def finished(self) -> bool:
        """Whether the request is over by now."""
        return str(getattr(self.state.status, "name", self.state.status)) == "FINISHED"


def batch_of(processor: Any) -> list[Any]:
    """The requests of the step that was just prepared."""
    batch = getattr(processor, "requests_in_batch", None)
    return list(processor.inputs_and_outputs.requests_in_batch if batch is None else batch)


def prompt_of(state: Any) -> Any:
    """The prompt's tokens."""
    full = getattr(state, "full_prompt_ids", None)
    return state.initial_tokens if full is None else full


def given_by(state: Any) -> Any:
    """The tokens given out so far."""
    given = getattr(state, "generated_tokens", None)
    return state.static_outputs if given is None else given


def ending(state: Any) -> dict[str, Any]:
    """How a finished request ended."""
    given = given_by(state)
    stops = getattr(state, "_eos_token_ids", None)
    if stops is None:
        stops = {state.eos_token_id}
    reason = "stop" if given and given[-1] in stops else "length"
    sequence = {"prompt": len(prompt_of(state)), "padding": 0, "output": len(given), "reason": reason}
    return {"reason": reason, "sequences": [sequence]}


def created(stamp: float) -> int:
    """The engine's stamp as monotonic time: 5.x takes the performance counter, 4.x the wall clock."""
    time = int(stamp * 1e9)
    monotonic, wall = clock.now(), clock.wall()
    if abs(wall - time) < abs(monotonic - time):
        time = monotonic - (wall - time)
    return min(time, monotonic)
