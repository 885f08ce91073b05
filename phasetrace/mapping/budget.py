"""How many spans a trace may have, and who gets them.

Viewers become slow beyond about a thousand spans in a trace, and an application may put any number of calls
under one span of its own. So the first requests of a trace get all their detail, later ones a summary, and
once a trace is full its further requests go to a trace of their own that links back.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from phasetrace.mapping.span import derived_id

LIMIT = 1000  # spans of one trace id
FOR_DETAIL = 600  # of these, what the first requests may use up
FOR_ONE_SUMMARY = 16
TOKEN_SPANS = 512  # a request with more tokens shares spans among the unremarkable ones
_RESERVE = (
    32  # a later request gets at most this fraction of what is left, so that there is something for the next
)
_REMEMBERED = 65_536  # traces; a parent trace is rarely open for that long


class Detail(StrEnum):
    """How much to show of each request."""

    SUMMARY = "summary"  # phases only
    AUTO = "auto"  # tokens for the first requests of a trace
    TOKEN = "token"  # tokens as long as the trace has room


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one request may emit."""

    trace_id: str
    spans: int
    tokens: int  # token spans at most
    short: bool = False  # the trace has no room for all that was asked for


class SpanBudget:
    """Counts spans by trace id, and says what a request may have."""

    def __init__(self, detail: Detail = Detail.AUTO, limit: int = LIMIT) -> None:
        self._detail = detail
        self._limit = limit
        self._for_detail = limit if detail is Detail.TOKEN else limit * FOR_DETAIL // LIMIT
        self._used: OrderedDict[str, int] = OrderedDict()
        self._overflows: dict[str, int] = {}

    def ask(self, trace_id: str, alone: bool, required: int) -> Allowance:
        """What a request of this trace may emit.

        Args:
            trace_id: where it belongs.
            alone: it is the only one there can be: nobody gave it a parent.
            required: spans without which it would lose something.
        """
        if alone:
            return self._allow(trace_id, self._limit)
        used = self._used.get(trace_id, 0)
        detail = self._for_detail - used
        if detail >= max(required, FOR_ONE_SUMMARY):
            return self._allow(trace_id, detail)
        place = self._with_room(trace_id, required)
        left = self._limit - self._used.get(place, 0)
        return Allowance(place, max(required, min(FOR_ONE_SUMMARY, left // _RESERVE)), 0, short=True)

    def spend(self, allowance: Allowance, spans: int, alone: bool) -> None:
        """Write down what was emitted."""
        if alone:
            return
        self._used[allowance.trace_id] = self._used.get(allowance.trace_id, 0) + spans
        self._used.move_to_end(allowance.trace_id)
        while len(self._used) > _REMEMBERED:
            self._overflows.pop(self._used.popitem(last=False)[0], None)

    def _allow(self, trace_id: str, spans: int) -> Allowance:
        if self._detail is Detail.SUMMARY:
            return Allowance(trace_id, min(spans, FOR_ONE_SUMMARY), 0)
        tokens = self._limit if self._detail is Detail.TOKEN else TOKEN_SPANS
        return Allowance(trace_id, spans, tokens)

    def _with_room(self, trace_id: str, required: int) -> str:
        number = self._overflows.get(trace_id, 0)
        while True:
            place = derived_id(16, trace_id, "overflow", number) if number else trace_id
            if self._used.get(place, 0) + required <= self._limit:
                return place
            number += 1
            self._overflows[trace_id] = number
