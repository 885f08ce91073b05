"""Who is in the batch of a scheduler, and what each step changed of it: who came, left, computed and got."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder


class Known:
    """A request that the engine core has."""

    def __init__(self, ident: int) -> None:
        self.id = ident
        self.scheduled = False  # ever
        self.running = False  # in the batch, as the scheduler sees it
        self.ended: dict[str, Any] | None = None
        self.told = False  # that it has ended
        self.local_cached = 0
        self.external_cached = 0
        self.until = -1  # the number of the last step that may hold it, once it has ended
        self.discarded: dict[str, int] = {}  # tokens sampled for nobody, by reason

    def discard(self, tokens: int, recorder: Recorder) -> None:
        """So many tokens were sampled for it that it did not get."""
        if self.ended is None:
            reason = layout.PREEMPTED_MEANWHILE
        elif self.ended["reason"] == "abort":
            reason = layout.ABORTED
        else:
            reason = layout.PAST_END
        self.discarded[reason] = self.discarded.get(reason, 0) + tokens
        if self.told:
            recorder.detail(self.id, {"discarded": self.discarded})


class Changes:
    """What a step changed of the batch, as a record of it says it."""

    __slots__ = ("discarded", "joined", "left", "scheduled", "yielded")

    def __init__(self) -> None:
        self.joined: list[int] = []
        self.left: list[int] = []
        self.scheduled: list[tuple[int, int]] = []
        self.yielded: list[tuple[int, int]] = []
        self.discarded = 0


NO_CHANGES = Changes()


class Members:
    """The requests of this process by the engine's names, and those of the last step."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.requests: dict[str, Known] = {}
        self.batch: dict[str, int] = {}  # ids of the last step's
        self.late: dict[str, Known] = {}  # ended, and still in a step that was scheduled before

    def changes(self, output: Any, given: Mapping[str, int], sampled: Mapping[str, int]) -> Changes:
        """What the step `output` changed, in which requests were `given` tokens of the `sampled` ones."""
        counts = output.num_scheduled_tokens
        again = _admitted(output)
        made = Changes()
        before, self.batch = self.batch, {}
        for name, positions in counts.items():
            known = self.requests.get(name) or self.late.get(name)
            if known is None:
                continue
            ident = known.id
            if name not in before or name in again:
                made.joined.append(ident)
            if positions != 1:
                made.scheduled.append((ident, positions))
            tokens = given.get(name, 0)
            if tokens != 1:
                made.yielded.append((ident, tokens))
            unused = sampled.get(name, 0) - tokens
            if unused > 0:
                made.discarded += unused
                known.discard(unused, self.recorder)
            if known.ended is not None:
                made.left.append(ident)
            else:
                self.batch[name] = ident
        for name, ident in before.items():
            if name not in counts:
                self._idle(name, ident, made)
        return made

    def forget(self, number: int) -> None:
        """The step of this number is processed: no later one holds who had ended when it was scheduled."""
        while self.late:
            name = next(iter(self.late))  # they ended in this order
            if self.late[name].until > number:
                return
            del self.late[name]

    def _idle(self, name: str, ident: int, made: Changes) -> None:
        """One of the last step's that is not in this one: it waits for its turn, or has left."""
        made.scheduled.append((ident, 0))
        made.yielded.append((ident, 0))
        known = self.requests.get(name)
        if known is not None and known.running:
            self.batch[name] = ident
        else:
            made.left.append(ident)


def _admitted(output: Any) -> set[str]:
    """Those that this step admits, for the first time or again: their KV is computed in it."""
    new = output.scheduled_new_reqs
    resumed: set[str] = output.scheduled_cached_reqs.resumed_req_ids
    return resumed | {data.req_id for data in new} if new else resumed
