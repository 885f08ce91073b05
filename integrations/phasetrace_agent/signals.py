"""Tells the application's own exceptions apart: its signal handlers run anywhere, also within our code."""

from __future__ import annotations

# Built in, and here: a module that one thread imports while another forks stays locked in the child for good
import _signal  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType


def from_handler(error: BaseException) -> bool:
    """Whether a signal handler of the application raised this, such as a timeout by `signal.alarm`."""
    try:
        handlers = _handlers()
        frame = error.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code in handlers:
                return True
            frame = frame.tb_next
    except Exception:
        pass
    return False


def pass_on(error: BaseException) -> None:
    """Raise it again if it is the application's: for every place that else would swallow it."""
    if from_handler(error):
        raise error


def _handlers() -> set[CodeType]:
    found = set()
    for number in _signal.valid_signals():
        handler = _signal.getsignal(number)
        method = vars(type(handler)).get("__call__")
        for function in (handler, getattr(handler, "func", None), method):
            code = getattr(getattr(function, "__func__", function), "__code__", None)
            if code is not None:
                found.add(code)
    return found
