"""The steps of one scheduler: which requests entered, left, computed and gave what. Knows times, no clock.

A step is tied to the scheduler's own output object. With asynchronous scheduling step k+1 is scheduled
before step k is processed, so the two come in pairs only by that object. In the recording steps lie end to
end while there is work: a step ends when its tokens are out (the end of `update_from_output`, which is also
the engine's own time stamp of them) and begins where the one before ended. What was scheduled ahead took no
time of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder

from . import extract

OTHER, SCHEDULE, FORWARD, LOGITS, OUTPUT = (
    layout.PART_CODE[name] for name in ("other", "schedule", "forward", "logits", "output")
)
_KV_STEPS = 64  # a move of the used KV blocks by this part of all is worth a record


class Known:
    """A request that the engine core has."""

    __slots__ = ("ended", "external_cached", "id", "local_cached", "running", "scheduled")

    def __init__(self, ident: int) -> None:
        self.id = ident
        self.scheduled = False  # ever
        self.running = False  # in the batch, as the scheduler sees it
        self.ended: dict[str, Any] | None = None
        self.local_cached = 0
        self.external_cached = 0


class Pending:
    """A step that was scheduled and not processed yet. Holds the output, so that its id is not reused."""

    __slots__ = ("begin", "end", "grammar", "number", "output", "state")

    def __init__(self, number: int, output: Any, begin: int, end: int, state: tuple[int, ...] | None):
        self.number = number
        self.output = output
        self.begin = begin
        self.end = end
        self.state = state
        self.grammar: tuple[int, int] | None = None  # when its grammar masks were made


class Batches:
    """The loop of one scheduler. All but `arrived` is called by the thread that runs it."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.stream = recorder.next_id()
        self.index = 0  # of the next step
        self.requests: dict[str, Known] = {}
        self.scheduling: int | None = None  # when the schedule() that runs now began
        self.updating = False
        self._pending: dict[int, Pending] = {}
        self._number = 0
        self._end: int | None = None  # of the last step, while there is work left
        self._members: dict[str, int] = {}  # of the last step
        self._late: dict[str, int] = {}  # ended, and still in a step that was scheduled before
        self._disturbed = False  # somebody left since the last step
        self._preempted = False  # somebody was, in the schedule() that runs now
        self._finishing: list[Known] = []
        self._said: tuple[int, ...] = ()

    def add(self, name: str) -> Known:
        """A request is here, under the engine's name for it."""
        known = self.requests[name] = Known(self.recorder.next_id())
        return known

    # ---- scheduling

    def scheduled(self, scheduler: Any, output: Any, begin: int, end: int) -> None:
        """`schedule()` ran from `begin` to `end` and returned `output`."""
        self.scheduling = None
        for data in output.scheduled_new_reqs:
            self._enters(scheduler, data.req_id, begin)
        for name in output.scheduled_cached_reqs.resumed_req_ids:
            self._enters(scheduler, name, begin)
        self._number += 1
        state = self._state(scheduler, output, begin)
        self._preempted = False
        self._pending[id(output)] = Pending(self._number, output, begin, end, state)

    def _enters(self, scheduler: Any, name: str, begin: int) -> None:
        known = self.requests.get(name)
        if known is None:
            return
        known.running = True
        if known.scheduled:
            self.recorder.mark(known.id, layout.RESUMED, begin)
            return
        known.scheduled = True
        self.recorder.mark(known.id, layout.SCHEDULED, begin)
        cached = extract.cached(scheduler.requests.get(name))
        if cached is not None:
            known.local_cached, known.external_cached = cached

    def _state(self, scheduler: Any, output: Any, time: int) -> tuple[int, ...] | None:
        """Queues and blocks, if they are worth a word: (time, running, waiting, used, total, reason)."""
        waiting = len(scheduler.waiting) + len(getattr(scheduler, "kv_holding_waiting", ()))
        counts = output.num_scheduled_tokens
        reason = (
            extract.head_reason(scheduler, counts, output.total_num_scheduled_tokens, self._preempted)
            if waiting
            else 0
        )
        pool = scheduler.kv_cache_manager.block_pool
        total = pool.num_gpu_blocks
        used = total - pool.get_num_free_blocks()
        state = (len(scheduler.running), waiting, used * _KV_STEPS // total, total, reason)
        if state == self._said:
            return None
        self._said = state
        return (time, state[0], waiting, used, total, reason)

    def preempted(self, name: str, time: int) -> None:
        """A request lost its place and its KV."""
        known = self.requests.get(name)
        if known is None:
            return
        known.running = False
        self._disturbed = self._preempted = True
        began = self.scheduling
        self.recorder.mark(known.id, layout.PREEMPTED, time if began is None else began)

    def masked(self, output: Any, begin: int, end: int) -> None:
        """The grammar masks of a step were made."""
        pending = self._pending.get(id(output))
        if pending is not None:
            pending.grammar = begin, end

    # ---- processing

    def updated(self, scheduler: Any, output: Any, sampled: Any, result: Any, begin: int, end: int) -> None:
        """`update_from_output()` processed the step `output` from `begin` to `end`."""
        pending = self._pending.pop(id(output), None)
        if pending is None:
            return
        if self._pending:
            self._drop_older(pending.number)
        if pending.state is not None:
            self.recorder.batch_state(self.stream, self.index, *pending.state)
        if output.num_scheduled_tokens:
            self._record(pending, output, sampled, result, begin, end)
        for known in self._finishing:
            self._finished(known, end)
        self._finishing.clear()
        if not self._pending:
            self._late.clear()
        # Where there is work the loop goes on at once, and what passes until the next step is the host's
        self._end = end if scheduler.running or scheduler.waiting else None

    def _drop_older(self, number: int) -> None:
        """Steps are processed in order: an older one never will be, its execution failed."""
        for key in [key for key, pending in self._pending.items() if pending.number < number]:
            del self._pending[key]

    def _record(self, pending: Pending, output: Any, sampled: Any, result: Any, begin: int, end: int) -> None:
        counts = output.num_scheduled_tokens
        joined: list[int] = []
        left: list[int] = []
        scheduled: list[tuple[int, int]] = []
        yielded: list[tuple[int, int]] = []
        plain = (
            not (self._disturbed or self._finishing)
            and counts.keys() == self._members.keys()
            and extract.all_gave_one(counts, output.total_num_scheduled_tokens, sampled)
        )
        if not plain:
            self._changes(counts, extract.given(result), joined, left, scheduled, yielded)
            if not (self._members or left):  # a step of requests that are not ours to record
                return
        start, codes, ends = self._segments(pending, begin, end)
        self.recorder.step(self.stream, self.index, start, codes, ends, joined, left, scheduled, yielded)
        self.index += 1

    def _changes(
        self,
        counts: Mapping[str, int],
        given: Mapping[str, int],
        joined: list[int],
        left: list[int],
        scheduled: list[tuple[int, int]],
        yielded: list[tuple[int, int]],
    ) -> None:
        before, members = self._members, {}
        for name, positions in counts.items():
            known = self.requests.get(name)
            ident = self._late.get(name) if known is None else known.id
            if ident is None:
                continue
            if name not in before:
                joined.append(ident)
            if positions != 1:
                scheduled.append((ident, positions))
            tokens = given.get(name, 0)
            if tokens != 1:
                yielded.append((ident, tokens))
            if known is None or known.ended is not None:
                left.append(ident)
            else:
                members[name] = ident
        for name, ident in before.items():
            if name in counts:
                continue
            scheduled.append((ident, 0))
            yielded.append((ident, 0))
            known = self.requests.get(name)
            if known is not None and known.running:
                members[name] = ident
            else:
                left.append(ident)
        self._members = members
        self._disturbed = False

    def _segments(self, pending: Pending, begin: int, end: int) -> tuple[int, list[int], list[int]]:
        """The step's begin, and its parts with their ends; what lies before its begin is not its own."""
        start = at = pending.begin if self._end is None else self._end
        cuts = [(OTHER, pending.begin), (SCHEDULE, pending.end)]
        if pending.grammar is not None:
            cuts += [(FORWARD, pending.grammar[0]), (LOGITS, pending.grammar[1])]
        cuts += [(FORWARD, begin), (OUTPUT, end)]
        codes, ends = [], []
        for code, until in cuts:
            if until > at:
                codes.append(code)
                ends.append(until)
                at = until
        return start, codes, ends

    # ---- the end of a request

    def ended(self, request: Any, time: int) -> None:
        """The scheduler lets go of a request: in the midst of an update, or because it was aborted."""
        name = request.request_id
        known = self.requests.pop(name, None)
        if known is None:
            return
        known.ended = extract.ending(request)
        known.running = False
        self._disturbed = True
        if self._pending or self.updating:
            self._late[name] = known.id
        if self.updating:
            self._finishing.append(known)
        else:
            self._finished(known, time)

    def _finished(self, known: Known, time: int) -> None:
        data: dict[str, Any] = dict(known.ended or {})
        if known.scheduled:
            data["cached"] = known.local_cached + known.external_cached
            data["last_step"] = self.index - 1
        if known.external_cached:
            data["cached_external"] = known.external_cached
        self.recorder.finished(known.id, time, data)
