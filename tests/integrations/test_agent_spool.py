"""The spool keeps every committed record, and the application notices nothing of what goes wrong."""

import os
import subprocess
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import phasetrace_transformers
import phasetrace_vllm
from phasetrace.assemble.spool import read_segment
from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import TRY_AGAIN, Spool
from tests.integrations.agent import Run, read_spool


@pytest.mark.soak(50)
def test_eight_threads_lose_and_tear_nothing(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    each = 100_000

    def write(stream: int) -> None:
        for index in range(each):
            recorder.step(stream, index, 1, (4,), (index,), (stream,) if index % 7 == 0 else ())

    threads = [threading.Thread(target=write, args=(stream,)) for stream in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found: Counter[int] = Counter()
    for path in tmp_path.glob("*.seg"):
        info, records, _ = read_segment(path)
        assert info.torn == 0
        for kind, payload in records:
            if kind == layout.STEP:
                step = layout.decode_step(payload)
                assert step["ends"] == [step["index"]]
                assert step["joined"] == ([step["stream"]] if step["index"] % 7 == 0 else [])
                found[step["stream"]] += 1
    assert found == dict.fromkeys(range(8), each)
    assert not list(tmp_path.glob("*.lost"))


def test_full_segments_are_sealed_and_the_last_is_not(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    for request in range(70_000):
        recorder.mark(request, 1, 1)
    infos = sorted((read_segment(path)[0] for path in tmp_path.glob("*.seg")), key=lambda info: info.number)
    assert [info.number for info in infos] == list(range(len(infos)))
    assert [info.sealed for info in infos] == [True] * (len(infos) - 1) + [False]
    assert len(infos) > 2
    assert {path.stat().st_size for path in tmp_path.glob("*.seg")} == {layout.SEGMENT_BYTES}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*.seg")} == {0o600}


def test_what_is_not_well_formed_is_told_once_and_tears_nothing(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    for index in range(3):
        recorder.step(1, index, 5, (1, 2, 3), (10, 20, -1))
        recorder.step(1, index, 5, (1,), (10,))
        recorder.detail(1, {"not json": object()})
        recorder.mark("one", 1, 1)  # type: ignore[arg-type]
    kinds = Counter(kind for kind, _ in read_spool(tmp_path))
    assert kinds[layout.STEP] == 3
    assert kinds[layout.TROUBLE] == 3
    assert len(list(tmp_path.glob("*.seg"))) == 1


KILLED = """
import os
from phasetrace_agent import bootstrap
recorder = bootstrap.recorder()
for index in range(10**9):
    recorder.step(1, index, 1, (1, 2), (2, 3))
    os.write(1, b"%8d" % index)
"""


@pytest.mark.soak(100)
@pytest.mark.parametrize("end", ["KILL", "TERM", "ABRT"])
def test_a_killed_process_has_kept_every_committed_record(recorded: Run, end: str) -> None:
    with subprocess.Popen(
        [recorded.python, "-c", KILLED], env=recorded.environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.read(8 * 20_000)
        subprocess.run(["kill", f"-{end}", str(process.pid)], check=True)
        rest = process.stdout.read()
    told = 20_000 + len(rest) // 8
    steps = [
        layout.decode_step(p)["index"]
        for _, records in recorded.segments()
        for k, p in records
        if k == layout.STEP
    ]
    assert sorted(steps) == list(range(len(steps)))
    assert len(steps) >= told


FORKING = """
import faulthandler, os, signal, sys, threading
faulthandler.dump_traceback_later(20, exit=True)  # says where, should it hang
from phasetrace_agent import bootstrap
recorder = bootstrap.recorder()
recorder.facts(2, 1, {"engine": "stand-in"})
stop = threading.Event()

def write():
    while not stop.wait(0.0002):  # in bursts: three threads without a pause fill a disk
        for _ in range(50):
            recorder.mark(os.getpid(), 1, 1)

threads = [threading.Thread(target=write) for _ in range(3)]
for thread in threads:
    thread.start()
try:
    for _ in range(20):
        pid = os.fork()
        if not pid:
            signal.alarm(10)
            for _ in range(200):
                recorder.mark(os.getpid(), 1, 1)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if status:
            sys.exit(f"child {pid} ended with status {status}")
finally:
    stop.set()
"""


IMPORTS_NOTHING = """
import sys
from phasetrace_agent import bootstrap, signals
recorder = bootstrap.recorder()
before = set(sys.modules)
recorder.arrived(1, 1, {"mode": "greedy"})
recorder.step(1, 0, 1, (4,), (2,))
recorder.finished(1, 2, {})
signals.pass_on(ValueError("ours"))
print(sorted(set(sys.modules) - before))
"""


def test_recording_imports_nothing_that_a_fork_beside_it_could_find_locked(recorded: Run) -> None:
    done = recorded("-c", IMPORTS_NOTHING)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_children_forked_while_threads_record_write_only_their_own(recorded: Run) -> None:
    done = recorded("-W", "ignore", "-c", FORKING)  # 3.12 warns of any fork beside threads
    assert (done.returncode, done.stderr) == (0, "")
    found = recorded.marks()
    assert len(found) == 21
    assert all(ids == {pid} for pid, ids in found.items())
    assert all(info.torn == 0 for info, _ in recorded.segments())
    engines = [facts for facts in recorded.blobs(layout.FACTS) if "engine" in facts]
    assert len(engines) >= 21  # a child's reader has to learn what the parent said


CLOSES_DESCRIPTORS = """
import os, sys
from phasetrace_agent import bootstrap
recorder = bootstrap.recorder()
recorder.mark(1, 1, 1)
os.closerange(3, 256)
pipes = [os.pipe() for _ in range(20)]
for request in range(100_000):
    recorder.mark(request, 1, 1)
for read, write in pipes:
    os.write(write, b"x")
    assert os.read(read, 1) == b"x"
if not os.fork():
    for read, write in pipes:
        os.write(write, b"x")
        assert os.read(read, 1) == b"x"
    os._exit(0)
assert os.wait()[1] == 0
"""


def test_an_application_that_closes_all_descriptors_keeps_those_it_opens_then(recorded: Run) -> None:
    done = recorded("-c", CLOSES_DESCRIPTORS)
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(kind == layout.MARK for _, records in recorded.segments() for kind, _ in records) == 100_001


def test_the_wall_clock_is_taken_again_now_and_then(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    for second in range(60):
        recorder.step(1, second, second * 10**9, (1,), (second * 10**9 + 1,))
    clocks = [layout.decode_clock(payload) for kind, payload in read_spool(tmp_path) if kind == layout.CLOCK]
    assert 10 <= len(clocks) <= 13
    assert all(abs(wall - clocks[0][1]) < 60 * 10**9 for _, wall in clocks)


def test_what_was_told_is_not_told_again(tmp_path: Path) -> None:
    def told(folder: Path) -> list[dict[str, Any]]:
        blobs = [layout.decode_blob(payload) for kind, payload in read_spool(folder) if kind == layout.FACTS]
        return [data for _, scope, _, data in blobs if scope == layout.ENGINE]

    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):  # each recorder's reader knows nothing
        folder.mkdir()
        recorder = Recorder(Spool(str(folder)))
        recorder.stage("opens the spool", 0, 0)
        for _ in range(3):
            recorder.facts(layout.ENGINE, 0, {"engine": "vllm", "version": "0.32"})
        recorder.facts(layout.ENGINE, 0, {"version": "0.32"})
        recorder.facts(layout.ENGINE, 0, {"role": "engine core"})
        recorder.facts(layout.ENGINE, 1, {"engine": "vllm", "version": "0.32"})
        assert told(folder) == [
            {"engine": "vllm", "version": "0.32"},
            {"role": "engine core"},
            {"engine": "vllm", "version": "0.32"},
        ]


def test_what_was_lost_is_told_again(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), cap_bytes=layout.SEGMENT_BYTES)
    recorder = Recorder(spool)
    filling = bytes(layout.SEGMENT_BYTES // 2)
    recorder.facts(layout.ENGINE, 0, {"engine": "vllm"})
    while spool.write(layout.TROUBLE, filling):
        pass
    recorder.facts(layout.ENGINE, 0, {"role": "worker"})
    for segment in tmp_path.glob("*.seg"):
        segment.unlink()
    for _ in range(TRY_AGAIN + 2):
        recorder.facts(layout.ENGINE, 0, {"role": "worker"})
    blobs = [layout.decode_blob(payload) for kind, payload in read_spool(tmp_path) if kind == layout.FACTS]
    assert [data for _, scope, _, data in blobs if scope == layout.ENGINE] == [{"role": "worker"}]


def test_a_forked_child_tells_each_engine_apart(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    recorder.facts(layout.ENGINE, phasetrace_vllm.ENGINE_KEY, {"engine": "vllm", "version": "0.32"})
    refused = {"engine": "transformers", "version": "4.40", "refused": "older than 4.46"}
    recorder.facts(layout.ENGINE, phasetrace_transformers._KEY, refused)
    again = [layout.decode_blob(payload) for kind, payload in recorder._introduction()]
    told = [data for _, scope, _, data in again if scope == layout.ENGINE]
    assert told == [{"engine": "vllm", "version": "0.32"}, refused]


def test_ids_are_not_given_twice(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    assert [recorder.next_id() for _ in range(3)] == [1, 2, 3]
    assert not os.listdir(tmp_path)


SIGNALS = """
import functools, random, signal, sys
from phasetrace_agent import bootstrap, hooking
recorder = bootstrap.recorder()
raised = caught = calls = 0

class Timeout(Exception):
    pass

def handler(number, frame):
    global raised
    recorder.mark(2, 1, 1)
    raised += 1
    raise Timeout

class Handler:
    def __call__(self, number, frame):
        handler(number, frame)

class Engine:
    def step(self, index):
        global calls
        calls += 1

def after(token, result):
    recorder.step(1, calls, 1, (1, 2), (2, 3))
    recorder.mark(1, 1, 1)

hook = hooking.Hook("engine")
hooking.wrap(Engine, "step", hooking.around(hook, None, after))
kinds = {"function": handler, "partial": functools.partial(handler), "object": Handler()}
signal.signal(signal.SIGALRM, kinds[sys.argv[1]])
engine = Engine()
for _ in range(150):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 5e-4))
        for index in range(10**5):
            engine.step(index)
    except Timeout:
        caught += 1
print(raised, caught, hook.on)
"""


WHILE_OPENING = """
import os, signal, sys
from phasetrace_agent import bootstrap

def handler(number, frame):
    raise TimeoutError  # an OSError, which is what a full disk is too

def interrupted(*args, **kwargs):
    setattr(os, name, original)
    os.kill(os.getpid(), signal.SIGALRM)
    return original(*args, **kwargs)

signal.signal(signal.SIGALRM, handler)
recorder = bootstrap.recorder()
name = sys.argv[1]
original = getattr(os, name)
setattr(os, name, interrupted)
try:
    recorder.mark(1, 1, 1)
except TimeoutError:
    print("reached")
recorder.mark(1, 1, 1)
"""


@pytest.mark.parametrize("within", ["open", "posix_fallocate", "read", "rename"])
def test_an_exception_of_a_signal_handler_is_no_error_of_the_spool(recorded: Run, within: str) -> None:
    done = recorded("-c", WHILE_OPENING, within)
    assert done.stdout == "reached\n"
    assert done.stderr == ""
    assert any(kind == layout.MARK for _, records in recorded.segments() for kind, _ in records)
    assert recorded.blobs(layout.TROUBLE) == []


SAMPLED = """
import time
from phasetrace_agent import bootstrap

recorder = bootstrap.recorder()
for index in range(128):
    end = time.monotonic_ns()
    recorder.step(1, index, end - 1, (4,), (end,))
"""


def test_what_a_steps_record_costs_is_sampled_where_it_is_written(recorded: Run) -> None:
    recorded("-c", SAMPLED)
    told = [facts for facts in recorded.blobs(layout.FACTS) if "step_record_ns" in facts]
    assert len(told) == 1  # one step in 32 is a sample, and 4 samples are told first
    assert told[0]["step_record_ns"] > 0


@pytest.mark.parametrize("how", ["function", "partial", "object"])
def test_an_exception_of_the_applications_signal_handler_reaches_it(recorded: Run, how: str) -> None:
    done = recorded("-c", SIGNALS, how)
    assert done.stderr == ""
    assert done.stdout == "150 150 True\n"
    assert all(info.torn == 0 for info, _ in recorded.segments())
    assert sum(p[0] == 2 for _, records in recorded.segments() for k, p in records if k == layout.MARK) == 150
    assert not recorded.blobs(layout.TROUBLE)
