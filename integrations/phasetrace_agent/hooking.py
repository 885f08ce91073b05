"""Wraps methods of an engine so that the engine does not notice.

A wrapper is one plain function: it lets the call through when recording is off, runs our part inside `try`,
and gives an error of ours to `Hook.fail`, which turns that hook off for good. The application's own
exceptions are never caught.
"""

from __future__ import annotations

import functools

from . import bootstrap, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = Callable[..., Any]

_MARK = "__phasetrace__"


class Hook:
    """One place that is hooked. Wrappers ask `on` first."""

    __slots__ = ("on", "where")

    def __init__(self, where: str):
        self.where = where
        self.on = True

    def fail(self, error: BaseException) -> None:
        """Our part failed: never again here, and told once. A signal handler's exception goes on its way."""
        signals.pass_on(error)
        self.on = False
        try:
            recorder = bootstrap.recorder()
            if recorder is not None:
                recorder.failed(self.where, error)
        except Exception as another:
            signals.pass_on(another)


def wrap(owner: Any, name: str, make_wrapper: Callable[[Function], Function]) -> bool:
    """Replace what `owner` itself defines as `name` by `make_wrapper(original)`; False if it does not.

    The wrapper looks like the original (name, signature, `__wrapped__`). Wrapping a second time does nothing.
    """
    original = vars(owner).get(name)
    plain = getattr(original, "__func__", original)
    if not callable(plain):
        return False
    if getattr(plain, _MARK, None) is not None:
        return True
    wrapper = functools.wraps(plain)(make_wrapper(plain))
    wrapper.__phasetrace__ = original  # type: ignore[attr-defined]
    kind = type(original)
    setattr(owner, name, kind(wrapper) if kind in (staticmethod, classmethod) else wrapper)
    return True


def unwrap(owner: Any, name: str) -> bool:
    """Put the original back; False where the wrapper is not ours or somebody has wrapped it since."""
    current = vars(owner).get(name)
    plain = getattr(current, "__func__", current)
    original = getattr(plain, _MARK, None)
    # Whoever wraps our wrapper copies its mark, but not what it wraps.
    if original is None or getattr(plain, "__wrapped__", None) is not getattr(original, "__func__", original):
        return False
    setattr(owner, name, original)
    return True


def defining_class(cls: type, name: str) -> type | None:
    """The class in the MRO that defines `name`: the one to wrap."""
    for base in cls.__mro__:
        if name in vars(base):
            return base
    return None


def argument(args: tuple[Any, ...], kwargs: dict[str, Any], at: int, name: str) -> Any:
    """What a call gave its original's parameter `name`, which is number `at` of `args`; None if left out.

    A wrapper takes `*args, **kwargs`: one with parameter names of its own would refuse calls by keyword.
    """
    return args[at] if at < len(args) else kwargs.get(name)


def around(
    hook: Hook, before: Function | None = None, after: Function | None = None
) -> Callable[[Function], Function]:
    """A `make_wrapper` for the common case: `token = before(args, kwargs)`, the call, `after(token, result)`.

    `after` is not called when the call raises: whoever must know of errors writes its own wrapper.
    """

    def make_wrapper(original: Function) -> Function:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            token = None
            if hook.on and before is not None:
                try:
                    token = before(args, kwargs)
                except Exception as error:
                    hook.fail(error)
            result = original(*args, **kwargs)
            if hook.on and after is not None:
                try:
                    after(token, result)
                except Exception as error:
                    hook.fail(error)
            return result

        return wrapper

    return make_wrapper
