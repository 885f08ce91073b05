"""The spool's record layout: the one place where bytes are defined, both directions side by side.

A spool is a folder of segments. A segment is a file of SEGMENT_BYTES, allocated whole before it is mapped:
a header, then records laid end to end, then zeros. A record is

    u32 length | u8 kind | 3 bytes 0 | payload | padding to 8 | u32 0 | u32 length ^ ECHO

`length` counts all of it and is written last, so a record without it is not there, and one whose echo
differs is torn. Integers are little-endian, times monotonic nanoseconds. Request and stream ids are
numbered within a process.

A segment is `sealed` when its writer will add nothing more: whoever reads a sealed one to its end may
unlink it, and so makes room for the process under its cap. Beside the segments lie markers of loss
(`lost_name`) that take no space.
"""

from __future__ import annotations

import struct

from .codes import *  # noqa: F403  one namespace for all who read or write records

TYPE_CHECKING = (
    False  # `typing` costs milliseconds at start, and so does `json`, which is imported at first use
)
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Union

    Buffer = Union[bytes, bytearray, memoryview]
    Pairs = Sequence[tuple[int, int]]

MAGIC = b"PHTSPOOL"
VERSION = 1
SEGMENT_BYTES = 1 << 20
ECHO = 0x5A17EC40

# magic, version, header size, pid, parent pid, segment number in the process, exec counter, process key,
# monotonic, wall
SEGMENT_HEADER = struct.Struct("<8sHHIIIIQQQ")
HEADER_BYTES = 64
PROCESS_START = struct.Struct(
    "<Q"
)  # follows it: start of the process in clock ticks since boot; tells a reused pid
SEALED = struct.Struct("<I")  # and then: 1 when the writer is done with this segment
SEALED_AT = HEADER_BYTES - SEALED.size

RECORD_HEAD = struct.Struct("<IBxxx")
RECORD_TAIL = struct.Struct("<II")
FRAME_BYTES = RECORD_HEAD.size + RECORD_TAIL.size

# stream, index, begin, segments, joined, left, scheduled, yielded, number
_STEP = struct.Struct("<IIQHHHHHH")
_MARK = struct.Struct("<IIQ")  # request, point, time
_CLOCK = struct.Struct("<QQ")  # monotonic, wall
_BLOB = struct.Struct("<IIQ")  # id, scope or 0, time; JSON follows
_PREFIX = struct.Struct("<III")  # request, sequence, chunks; u64 hashes, then u32 lengths
_PAUSE = struct.Struct("<IIQQQ")  # kind (1 = gc), generation, begin, end, collected
_DEVICE = struct.Struct("<IIQ")  # stream, index, nanoseconds
_BATCH_STATE = struct.Struct(
    "<IIQIIIIBB2x"
)  # stream, index, time, running, waiting, KV used, KV total, reason, preempted
_STEP_TOKENS = struct.Struct("<IIIII")  # stream, index, proposed, accepted, discarded
_EXECUTION = struct.Struct("<IIQQQ")  # number, tokens, begin, end, nanoseconds on the device
# request, last step, time, tokens of prompt and output, cached in the engine and elsewhere, how
_ENDED = struct.Struct("<IiQIIIIB3x")

GC = 1
_PAIR = 8  # bytes of a (request, count) pair


def frame_bytes(payload_bytes: int) -> int:
    """The length of a record with a payload of that many bytes."""
    return (FRAME_BYTES + payload_bytes + 7) & ~7


def step_record(segments: int, counts: int) -> tuple[int, struct.Struct]:
    """A whole STEP record but for its length word, in one `Struct`; with its length.

    The hot path writes a step by one call of this: kind, the head of `encode_step`, ends, codes, counts,
    the echo.
    """
    payload = _STEP.size + segments * 9 + counts * 4
    length = frame_bytes(payload)
    form = "<B3x%s%dQ%dB%dI%dx4xI" % (
        _STEP.format.lstrip("<"),
        segments,
        segments,
        counts,
        length - FRAME_BYTES - payload,
    )
    return length, struct.Struct(form)


# The same of a step of four segments whose batch did not change, by far the most frequent one. Each field
# costs time, so neighbours are one: kind, stream, index, begin, segments and three counts (u64), count and
# number (u32), four ends, four codes (u32), echo.
PLAIN_STEP = struct.Struct("<B3xIIQQIQQQQI4xI")
PLAIN_STEP_BYTES = RECORD_HEAD.size - 4 + PLAIN_STEP.size


def lost_name(process: int, count: int, why: str) -> str:
    """The name of the empty file that tells of lost records where there is no room for a record."""
    return "%016x-%d-%s.lost" % (process, count, why)


def parse_lost(name: str) -> tuple[int, int, str]:
    """(process, count, why) of a file name that ends in `.lost`."""
    process, count, why = name[: -len(".lost")].split("-", 2)
    return int(process, 16), int(count), why


def encode_step(
    stream: int,
    index: int,
    begin: int,
    codes: Sequence[int],
    ends: Sequence[int],
    joined: Sequence[int] = (),
    left: Sequence[int] = (),
    scheduled: Pairs = (),
    yielded: Pairs = (),
    number: int = 0,
) -> bytes:
    """A step's payload.

    `codes` and `ends` (absolute times) cut the step into segments laid end to end from `begin`. `joined`
    and `left` are the ids of the requests that entered the batch with this step and left it after it;
    `scheduled` holds (request, tokens) for those that computed other than one token for each of their
    sequences, `yielded` (request, tokens) for those that gave out other than one. `number` counts what was
    scheduled, modulo 65,536: workers count what they execute.
    """
    n = len(codes)
    head = _STEP.pack(stream, index, begin, n, len(joined), len(left), len(scheduled), len(yielded), number)
    if not (joined or left or scheduled or yielded):
        return head + struct.pack("<%dQ%dB" % (n, n), *ends, *codes)
    pairs = [x for pair in scheduled for x in pair] + [x for pair in yielded for x in pair]
    counts = len(joined) + len(left) + len(pairs)
    return head + struct.pack("<%dQ%dB%dI" % (n, n, counts), *ends, *codes, *joined, *left, *pairs)


def decode_step(payload: Buffer) -> dict[str, Any]:
    """`encode_step`'s arguments as a dict of plain lists."""
    stream, index, begin, n, joined, left, scheduled, yielded, number = _STEP.unpack_from(payload)
    counts = joined + left + 2 * (scheduled + yielded)
    values = struct.unpack_from("<%dQ%dB%dI" % (n, n, counts), payload, _STEP.size)
    ends, codes, rest = list(values[:n]), list(values[n : 2 * n]), values[2 * n :]
    at_left, at_scheduled = joined, joined + left
    at_yielded = at_scheduled + 2 * scheduled
    return {
        "stream": stream,
        "index": index,
        "number": number,
        "begin": begin,
        "codes": codes,
        "ends": ends,
        "joined": list(rest[:at_left]),
        "left": list(rest[at_left:at_scheduled]),
        "scheduled": list(zip(rest[at_scheduled:at_yielded:2], rest[at_scheduled + 1 : at_yielded : 2])),
        "yielded": list(zip(rest[at_yielded::2], rest[at_yielded + 1 :: 2])),
    }


def encode_blob(ident: int, scope: int, time: int, data: Mapping[str, Any]) -> bytes:
    """The payload of FACTS, ARRIVED, DETAIL, FINISHED, TROUBLE, STAGE: id, scope of FACTS, time, JSON."""
    import json

    return _BLOB.pack(ident, scope, time) + json.dumps(data, separators=(",", ":")).encode()


def decode_blob(payload: Buffer) -> tuple[int, int, int, dict[str, Any]]:
    """(id, scope, time, object)."""
    import json

    ident, scope, time = _BLOB.unpack_from(payload)
    return ident, scope, time, json.loads(bytes(payload[_BLOB.size :]).rstrip(b"\0"))


def encode_mark(request: int, point: int, time: int) -> bytes:
    """The payload of MARK."""
    return _MARK.pack(request, point, time)


def decode_mark(payload: Buffer) -> tuple[Any, ...]:
    """(request, point, time)."""
    return _MARK.unpack_from(payload)


def encode_clock(monotonic: int, wall: int) -> bytes:
    """The payload of CLOCK."""
    return _CLOCK.pack(monotonic, wall)


def decode_clock(payload: Buffer) -> tuple[Any, ...]:
    """(monotonic, wall)."""
    return _CLOCK.unpack_from(payload)


def encode_prefix(request: int, sequence: int, hashes: Sequence[int], lengths: Sequence[int]) -> bytes:
    """The payload of PREFIX: salted 64-bit hashes of a prompt's chunks and their lengths in tokens."""
    n = len(hashes)
    return _PREFIX.pack(request, sequence, n) + struct.pack("<%dQ%dI" % (n, n), *hashes, *lengths)


def decode_prefix(payload: Buffer) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """(request, sequence, hashes, lengths)."""
    request, sequence, n = _PREFIX.unpack_from(payload)
    values = struct.unpack_from("<%dQ%dI" % (n, n), payload, _PREFIX.size)
    return request, sequence, values[:n], values[n:]


def encode_pause(kind: int, generation: int, begin: int, end: int, collected: int) -> bytes:
    """The payload of PAUSE."""
    return _PAUSE.pack(kind, generation, begin, end, collected)


def decode_pause(payload: Buffer) -> tuple[Any, ...]:
    """(kind, generation, begin, end, collected)."""
    return _PAUSE.unpack_from(payload)


def encode_device(stream: int, index: int, nanoseconds: int) -> bytes:
    """The payload of DEVICE."""
    return _DEVICE.pack(stream, index, nanoseconds)


def decode_device(payload: Buffer) -> tuple[Any, ...]:
    """(stream, index, nanoseconds)."""
    return _DEVICE.unpack_from(payload)


def encode_batch_state(
    stream: int,
    index: int,
    time: int,
    running: int,
    waiting: int,
    kv_used: int,
    kv_total: int,
    reason: int,
    preempted: int = 0,
) -> bytes:
    """The payload of BATCH_STATE: it holds from this step on, until the next one of the same stream.

    `running`, `waiting` and `preempted` (by the step, 255 at most) count requests, `kv_used` and `kv_total`
    blocks; `reason` is a HEAD_REASON_CODE.
    """
    some = min(preempted, 255)
    return _BATCH_STATE.pack(stream, index, time, running, waiting, kv_used, kv_total, reason, some)


def decode_batch_state(payload: Buffer) -> tuple[Any, ...]:
    """(stream, index, time, running, waiting, kv_used, kv_total, reason, preempted)."""
    return _BATCH_STATE.unpack_from(payload)


def encode_step_tokens(stream: int, index: int, proposed: int, accepted: int, discarded: int) -> bytes:
    """The payload of STEP_TOKENS: speculated, found right, and sampled for nobody."""
    return _STEP_TOKENS.pack(stream, index, proposed, accepted, discarded)


def decode_step_tokens(payload: Buffer) -> tuple[Any, ...]:
    """(stream, index, proposed, accepted, discarded)."""
    return _STEP_TOKENS.unpack_from(payload)


def encode_execution(number: int, tokens: int, begin: int, end: int, device_ns: int) -> bytes:
    """The payload of EXECUTION: the `number`th that this worker was given, of so many tokens.

    `begin` and `end` are the host's, `device_ns` is what it took on the device; on a CPU that is the same.
    """
    return _EXECUTION.pack(number, tokens, begin, end, device_ns)


def decode_execution(payload: Buffer) -> tuple[Any, ...]:
    """(number, tokens, begin, end, device_ns)."""
    return _EXECUTION.unpack_from(payload)


def encode_ended(
    request: int, time: int, ending: str, prompt: int, output: int, cached: int, external: int, last_step: int
) -> bytes:
    """The payload of ENDED. `cached` prompt tokens had their KV in the engine, `external` were fetched."""
    code = ENDING_CODE[ending]  # noqa: F405
    return _ENDED.pack(request, last_step, time, prompt, output, cached, external, code)


def decode_ended(payload: Buffer) -> tuple[int, int, dict[str, Any]]:
    """(request, time, what a FINISHED would say)."""
    request, last_step, time, prompt, output, cached, external, code = _ENDED.unpack_from(payload)
    reason = ENDINGS[code]  # noqa: F405
    row = {"prompt": prompt, "padding": 0, "output": output, "reason": reason}
    data = {"sequences": [row], "reason": reason, "last_step": last_step}
    return request, time, {**data, "cached": cached + external, "cached_external": external}
