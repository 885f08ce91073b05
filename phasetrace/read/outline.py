"""The outline of a JSON text from its beginning alone: which keys stand where. It tells formats apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\],:]', re.DOTALL)
_DEEPEST = 8  # levels; no format is known by what lies deeper
_MOST = 4096  # tokens


@lru_cache(maxsize=1)  # asked for by each who may know the format
def outline(head: bytes) -> frozenset[str]:
    """Paths of keys, such as `resourceSpans`, `[].traceId` or `data[].spans`; none where it is no JSON.

    The text may be cut anywhere, and what is broken in it is passed over.
    """
    if head.lstrip()[:1] not in (b"{", b"["):
        return frozenset()
    return frozenset(_paths(head))


def _paths(head: bytes) -> Iterator[str]:
    places: list[str] = []  # the path of each value that is open
    key = ""  # of the value that comes next
    text = b""
    for number, match in enumerate(_TOKEN.finditer(head)):
        token = match[0]
        if number > _MOST:
            return
        match token:
            case b"{" | b"[":
                parent = places[-1] if places else ""
                here = parent + key
                places.append(here + ("[]" if token == b"[" else ""))
                key = ""
            case b"}" | b"]":
                if not places:
                    return
                places.pop()
                key = ""
            case b":":
                path = places[-1] if places else ""
                key = ("." if path else "") + text[1:-1].decode("utf-8", "replace")
                if len(places) <= _DEEPEST:
                    yield path + key
            case b",":
                key = ""
            case _:
                text = token
