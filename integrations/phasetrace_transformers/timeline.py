"""The state machine of one `generate()` call: times of hooks come in, contiguous steps go out. Pure.

Between two hooks something passes that has no hook of its own; what it is follows from the hook before.
After `prepare_inputs_for_generation` it is the forward, after `_update_model_kwargs_for_generation` the
copy of the logits, after the logits processors the choice of a token; what follows a token is `other`.
So every nanosecond of a step has a name, and a step begins where the one before ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phasetrace_agent.layout import PART_CODE

OTHER = PART_CODE["other"]
SETUP = PART_CODE["setup"]
ENCODE = PART_CODE["encode"]
PREPARE = PART_CODE["prepare"]
FORWARD = PART_CODE["forward"]
UPDATE = PART_CODE["update"]
LOGITS = PART_CODE["logits"]
SAMPLING = PART_CODE["sampling"]
CRITERIA = PART_CODE["criteria"]
STREAM = PART_CODE["stream"]
DRAFT = PART_CODE["draft"]

# index, begin, codes, ends, positions computed (None where it is one a row), tokens a sequence
WriteStep = Callable[[int, int, Sequence[int], Sequence[int], "int | None", int], None]


class Timeline:
    """The steps of one request, told hook by hook, each with the times at which it was entered and left.

    `write` is given every step as soon as it is over, so that a killed process loses one step at most.
    """

    __slots__ = (
        "write", "index", "begin", "last", "codes", "ends", "gap", "after_token", "forwarded", "updated",
        "processed", "rows", "computed", "base", "width", "prompt_width", "streamed", "inexact", "tokens",
    )  # fmt: skip

    def __init__(self, begin: int, write: WriteStep, beams: bool = False) -> None:
        self.write = write
        self.index = 0
        self.begin = self.last = begin
        self.codes: list[int] = []
        self.ends: list[int] = []
        self.gap = SETUP  # what passes now, outside of any hook
        # Behind a token beam search reorders its cache; else there is the loop itself, and no hook says more
        self.after_token = UPDATE if beams else OTHER
        self.forwarded = self.updated = self.processed = False  # in this step
        self.rows = 0  # of the forward's input
        self.computed = 0  # positions of the forward's input, padding included
        self.base: int | None = None  # width of the ids before this step's tokens
        self.width: int | None = None  # width of the ids after the last token
        self.prompt_width: int | None = None
        self.streamed = 0  # time in the streamer since the last token
        self.inexact = False  # some forward's end is an upper bound
        self.tokens = 0  # a sequence, so far

    def prepared(self, entered: int, left: int, rows: int, positions: int, width: int | None) -> None:
        """A forward begins: its inputs, `rows` x `positions`, were built from ids `width` wide."""
        if self.forwarded:  # a forward that gave no token: a chunk of a prompt
            self._cut(self.gap, entered)
            self._close(0)
        self.codes += (self.gap, PREPARE)
        self.ends += (entered, left)
        self.last = left
        self.gap = FORWARD
        self.forwarded = True
        self.rows = rows
        self.computed = rows * positions
        if self.base is None and self.width is None:
            self.width = width

    def prefilled(self, left: int) -> None:
        """The first forward has ended, exactly here."""
        if self.gap == FORWARD:
            self._cut(FORWARD, left)
            self.gap = UPDATE

    def updated_kwargs(self, entered: int, left: int) -> None:
        """The forward's outcome was booked in cache and masks."""
        if not self.forwarded and not self.updated:  # its inputs were built out of our sight
            self.gap = FORWARD
            self.inexact = True
        if self.gap == UPDATE:
            self._cut(UPDATE, left)
        else:
            self.codes += (self.gap, UPDATE)
            self.ends += (entered, left)
            self.last = left
        self.gap = LOGITS
        self.updated = True

    def processed_logits(self, entered: int, left: int, width: int | None) -> None:
        """The logits processors ran on ids `width` wide; speculation calls them once a position."""
        if self.gap != LOGITS and not self.processed:
            self._cut(self.gap, entered)
        self._cut(LOGITS, left)
        self.gap = SAMPLING
        self.processed = True
        if self.base is None:
            self.base = width

    def judged(self, entered: int, left: int, width: int | None) -> None:
        """The stopping criteria ran on ids `width` wide: the tokens are out, unless this was a draft."""
        self.codes += (self.gap, CRITERIA)
        self.ends += (entered, left)
        self.last = left
        if not (self.forwarded or self.updated or self.processed):
            self.gap = PREPARE
            return
        before = self.base if self.base is not None else self.width
        grown = 1 if width is None or before is None else max(0, width - before)
        self.width = width
        self._close(grown)

    def streamed_tokens(self, entered: int, left: int) -> None:
        """Tokens were handed to the user's streamer."""
        self._between(STREAM, entered, left)
        self.streamed += left - entered

    def drafted(self, entered: int, left: int, width: int | None) -> None:
        """Tokens were proposed behind ids `width` wide, or the proposer was told how well it did."""
        if not self.forwarded:
            self.base = width
        self._between(DRAFT, entered, left)
        if not self.forwarded:
            self.gap = PREPARE

    def encoded(self, entered: int, left: int) -> None:
        """The encoder of an encoder-decoder model, or an image tower, ran."""
        self._between(ENCODE, entered, left)

    def finish(self, time: int, completed: bool) -> None:
        """The call is over; an unfinished step is written if it gave a token unseen, or if it failed."""
        last_token_unseen = (
            completed and self.processed
        )  # beam search of 4.46 may end without asking the criteria
        if last_token_unseen or (not completed and time > self.begin):
            self._cut(self.gap, time)
            self._close(1 if last_token_unseen else 0)

    def _between(self, code: int, entered: int, left: int) -> None:
        """A hook that leaves open what follows, except that it ends a forward."""
        self._cut(self.gap, entered)
        self._cut(code, left)
        if self.gap == FORWARD:
            self.gap = UPDATE
            self.inexact = True

    def _cut(self, code: int, until: int) -> None:
        if until <= self.last:
            return
        if self.codes and self.codes[-1] == code:
            self.ends[-1] = until
        else:
            self.codes.append(code)
            self.ends.append(until)
        self.last = until

    def _close(self, tokens: int) -> None:
        if self.prompt_width is None and tokens:
            self.prompt_width = self.base if self.base is not None else self.width and self.width - tokens
        one_a_row = not self.forwarded or self.computed == self.rows
        self.write(
            self.index, self.begin, self.codes, self.ends, None if one_a_row else self.computed, tokens
        )
        self.index += 1
        self.tokens += tokens
        self.begin = self.last
        self.codes, self.ends = [], []
        self.gap = self.after_token
        self.forwarded = self.updated = self.processed = False
        self.base = None
        if tokens:
            self.streamed = 0
