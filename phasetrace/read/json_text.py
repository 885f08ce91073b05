"""JSON as files hold it: a value a line, or one value over all lines; cut off, or slightly broken.

A large document is never made into Python objects as a whole: `Raw` cuts it into its parts where they lie in
the text, and each part is decoded when it is asked for. The text is all that it takes of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any, TypeVar

from msgspec import Raw, ValidationError
from msgspec.json import Decoder

from phasetrace.read.notes import Notes
from phasetrace.read.source import BEGIN_OF_LINE, LONGEST, Source

T = TypeVar("T")
Text = bytes | bytearray | Raw

ANYTHING: Decoder[Any] = Decoder()
_PARTS = Decoder(list[Raw])
_DEEPEST_ARRAYS = 8  # in one another, of which each value is taken
_BEGIN_OF_DOCUMENT = 4096  # bytes; a first line that is no value and is longer is a broken line
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]|"', re.DOTALL)
_CLOSED_BY = {b"{": b"}", b"[": b"]"}
_DEEPEST = 512  # brackets that may be open where a cut document is closed
_SPANS = b'"spans"'
_FIRST = re.compile(rb"\s*(\S)")
_CONTROLS = bytes(32 if byte < 32 else byte for byte in range(256))
_NO_NUMBER = re.compile(rb"(?<=[:,\[])\s*-?(?:NaN|Infinity)(?=\s*[,\]}])")
_HALF_CHARACTER = re.compile(rb"(?<!\\)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def parse(data: Text) -> Any:
    """A JSON value; ValueError where it is none."""
    return decoded(ANYTHING, data)


def decoded(decoder: Decoder[T], data: Text) -> T:
    """A value of the decoder's type; ValueError where it is none.

    What strict parsers refuse and writers write all the same is understood: NaN, control characters and
    halves of characters in strings, bytes that are no UTF-8.
    """
    try:
        return decoder.decode(data)
    except ValidationError:
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        if _first(data) not in (b"{", b"["):
            raise
    try:
        return decoder.decode(_mended(data))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def values(
    source: Source, notes: Notes, decoder: Decoder[T], passed_over: tuple[bytes, ...] = ()
) -> Iterator[T | None]:
    """The value of each line, or that of the whole where its first line is no value by itself.

    Of an array the values in it are given, one by one.

    Args:
        source: what to read.
        notes: told of what is no JSON.
        decoder: of the type that values should have; what is of another is left out.
        passed_over: a line that has one of these near its begin is counted, and None in its place.
    """
    lines = source.lines(passed_over)
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        complete = line.endswith(b"\n")
        if passed_over and any(mark in line[:BEGIN_OF_LINE] for mark in passed_over):
            notes.documents += 1
            notes.cut = not complete
            yield None
            continue
        try:
            yield from _each(line, decoder, notes)
            continue
        except ValueError as error:
            refused = error
        if several := _apart(line):
            yield from _one_after_another(line, several, decoder, notes)
            continue
        if number == 1 and complete and len(line) < _BEGIN_OF_DOCUMENT:
            yield from _document(line, lines, source, notes, decoder)
            return
        notes.refuse(refused)
        if complete:
            notes.broken_line(number)
            continue
        notes.cut = True
        if number == 1:
            yield from _begun(line, decoder, notes)
    notes.cut = notes.cut or source.cut


def documents(source: Source, notes: Notes, decoder: Decoder[T]) -> Iterator[T]:
    """The value of a source, or those that stand one after another in it; closed where one is cut off."""
    data = source.whole()
    notes.cut = source.cut
    try:
        one = _shaped(decoder, data, notes)
    except ValueError as error:
        notes.refuse(error)
    else:
        yield from one
        return
    several = _apart(data)
    notes.cut = notes.cut or not several
    for begin, end in several or [(0, len(data))]:
        yield from _whole_or_begun(data[begin:end], decoder, notes)


def _shaped(decoder: Decoder[T], data: Text, notes: Notes) -> tuple[T, ...]:
    """The value, or none where it is of another shape; ValueError where it is no JSON."""
    try:
        value = decoded(decoder, data)
    except ValidationError as error:
        notes.refuse(error)
        notes.damaged += 1
        return ()
    notes.documents += 1
    return (value,)


def _whole_or_begun(data: bytes | bytearray, decoder: Decoder[T], notes: Notes) -> tuple[T, ...]:
    try:
        return _shaped(decoder, data, notes)
    except ValueError:
        notes.cut = True
    begun = closed(data)
    try:
        return _shaped(decoder, begun, notes) if begun is not None else ()
    except ValueError:
        return ()


def closed(data: bytes | bytearray) -> bytes | None:
    """A document that is cut off, ended where its last object or array ended; not sure to be JSON then.

    In an array of spans it ends behind the last whole one: half a span is a request that lacks numbers.
    """
    opened: list[bytes] = []
    end, left = 0, b""
    deepest = _DEEPEST  # brackets that may be open where it ends
    before = b""
    for match in _STRUCTURE.finditer(data):
        token = match[0]
        if token in _CLOSED_BY:
            opened.append(token)
            if len(opened) > _DEEPEST:
                return None
            if before == _SPANS and token == b"[":
                deepest = min(deepest, len(opened))
        elif token in (b"}", b"]"):
            if not opened or _CLOSED_BY[opened.pop()] != token:
                return None
            if len(opened) <= deepest:
                end, left = match.end(), b"".join(opened)
            if len(opened) < deepest:
                deepest = _DEEPEST
        before = token
    closing = b"".join(_CLOSED_BY[bytes([bracket])] for bracket in reversed(left))
    return bytes(data[:end]) + closing if end else None


def _each(data: Text, decoder: Decoder[T], notes: Notes, depth: int = 0) -> Iterator[T]:
    """Its value, or those in its arrays; ValueError before the first one where it is no JSON."""
    if _first(data) != b"[":
        try:
            value = decoded(decoder, data)
        except ValidationError as error:
            notes.refuse(error)
            notes.damaged += b'"spans"' in memoryview(data)[:_BEGIN_OF_DOCUMENT].tobytes()
            return
        notes.documents += 1
        yield value
        return
    parts = decoded(_PARTS, data)
    notes.documents += 1
    for part in parts if depth < _DEEPEST_ARRAYS else ():
        try:
            yield from _each(part, decoder, notes, depth + 1)
        except ValueError:
            notes.damaged += 1


def _apart(data: bytes | bytearray) -> list[tuple[int, int]]:
    """Where documents that stand one after another begin and end; none where they are fewer than two.

    The last may be cut off. `cat` and `jq` leave such texts.
    """
    found: list[tuple[int, int]] = []
    begin, end, depth = 0, 0, 0
    for match in _STRUCTURE.finditer(data):
        token = match[0]
        if token in _CLOSED_BY:
            if not depth:
                begin = match.start()
                if data[end:begin].strip():
                    return []
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth < 0:
                return []
            if not depth:
                end = match.end()
                found.append((begin, end))
    if depth:
        found.append((begin, len(data)))
    return found if len(found) > 1 else []


def _one_after_another(
    data: bytes | bytearray, places: Iterable[tuple[int, int]], decoder: Decoder[T], notes: Notes
) -> Iterator[T]:
    for begin, end in places:
        one = data[begin:end]
        try:
            yield from _each(one, decoder, notes)
        except ValueError:
            before = notes.documents
            yield from _begun(one, decoder, notes)
            notes.damaged += notes.documents == before


def _begun(data: bytes | bytearray, decoder: Decoder[T], notes: Notes) -> Iterator[T]:
    """What can be read of a document that is cut off."""
    begun = closed(data)
    if begun is not None:
        try:
            yield from _each(begun, decoder, notes)
            notes.cut = True
        except ValueError:
            return


def _document(
    first: Text, rest: Iterable[Text], source: Source, notes: Notes, decoder: Decoder[T]
) -> Iterator[T]:
    whole = bytearray(first)  # pieces to be joined would be in memory twice
    for line in rest:
        if len(whole) + len(line) > LONGEST:
            raise source.too_long("document")
        whole += line
    try:
        yield from _each(whole, decoder, notes)
        return
    except ValueError as error:
        notes.refuse(error)
    several = _apart(whole)
    if any(whole.find(b"\n", begin, end) >= 0 for begin, end in several):  # else they are lines
        yield from _one_after_another(whole, several, decoder, notes)
        return
    found = False
    broken: list[int] = []
    for number, line in enumerate(BytesIO(whole), 1):  # lines after all, with a broken first one
        if not line.isspace():
            before = notes.documents
            try:
                yield from _each(line, decoder, notes)
            except ValueError:
                if _first(line) in (b"{", b"["):
                    broken.append(number)
            found = found or notes.documents > before and _first(line) == b"{"
    if found:
        for number in broken:
            notes.broken_line(number)
    else:
        yield from _begun(whole, decoder, notes)


def _mended(data: Text) -> bytes:
    text = bytes(data).translate(_CONTROLS).decode("utf-8", "replace").encode()
    if b"NaN" in text or b"Infinity" in text:
        text = _NO_NUMBER.sub(b"null", text)
    return _HALF_CHARACTER.sub(b"?", text) if b"\\u" in text else text


def _first(data: Text) -> bytes:
    """The first byte that is no space."""
    match = _FIRST.match(memoryview(data))
    return match[1] if match is not None else b""
