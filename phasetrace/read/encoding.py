"""Text of other encodings -> UTF-8, which JSON and logs are else: Windows writes UTF-16 where `>` does."""

from __future__ import annotations

import codecs
import io
from typing import cast

_ENCODINGS = {  # the longer marks first: one begins like another
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CHUNK = 256 << 10


def in_utf8(stream: io.BufferedReader) -> io.BufferedReader:
    """The stream itself, or what it is in UTF-8 where it begins with the byte order mark of another."""
    head = stream.peek(len(codecs.BOM_UTF32_LE))
    for mark, name in _ENCODINGS.items():
        if head.startswith(mark):
            return cast(io.BufferedReader, io.BufferedReader(_InUtf8(stream, name), _CHUNK))
    return stream


class _InUtf8(io.RawIOBase):
    """Decodes while it is read; what is no text becomes a replacement character."""

    def __init__(self, stream: io.BufferedReader, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._left = b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer."""
        view = memoryview(cast(bytearray, buffer)).cast("B")
        while not self._left:
            data = self._stream.read1(_CHUNK)
            self._left = self._decoder.decode(data, final=not data).encode("utf-8", "replace")
            if not data:
                break
        given, self._left = self._left[: len(view)], self._left[len(view) :]
        view[: len(given)] = given
        return len(given)
