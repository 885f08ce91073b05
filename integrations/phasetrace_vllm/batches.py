"""The steps of one scheduler: when each was, and what it held. Knows times, no clock.

A step is tied to the scheduler's own output object. With asynchronous scheduling step k+1 is scheduled
before step k is processed, so the two come in pairs only by that object. In the recording steps lie end to
end while there is work: a step ends when its tokens are out (the end of `update_from_output`, which is also
the engine's own time stamp of them) and begins where the one before ended. What was scheduled ahead took no
time of its own.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder

from . import extract
from .members import NO_CHANGES, Changes, Known, Members

OTHER, SCHEDULE, FORWARD, LOGITS, OUTPUT = (
    layout.PART_CODE[name] for name in ("other", "schedule", "forward", "logits", "output")
)
_SYNCHRONOUS = OTHER | SCHEDULE << 8 | FORWARD << 16 | OUTPUT << 24
_NEVER = 1 << 63
_KV_STEPS = 64  # a move of the used KV blocks by this part of all is worth a record


class Batches:
    """The loop of one scheduler. All but `add` is called by the thread that runs it."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.stream = recorder.next_id()
        self.index = 0  # of the next step
        self.members = Members(recorder)
        self.requests = self.members.requests
        self.scheduling: int | None = None  # when the schedule() that runs now began
        self.updating = False
        # Scheduled and not processed yet, in order: the output, its number, when it was scheduled, the state
        # if that is to be said, and whether somebody entered the batch with it
        self._pending: deque[tuple[Any, int, int, int, tuple[int, ...] | None, bool]] = deque()
        self._masked: dict[int, tuple[int, int]] = {}  # by number: when a step's grammar masks were made
        self._number = -1  # of the output scheduled last; workers count from 0, too
        self._end = _NEVER  # of the last step, while there is work left
        self._idle = 0  # since when there is none
        self._size = 0  # of its batch
        self._changed = -1  # till this number the batch may have lost somebody
        self._preempted = 0  # so many were, in the schedule() that runs now
        self._running = self._free = -1  # sequences and KV blocks, as long as nobody waits
        self._blocks: Any = None  # what counts the free ones
        self._sampled: dict[str, int] | None = None  # of the step that is processed now, where it speculated
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
        self._number = number = self._number + 1
        new, resumed = output.scheduled_new_reqs, output.scheduled_cached_reqs.resumed_req_ids
        entered = False
        if new or resumed:
            entered = True
            for data in new:
                self._enters(scheduler, data.req_id, begin)
            for name in resumed:
                self._enters(scheduler, name, begin)
        state = None
        running = len(scheduler.running)
        if (
            running != self._running
            or len(scheduler.requests) != running
            or self._blocks.num_free_blocks != self._free
        ):
            state = self._state(scheduler, output, begin)
        self._pending.append((output, number, begin, end, state, entered))

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
        """Queues and blocks, if they are worth a word: as `Recorder.batch_state` takes them."""
        running = len(scheduler.running)
        waiting = reason = 0
        preempted, self._preempted = self._preempted, 0
        if len(scheduler.requests) != running:  # the queues themselves are slower to ask
            waiting = len(scheduler.waiting) + len(getattr(scheduler, "kv_holding_waiting", ()))
            counts = output.num_scheduled_tokens
            total = output.total_num_scheduled_tokens
            reason = extract.head_reason(scheduler, counts, total, preempted > 0)
        pool = scheduler.kv_cache_manager.block_pool
        self._blocks = pool.free_block_queue
        self._free = free = self._blocks.num_free_blocks
        self._running = -1 if preempted else running  # which is not said again as long as nothing changes
        blocks = pool.num_gpu_blocks
        used = blocks - free
        state = (running, waiting, used * _KV_STEPS // blocks, reason, preempted)
        if state == self._said:
            return None
        self._said = state
        return (time, running, waiting, used, blocks, reason, preempted)

    def preempted(self, name: str, time: int) -> None:
        """A request lost its place and its KV."""
        known = self.requests.get(name)
        if known is None:
            return
        known.running = False
        self._preempted += 1
        self._running = -1
        self._left(name)
        began = self.scheduling
        self.recorder.mark(known.id, layout.PREEMPTED, time if began is None else began)

    def _left(self, name: str) -> None:
        """The steps scheduled so far may hold one who has left, and the next one lacks it."""
        self.members.notice(name)
        self._changed = self._number + 1

    def masked(self, begin: int, end: int) -> None:
        """The grammar masks of the step scheduled last were made."""
        if self._pending:
            self._masked[self._number] = begin, end

    # ---- processing

    def speculated(self, ran: Any) -> None:
        """`update_from_output()` is about to begin; it will cut short what was sampled beyond a stop."""
        self._sampled = extract.sampled(ran)

    def updated(self, scheduler: Any, output: Any, ran: Any, result: Any, begin: int, end: int) -> None:
        """`update_from_output()` processed the step `output`, which `ran`, from `begin` to `end`."""
        pending = self._pending
        if not pending or pending[0][0] is not output and not self._come_to(output):
            self._sampled = None
            return
        _, number, schedule_begin, schedule_end, state, entered = pending.popleft()
        index = self.index
        if state is not None:
            self.recorder.batch_state(self.stream, index, *state)
        size = self._size
        rows = ran.sampled_token_ids
        plain = (
            size > 0
            and not entered
            and number > self._changed
            # Nobody came and nobody went, so as many as before are the same as before
            and len(output.num_scheduled_tokens) == size == output.total_num_scheduled_tokens
            and self._sampled is None
            and len(rows) == size
            and all(rows)  # in C: this is asked each step, of each sequence
        )
        start = self._end
        if plain and start < schedule_begin < schedule_end < begin < end and not self._masked:
            self.recorder.plain_step(
                self.stream, index, start, _SYNCHRONOUS, schedule_begin, schedule_end, begin, end, number
            )
            self.index = index + 1
            self._end = end
            return
        cuts = (schedule_begin, schedule_end, begin, end)
        if plain:
            self._record(number, cuts, NO_CHANGES)
        elif output.num_scheduled_tokens:
            self._record_changes(output, number, cuts, ran, result)
        if self._finishing:
            for known in self._finishing:
                self._finished(known, end)
            self._finishing.clear()
        self._sampled = None
        self.members.forget(number)
        # Where there is work the loop goes on at once, and what passes until the next step is the host's
        self._end, self._idle = (end, 0) if scheduler.requests else (_NEVER, end)

    def _come_to(self, output: Any) -> bool:
        """Steps are processed in order: one before `output` never will be, its execution failed."""
        if not any(each[0] is output for each in self._pending):
            return False
        while self._pending[0][0] is not output:
            self._masked.pop(self._pending.popleft()[1], None)
        return True

    def _record(self, number: int, cuts: tuple[int, int, int, int], made: Changes) -> None:
        start, codes, ends = self._segments(number, *cuts)
        self.recorder.step(
            self.stream, self.index, start, codes, ends,
            made.joined, made.left, made.scheduled, made.yielded, number,
        )  # fmt: skip
        self.index += 1

    def _record_changes(
        self, output: Any, number: int, cuts: tuple[int, int, int, int], ran: Any, result: Any
    ) -> None:
        speculated = self._sampled
        made = self.members.changes(output, ran, result, speculated)
        self._size = len(self.members.batch)
        if not (self.members.batch or made.left):
            return  # a step of requests that are not ours to record
        proposed = accepted = 0
        if speculated is not None:
            proposed, accepted = extract.speculated(output, speculated)
        if proposed or made.discarded:
            self.recorder.step_tokens(self.stream, self.index, proposed, accepted, made.discarded)
        self._record(number, cuts, made)

    def _segments(
        self, number: int, schedule_begin: int, schedule_end: int, begin: int, end: int
    ) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """The step's begin, and its parts with their ends; what lies before its begin is not its own."""
        # Of those that are gone there may be steps yet, scheduled before the last one ended
        start = at = max(schedule_begin, self._idle) if self._end == _NEVER else self._end
        cuts = [(OTHER, schedule_begin), (SCHEDULE, schedule_end)]
        masked = self._masked.pop(number, None)
        if masked is not None:
            cuts += [(FORWARD, masked[0]), (LOGITS, masked[1])]
        cuts += [(FORWARD, begin), (OUTPUT, end)]
        codes, ends = [], []
        for code, until in cuts:
            if until > at:
                codes.append(code)
                ends.append(until)
                at = until
        return start, tuple(codes), tuple(ends)

    # ---- the end of a request

    def ended(self, request: Any, time: int) -> None:
        """The scheduler lets go of a request: in the midst of an update, or because it was aborted."""
        name = request.request_id
        known = self.requests.pop(name, None)
        if known is None:
            return
        known.ended = extract.Ending(request)
        known.running = False
        self._left(name)
        if self._pending or self.updating:
            known.until = self._number
            self.members.late[name] = known
        if self.updating:
            self._finishing.append(known)
        else:
            self._finished(known, time)

    def _finished(self, known: Known, time: int) -> None:
        known.told = True
        end = known.ended
        if end is None:
            return
        if known.scheduled:
            self.recorder.ended(
                known.id, time, end.reason, end.prompt, end.output,
                known.local_cached, known.external_cached, self.index - 1,
            )  # fmt: skip
        else:
            self.recorder.finished(known.id, time, end.told())
        if known.discarded:
            self.recorder.detail(known.id, {"discarded": known.discarded})
        if end.reason == "error":
            self.recorder.detail(known.id, {"error": "vllm"})  # of which type, the core does not say
