"""A client of an OpenAI server with a stopwatch; many run in one thread, and none waits for a lock."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Watched:
    """Seconds from asking until the first and the last byte of the answer, and the answer."""

    status: int
    ttft: float
    e2e: float
    body: str

    @property
    def events(self) -> list[Any]:
        """The objects of a stream."""
        lines = [line.removeprefix("data: ") for line in self.body.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


async def ask(port: int, path: str, body: dict[str, Any], traceparent: str | None = None) -> Watched:
    """One exchange on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    payload = json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", "Host: localhost", "Connection: close", "Content-Type: application/json"]
    head += [f"Content-Length: {len(payload)}"] + ([f"traceparent: {traceparent}"] if traceparent else [])
    begin = time.monotonic()
    try:
        writer.write("\r\n".join([*head, "", ""]).encode() + payload)
        answer = await reader.readuntil(b"\r\n\r\n")
        status = int(answer.split(b" ", 2)[1])
        first = await reader.read(1)
        ttft = time.monotonic() - begin
        rest = first + await reader.read()
        e2e = time.monotonic() - begin
    finally:
        writer.close()
    return Watched(status, ttft, e2e, rest.decode())
