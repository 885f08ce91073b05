"""Whatever stands in a file: a recording that can be analysed, or one line. Mutated from real writers' files.

`make fuzz` takes 100,000 inputs, others each time, and looks at time and memory too; all else a fixed few.
"""

from __future__ import annotations

import gzip
import os
import random
import resource
import time
from pathlib import Path

import pytest
import zstandard

from phasetrace.analyze import breakdown
from phasetrace.errors import PhasetraceError
from phasetrace.read import read
from tests.read.real_files import real_spans
from tests.read.test_formats import FORMATS, lines, zstd_frames
from tests.read.test_records import DYNAMO, LLAMA, OFFLINE, SGLANG, TENSORRT

CAMPAIGN = os.environ.get("PHASETRACE_CAMPAIGN") == "fuzz"
INPUTS = 100_000 if CAMPAIGN else 1_000
MOST_MEMORY_KB = 200 << 10
LONGEST_S = 1.0
TOKENS = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
        b":",
        b"\\",
        b"\n",
        b"\0",
        b"\xff",
        b"null",
        b"true",
        b"-1",
        b"0",
        b"1e999",
    ),
    *(
        b"NaN",
        b'"-5"',
        b"9" * 400,
        b"18446744073709551616",
        b'{"stringValue":"x"}',
        b'{"intValue":"x"}',
        b"[[[[[[",
    ),
    *(
        b'"spans":',
        b'"traceId":',
        b'"resourceSpans":',
        b'"12.3ms"',
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x28\xb5\x2f\xfd",
    ),
)


def seeds() -> list[bytes]:
    """A small file of each format, plain and packed, and real spans where they are here."""
    plain = [make() for make in FORMATS.values()]
    packed = [
        gzip.compress(plain[0]),
        zstandard.compress(plain[3]),
        zstd_frames(plain[3]),
        zstd_frames(plain[7]),
    ]
    records = [lines(record, record) for record in (DYNAMO, LLAMA, OFFLINE, SGLANG, TENSORRT)]
    return plain + packed + records + real_spans()


def mutated(chance: random.Random, files: list[bytes]) -> bytes:
    """One to six changes."""
    data = bytearray(chance.choice(files))
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        at = chance.randrange(len(data) + 1)
        length = chance.choice((1, 1, 4, 16, 200))
        match chance.randrange(7):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length] * chance.choice((1, 2, 50))
            case 3:
                data[at : at + chance.choice((0, length))] = chance.choice(TOKENS)
            case 4:
                del data[at:]
            case 5:
                other = chance.choice(files)
                begin = chance.randrange(len(other))
                data[at : at + length] = other[begin : begin + length]
            case 6:
                if (digit := next((i for i in range(at, len(data)) if 48 <= data[i] < 58), None)) is not None:
                    data[digit] = chance.randrange(48, 58)
    return bytes(data)


@pytest.mark.parametrize("part", range(10))
def test_no_input_makes_it_crash(part: int, tmp_path: Path) -> None:
    chance = random.Random(None if CAMPAIGN else part)
    files = seeds()
    path = tmp_path / "input"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(INPUTS // 10):
        content = mutated(chance, files)
        path.write_bytes(content)
        begin = time.process_time()
        try:
            breakdown(read(path))
        except PhasetraceError as error:
            assert "\n" not in str(error) and str(path) in str(error)
        except BaseException:
            kept = Path(os.environ.get("TMPDIR", "/tmp")) / "phasetrace-fuzz-input"
            kept.write_bytes(content)
            print(f"the input is kept as {kept}")
            raise
        if CAMPAIGN:
            assert time.process_time() - begin < LONGEST_S
    if CAMPAIGN:
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY_KB
