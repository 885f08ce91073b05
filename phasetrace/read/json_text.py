"""JSON as files hold it: a value a line, or one value over all lines; cut off, or slightly broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

import orjson

from phasetrace.read.notes import Notes
from phasetrace.read.source import LONGEST, Source

_BEGIN_OF_DOCUMENT = 4096  # bytes; a first line that is no value and is longer is a broken line
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]|"', re.DOTALL)
_CLOSED_BY = {b"{": b"}", b"[": b"]"}
_DEEPEST = 512  # brackets that may be open where a cut document is closed


def parse(data: bytes | bytearray) -> Any:
    """A JSON value; ValueError where it is none.

    What strict parsers refuse and writers write all the same is understood: NaN, control characters in
    strings, bytes that are no UTF-8.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    if data.lstrip()[:1] not in (b"{", b"["):
        raise ValueError("no JSON object or array")
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def values(source: Source, notes: Notes, passed_over: tuple[bytes, ...] = ()) -> Iterator[Any]:
    """The value of each line, or that of the whole where its first line is no value by itself.

    Args:
        source: what to read.
        notes: told of what is no JSON.
        passed_over: a line that has one of these near its begin is counted, and not parsed.
    """
    lines = source.lines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        complete = line.endswith(b"\n")
        if passed_over and any(mark in line[:_BEGIN_OF_DOCUMENT] for mark in passed_over):
            notes.documents += 1
            notes.cut = not complete
            yield None
            continue
        try:
            value = parse(line)
        except ValueError:
            if number == 1 and complete and len(line) < _BEGIN_OF_DOCUMENT:
                yield from _document(line, lines, source, notes)
                return
            if complete:
                notes.broken_line(number)
                continue
            notes.cut = True
            if number > 1:
                continue
            value = closed(line)
            if value is None:
                continue
        notes.documents += 1
        yield value
    notes.cut = notes.cut or source.cut


def document(source: Source, notes: Notes) -> Any:
    """The one value of a source, closed where it is cut off; None where nothing of it can be read."""
    data = source.whole()
    notes.cut = source.cut
    try:
        value = parse(data)
    except ValueError:
        value, notes.cut = closed(data), True
    del data
    if value is not None:
        notes.documents += 1
    return value


def closed(data: bytes) -> Any:
    """The value of a document that is cut off, up to where its last object or array ended, if any."""
    opened: list[bytes] = []
    end, left = 0, b""
    for match in _STRUCTURE.finditer(data):
        token = match[0]
        if token in _CLOSED_BY:
            opened.append(token)
            if len(opened) > _DEEPEST:
                return None
        elif token in (b"}", b"]"):
            if not opened or _CLOSED_BY[opened.pop()] != token:
                return None
            end, left = match.end(), b"".join(opened)
    closing = b"".join(_CLOSED_BY[bytes([bracket])] for bracket in reversed(left))
    try:
        return parse(data[:end] + closing) if end else None
    except ValueError:
        return None


def _document(first: bytes, rest: Iterable[bytes], source: Source, notes: Notes) -> Iterator[Any]:
    whole = bytearray(first)  # pieces to be joined would be in memory twice
    for line in rest:
        whole += line
        if len(whole) > LONGEST:
            raise source.too_long("document")
    try:
        value = parse(whole)
    except ValueError:
        pass
    else:
        del whole  # what was made of it takes many times as much
        notes.documents += 1
        yield value
        return
    found = False
    for number, line in enumerate(BytesIO(whole), 1):  # lines after all, with a broken first one
        if line.strip():
            try:
                value = parse(line)
            except ValueError:
                if line.lstrip()[:1] in (b"{", b"["):
                    notes.broken_line(number)
                continue
            found = found or isinstance(value, dict)
            notes.documents += 1
            yield value
    if not found and (value := closed(bytes(whole))) is not None:
        notes.cut = True
        notes.documents += 1
        yield value
