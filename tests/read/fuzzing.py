"""Mutated files for each reader: what stands in one is read, or refused in one line, soon and in little room.

`make fuzz` runs `python -m tests.read.fuzzing`: 100,000 inputs a reader, in processes of their own, each time
others unless a seed is given. An input that fails is kept as a file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import zstandard

from phasetrace.analyze import breakdown
from phasetrace.errors import PhasetraceError
from phasetrace.model import Table
from phasetrace.read import engine_config, read_any
from tests.read import test_engine_config, test_summary, test_triton
from tests.read.real_files import real_spans
from tests.read.test_formats import FORMATS, lines, zstd_frames
from tests.read.test_records import DYNAMO, LLAMA, OFFLINE, SGLANG, TENSORRT

INPUTS = 100_000  # a reader
LONGEST_S = 1.0  # of CPU time, for one input
MOST_MEMORY = 200 << 20
_PIECE = 5_000  # inputs; each piece has a process and a seed of its own
_TOKENS = (
    b'{|}|[|]|"|,|:|\\|\n|\0|\xff|null|true|-1|0|1e999|NaN|"-5"|18446744073709551616|{"stringValue":"x"}|'
    b'{"intValue":"x"}|[[[[[[|"spans":|"traceId":|"resourceSpans":|"12.3ms"|\x0a\xff\xff\xff\xff\x0f|\x28\xb5\x2f\xfd'
).split(b"|") + [b"9" * 400]


@cache
def seeds() -> dict[str, list[bytes]]:
    """Files of each reader, as its writers write them."""
    made = {name: make() for name, make in FORMATS.items()}

    def named(*beginnings: str) -> list[bytes]:
        return [content for name, content in made.items() if name.startswith(beginnings)]

    def real(pattern: str) -> list[bytes]:
        return [path.read_bytes() for path in sorted(Path(__file__).with_name("made").glob(pattern))]

    line = made["OTLP JSON lines"]
    return {
        "OTLP JSON": named("OTLP JSON") + real("[!s]*.json") + real("sdk*.jsonl") + real_spans(),
        "Tempo, Grafana, Jaeger API v3": named("Tempo", "Grafana", "Jaeger API"),
        "OTLP protobuf": named("OTLP protobuf") + real("*.pb"),
        "Jaeger": named("Jaeger,") + [made["Jaeger"]],
        "Zipkin": named("Zipkin") + real("*zipkin.json"),
        "console exporter": named("console") + real("*.txt"),
        "plain spans": named("bare spans", "array of spans", "JSON lines"),
        "records": [lines(record, record) for record in (DYNAMO, LLAMA, OFFLINE, SGLANG, TENSORRT)]
        + real("vllm*.jsonl"),
        "Triton": [json.dumps(document).encode() for document in (test_triton.WHOLE, test_triton.ENSEMBLE)],
        "gzip": [gzip.compress(line), gzip.compress(made["Jaeger"])],
        "zstd": [zstandard.compress(line), zstd_frames(line), zstd_frames(made["OTLP protobuf"])],
        "summary/1": [json.dumps(test_summary.WHOLE).encode()],
        "engine config": [json.dumps(test_engine_config.STATED).encode(), test_engine_config.LOG.encode()]
        + real("vllm.log"),
    }


def mutated(chance: random.Random, files: Sequence[bytes]) -> bytes:
    """A file with one to six changes."""
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
                data[at : at + chance.choice((0, length))] = chance.choice(_TOKENS)
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


def tried(reader: str, path: Path) -> str:
    """What came of a file: `read`, or `refused` in one line that names it; anything else raises."""
    try:
        if reader == "engine config":
            engine_config(path)
            return "read"
        found = read_any(path)
        if not isinstance(found, Table):
            breakdown(found)
        return "read"
    except PhasetraceError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        return "refused"


@dataclass(frozen=True)
class Finding:
    """An input that did what none may do."""

    reader: str
    what: str
    input: bytes


def piece(reader: str, seed: int, inputs: int) -> tuple[Counter[str], list[Finding]]:
    """Try so many inputs in this process, within limits of time and memory."""
    chance = random.Random(f"{reader} {seed}")
    came: Counter[str] = Counter()
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder, _limited_memory():
        path = Path(folder) / "input"
        for _ in range(inputs):
            content = mutated(chance, seeds()[reader])
            path.write_bytes(content)
            begin = time.process_time()
            try:
                with _limited_time():
                    came[tried(reader, path)] += 1
            except BaseException as error:
                findings.append(Finding(reader, f"{type(error).__name__}: {error}"[:300], content))
                continue
            if (took := time.process_time() - begin) > LONGEST_S:
                findings.append(Finding(reader, f"took {took:.1f} s", content))
    return came, findings


class TookTooLong(BaseException):
    """No handler of the code under test may swallow it."""


@contextmanager
def _limited_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TookTooLong

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 2 * LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@contextmanager
def _limited_memory() -> Iterator[None]:
    """What is allocated beyond raises MemoryError, which is a finding."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def campaign(readers: Sequence[str], inputs: int, seed: int, workers: int, say: Callable[[str], None]) -> int:
    """Try them all; gives back how many findings there are."""
    found = 0
    for reader in readers:
        came: Counter[str] = Counter()
        begin = time.monotonic()
        with ProcessPoolExecutor(workers, max_tasks_per_child=1) as pool:
            sizes = [min(_PIECE, inputs - done) for done in range(0, inputs, _PIECE)]
            jobs = [pool.submit(piece, reader, seed + number, size) for number, size in enumerate(sizes)]
            for job in as_completed(jobs):
                counts, findings = job.result()
                came += counts
                for finding in findings:
                    found += 1
                    name = reader.split()[0].replace("/", "-").lower()
                    kept = Path(tempfile.gettempdir()) / f"phasetrace-fuzz-{name}-{found}"
                    kept.write_bytes(finding.input)
                    say(f"{reader}: {finding.what} (kept as {kept})")
        total = ", ".join(f"{count:,} {what}" for what, count in sorted(came.items()))
        say(f"{reader}: {inputs:,} inputs: {total}; {time.monotonic() - begin:.0f} s, seed {seed}")
    return found


def main() -> int:
    """The command line of the campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.read.fuzzing", description=__doc__)
    parser.add_argument("readers", nargs="*", help=f"of {', '.join(seeds())}; all without")
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args()
    if unknown := set(asked.readers) - set(seeds()):
        parser.error(f"no such reader: {', '.join(sorted(unknown))}")
    readers = asked.readers or list(seeds())
    found = campaign(readers, asked.inputs, asked.seed, asked.workers, lambda text: print(text, flush=True))
    print(f"{found} findings" if found else "nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
