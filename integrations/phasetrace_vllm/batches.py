"""The steps of one scheduler: when each was, and what it held. Knows times, no clock.

A step is tied to the scheduler's own output object. With asynchronous scheduling step k+1 is scheduled
before step k is processed, so the two come in pairs only by that object. In the recording steps lie end to
end while there is work: a step ends when its tokens are out (the end of `update_from_output`, which is also
the engine's own time stamp of them) and begins where the one before ended. What was scheduled ahead took no
time of its own.
"""

from __future__ import annotations

from typing import Any

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder

from . import extract
from .members import NO_CHANGES, Changes, Known, Members

OTHER, SCHEDULE, FORWARD, LOGITS, OUTPUT = (
    layout.PART_CODE[name] for name in ("other", "schedule", "forward", "logits", "output")
)
_SYNCHRONOUS = (OTHER, SCHEDULE, FORWARD, OUTPUT)
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
        # By the id of an output: its number, itself (so that the id is not reused), when it was scheduled,
        # the state if that is to be said, and whether somebody entered the batch with it
        self._pending: dict[int, tuple[int, Any, int, int, tuple[int, ...] | None, bool]] = {}
        self._masked: dict[int, tuple[int, int]] = {}  # when a step's grammar masks were made
        self._number = -1  # of the output scheduled last; workers count from 0, too
        self._end: int | None = None  # of the last step, while there is work left
        self._disturbed = False  # somebody left since the last step
        self._stale = -1  # till this number a step may hold one who has left
        self._preempted = 0  # so many were, in the schedule() that runs now
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
        new, resumed = output.scheduled_new_reqs, output.scheduled_cached_reqs.resumed_req_ids
        entered = bool(new or resumed)
        if entered:
            for data in new:
                self._enters(scheduler, data.req_id, begin)
            for name in resumed:
                self._enters(scheduler, name, begin)
        self._number += 1
        state = self._state(scheduler, output, begin)
        self._pending[id(output)] = (self._number, output, begin, end, state, entered)

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
        blocks = pool.num_gpu_blocks
        used = blocks - pool.free_block_queue.num_free_blocks
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
        self._left()
        began = self.scheduling
        self.recorder.mark(known.id, layout.PREEMPTED, time if began is None else began)

    def _left(self) -> None:
        self._disturbed = True
        self._stale = self._number

    def masked(self, output: Any, begin: int, end: int) -> None:
        """The grammar masks of a step were made."""
        if id(output) in self._pending:
            self._masked[id(output)] = begin, end

    # ---- processing

    def update(self, output: Any, ran: Any) -> None:
        """`update_from_output()` is about to begin; it will cut short what was sampled beyond a stop."""
        self.updating = True
        self._sampled = extract.sampled(ran) if output.scheduled_spec_decode_tokens else None

    def updated(self, scheduler: Any, output: Any, ran: Any, result: Any, begin: int, end: int) -> None:
        """`update_from_output()` processed the step `output`, which `ran`, from `begin` to `end`."""
        pending = self._pending.pop(id(output), None)
        if pending is None:
            return
        number, _, schedule_begin, schedule_end, state, entered = pending
        if self._pending:
            self._drop_older(number)
        if state is not None:
            self.recorder.batch_state(self.stream, self.index, *state)
        counts = output.num_scheduled_tokens
        if counts:
            cuts = (schedule_begin, schedule_end, begin, end)
            plain = (
                not (entered or self._disturbed or number <= self._stale)
                # Nobody came and nobody went, so as many as before are the same as before
                and len(counts) == len(self.members.batch) == output.total_num_scheduled_tokens
                and self._sampled is None
                and extract.all_gave_one(ran.sampled_token_ids)
            )
            if plain:
                self._record(output, number, cuts, NO_CHANGES)
            else:
                self._record_changes(output, number, cuts, ran, extract.given(result))
        if self._finishing:
            for known in self._finishing:
                self._finished(known, end)
            self._finishing.clear()
        if self.members.late and not self._pending:
            self.members.late.clear()
        # Where there is work the loop goes on at once, and what passes until the next step is the host's
        self._end = end if scheduler.requests else None

    def _drop_older(self, number: int) -> None:
        """Steps are processed in order: an older one never will be, its execution failed."""
        for key in [key for key, pending in self._pending.items() if pending[0] < number]:
            del self._pending[key]
            self._masked.pop(key, None)

    def _record(self, output: Any, number: int, cuts: tuple[int, int, int, int], made: Changes) -> None:
        start = self._end
        codes: tuple[int, ...] = _SYNCHRONOUS
        ends: tuple[int, ...] = cuts
        if start is None or self._masked or not start < cuts[0] < cuts[1] < cuts[2] < cuts[3]:
            start, codes, ends = self._segments(output, *cuts)
        self.recorder.step(
            self.stream, self.index, start, codes, ends,
            made.joined, made.left, made.scheduled, made.yielded, number,
        )  # fmt: skip
        self.index += 1

    def _record_changes(
        self, output: Any, number: int, cuts: tuple[int, int, int, int], ran: Any, given: dict[str, int]
    ) -> None:
        speculated, self._sampled = self._sampled, None
        sampled = extract.sampled(ran) if speculated is None else speculated
        made = self.members.changes(output, given, sampled)
        self._disturbed = False
        if not (self.members.batch or made.left):
            return  # a step of requests that are not ours to record
        proposed = accepted = 0
        if speculated is not None:
            proposed, accepted = extract.speculated(output, speculated)
        if proposed or made.discarded:
            self.recorder.step_tokens(self.stream, self.index, proposed, accepted, made.discarded)
        self._record(output, number, cuts, made)

    def _segments(
        self, output: Any, schedule_begin: int, schedule_end: int, begin: int, end: int
    ) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """The step's begin, and its parts with their ends; what lies before its begin is not its own."""
        start = at = schedule_begin if self._end is None else self._end
        cuts = [(OTHER, schedule_begin), (SCHEDULE, schedule_end)]
        masked = self._masked.pop(id(output), None)
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
        known.ended = extract.ending(request)
        known.running = False
        self._left()
        if self._pending or self.updating:
            self.members.late[name] = known
        if self.updating:
            self._finishing.append(known)
        else:
            self._finished(known, time)

    def _finished(self, known: Known, time: int) -> None:
        known.told = True
        data: dict[str, Any] = dict(known.ended or {})
        if known.scheduled:
            data["cached"] = known.local_cached + known.external_cached
            data["cached_external"] = known.external_cached
            data["last_step"] = self.index - 1
        if known.discarded:
            data["discarded"] = known.discarded
        self.recorder.finished(known.id, time, data)
