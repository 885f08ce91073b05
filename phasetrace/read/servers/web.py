"""Asks over HTTP: with a header from the environment, within limits of time and size, errors in one line."""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import time
from collections.abc import Mapping
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from phasetrace import __version__
from phasetrace.errors import UsageError
from phasetrace.read.json_text import parse
from phasetrace.read.source import LONGEST, Progress, Source

HEADERS = "PHASETRACE_HEADERS"  # as OTEL_EXPORTER_OTLP_HEADERS: name=value,name=value, values percent-encoded
SILENCE_S = 60.0  # between two bytes
PATIENCE_S = 600.0  # for one answer
_PIECE = 1 << 20
_SHOWN = 160  # characters of what a server says


class Web:
    """A server, asked again and again."""

    def __init__(self, base: str, progress: Progress | None = None) -> None:
        self.base = base
        self.progress = progress
        self._headers = {
            "User-Agent": f"phasetrace/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            **_headers(),
        }
        self._opener = build_opener(_SameHost)

    def get(self, path: str, query: Mapping[str, str | int] = {}) -> bytes | None:
        """What the server has there; None where it has nothing.

        Raises:
            UsageError: it cannot be reached, refuses, or its answer is too long or too slow.
        """
        url = f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            with self._opener.open(Request(url, headers=self._headers), timeout=SILENCE_S) as answer:
                data = self._whole(answer)
        except HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                raise UsageError(
                    f"{self.base} answers {error.code} {_said(error)}{_hint(error.code)}"
                ) from None
        except (URLError, http.client.HTTPException, OSError, ValueError) as error:
            raise UsageError(f"{self.base} cannot be read: {_reason(error)}") from None
        return bytes(Source(self.base, raw=io.BytesIO(data)).whole())  # unpacked

    def get_object(self, path: str, query: Mapping[str, str | int] = {}) -> dict[str, Any] | None:
        """The JSON object there. A server of pages answers with one of them instead: that is none."""
        data = self.get(path, query)
        return None if data is None else as_object(data)

    def _whole(self, answer: Any) -> bytes:
        data = bytearray()
        total = int(answer.headers.get("Content-Length") or 0) or None
        end = time.monotonic() + PATIENCE_S
        while piece := answer.read1(_PIECE):
            data += piece
            if len(data) > LONGEST:
                raise UsageError(
                    f"{self.base} answers with more than {LONGEST >> 20} MiB; ask for less with `limit`"
                )
            if time.monotonic() > end:
                raise UsageError(f"{self.base} takes over {PATIENCE_S:.0f} s; ask for less with `limit`")
            if self.progress is not None:
                self.progress(len(data), total)
        return bytes(data)


def as_object(data: bytes) -> dict[str, Any] | None:
    """The JSON object of an answer, if it is one."""
    try:
        found = parse(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class _SameHost(HTTPRedirectHandler):
    """Headers are for the host that the user named, and go to no other."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        """Follow it on the same host only."""
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            raise UsageError(
                f"{old.scheme}://{old.netloc} sends on to {new.scheme}://{new.netloc}; name that"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _headers() -> dict[str, str]:
    found = {}
    for pair in filter(None, os.environ.get(HEADERS, "").split(",")):
        name, equals, value = pair.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not name or not (name + value).isprintable() or not (name + value).isascii():
            raise UsageError(f"{HEADERS} is not understood; write it as Authorization=Bearer%20TOKEN")
        found[name] = value
    return found


def _said(error: HTTPError) -> str:
    """The begin of what it says beside the number, in one line."""
    try:
        text = error.read(4 * _SHOWN).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        text = ""
    line = " ".join(text.split()) or str(error.reason)
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


def _hint(code: int) -> str:
    return f"; a header for it goes into {HEADERS}" if code in (401, 403) else ""


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, URLError) else error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({inner.verify_message})"
    if isinstance(inner, (TimeoutError, socket.timeout)):
        return f"no answer within {SILENCE_S:.0f} s"
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return " ".join(str(inner).split()) or type(inner).__name__
