"""Who is in the batch of a scheduler, and what each step changed of it: who came, left, computed and got.

A busy engine changes something with most of its steps, and little each time: a large batch is looked over for
those whom a step treated differently from the one before, and only these are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder

from . import extract

Look = tuple[str, int, int, int]  # a name; positions computed, tokens sampled, and given to it in the step


class Known:
    """A request that the engine core has."""

    def __init__(self, ident: int) -> None:
        self.id = ident
        self.scheduled = False  # ever
        self.running = False  # in the batch, as the scheduler sees it
        self.ended: extract.Ending | None = None
        self.told = False  # that it has ended
        self.local_cached = 0
        self.external_cached = 0
        self.until = -1  # the number of the last step that may hold it, once it has ended
        self.discarded: dict[str, int] = {}  # tokens sampled for nobody, by reason

    def discard(self, tokens: int, recorder: Recorder) -> None:
        """So many tokens were sampled for it that it did not get."""
        if self.ended is None:
            reason = layout.PREEMPTED_MEANWHILE
        elif self.ended.reason == "abort":
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
        self._noticed: list[str] = []  # ended or preempted since the last step
        self._unlike: list[str] = []  # those that did not compute and get one token in the last step
        self._strange = False  # whether there was one in the last step whom nobody knows

    def notice(self, name: str) -> None:
        """A request has ended or lost its place: a step to come lacks it."""
        self._noticed.append(name)

    def changes(self, output: Any, ran: Any, result: Any, sampled: Mapping[str, int] | None) -> Changes:
        """What the step `output` changed, by what it `ran` and what `update_from_output` returned.

        `sampled` says how many tokens of each request were, where the step speculated.
        """
        again = _admitted(output)
        looked = self._some(output, again, ran, result) if sampled is None else None
        if looked is None:
            self._strange = False
            looked = self._all(output, extract.sampled(ran) if sampled is None else sampled, result)
        made = Changes()
        self._noticed.clear()
        self._unlike.clear()
        for name, positions, tokens, given in looked:
            if positions:
                self._look(name, positions, name in again, tokens, given, made)
            elif name in self.batch:
                self._idle(name, made)
        return made

    def _all(self, output: Any, sampled: Mapping[str, int], result: Any) -> list[Look]:
        counts, given = output.num_scheduled_tokens, extract.given(result)
        here = [(name, n, sampled.get(name, 0), given.get(name, 0)) for name, n in counts.items()]
        return here + [(name, 0, 0, 0) for name in self.batch if name not in counts]

    def _some(self, output: Any, again: AbstractSet[str], ran: Any, result: Any) -> list[Look] | None:
        """Those who may have changed, where all others computed and got one token as before; else None.

        Without speculation a row holds one token or none. What is asked of every sequence is asked in C.
        """
        counts, rows, row_of = output.num_scheduled_tokens, ran.sampled_token_ids, ran.req_id_to_index
        if self._strange or not len(row_of) == len(rows) == len(counts):
            return None
        over = [name for name in self.late if name in row_of and self._was_over(name)] if self.late else ()
        looked = []
        others, before, computed, sampled, given = len(counts), len(self.batch), 0, 0, 0
        for name in {*again, *self._noticed, *self._unlike, *over}:
            before -= name in self.batch
            positions, row = counts.get(name, 0), row_of.get(name)
            if positions and row is None:
                return None
            tokens = len(rows[row]) if positions else 0
            got = 0 if name in over else tokens
            looked.append((name, positions, tokens, got))
            others -= positions > 0
            computed += positions
            sampled += tokens
            given += got
        some_sampled_none = sampled < len(counts) - others
        if (
            others == before  # nobody comes unnoticed, so that as many others as before are the same
            and output.total_num_scheduled_tokens == others + computed
            and (sum(map(bool, rows)) == others + sampled if some_sampled_none else all(rows))
            and sum(len(outputs.outputs) for outputs in result.values()) == others + given
        ):
            return looked
        return None

    def _look(
        self, name: str, positions: int, admitted: bool, sampled: int, tokens: int, made: Changes
    ) -> None:
        """One that is in the step."""
        known = self.requests.get(name) or self.late.get(name)
        if known is None:
            self._strange = True
            return
        if admitted or name not in self.batch:
            made.joined.append(known.id)
        if positions != 1:
            made.scheduled.append((known.id, positions))
        if tokens != 1:
            made.yielded.append((known.id, tokens))
        if positions != 1 or tokens != 1:
            self._unlike.append(name)
        if sampled > tokens:
            made.discarded += sampled - tokens
            known.discard(sampled - tokens, self.recorder)
        if known.ended is None:
            self.batch[name] = known.id
        else:
            made.left.append(known.id)
            self.batch.pop(name, None)

    def forget(self, number: int) -> None:
        """The step of this number is processed: no later one holds who had ended when it was scheduled."""
        while self.late:
            name = next(iter(self.late))  # they ended in this order
            if self.late[name].until > number:
                return
            del self.late[name]

    def _idle(self, name: str, made: Changes) -> None:
        """One of the last step's that is not in this one: it waits for its turn, or has left."""
        ident = self.batch[name]
        made.scheduled.append((ident, 0))
        made.yielded.append((ident, 0))
        known = self.requests.get(name)
        if known is None or not known.running:
            made.left.append(ident)
            del self.batch[name]

    def _was_over(self, name: str) -> bool:
        """Whether it had ended before the step was processed: what was sampled for it is given to nobody."""
        known = self.late.get(name)
        return known is not None and known.told


def _admitted(output: Any) -> set[str]:
    """Those that this step admits, for the first time or again: their KV is computed in it."""
    new = output.scheduled_new_reqs
    resumed: set[str] = output.scheduled_cached_reqs.resumed_req_ids
    return resumed | {data.req_id for data in new} if new else resumed
