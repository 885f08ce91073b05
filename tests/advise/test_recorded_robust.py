"""Recordings of planted faults with something left out: less sure, never sure of something else."""

from dataclasses import replace
from typing import Any

import pytest

from phasetrace import advise, analyze
from phasetrace.model import Finding, Recording
from phasetrace.read import read
from phasetrace.semconv import Cause
from tests.advise.recorded import FOLDER

KEPT = sorted(FOLDER.glob("*.gz"))
COLUMNS = ("waits", "kv_blocks", "waiting", "running", "computed_tokens", "new_tokens", "preempted")
MARKS: dict[str, Any] = {
    "received_ns": None,
    "queued_ns": None,
    "scheduled_ns": None,
    "settings": {},
    "prefixes": (),
    "prefill_chunks": (),
}


def first(recording: Recording) -> Finding:
    return advise.diagnose(analyze.breakdown(recording)).findings[0]


def without_column(recording: Recording, name: str) -> Recording:
    nothing: dict[str, Any] = {name: None}
    return replace(recording, steps=tuple(replace(steps, **nothing) for steps in recording.steps))


def without_mark(recording: Recording, name: str) -> Recording:
    requests = (replace(request, **{name: MARKS[name]}) for request in recording.requests)
    return replace(recording, requests=tuple(requests))


def less(recording: Recording) -> dict[str, Recording]:
    columns = {name: without_column(recording, name) for name in COLUMNS}
    return columns | {name: without_mark(recording, name) for name in MARKS}


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.partition(".")[0])
def test_what_was_not_recorded_makes_no_other_cause_certain(path: Any) -> None:
    recording = read(path)
    whole = first(recording).cause
    found = {name: first(partial) for name, partial in less(recording).items()}
    sure = {n: f.cause for n, f in found.items() if f.confidence == "high"}
    assert set(sure.values()) <= {whole}, sure


def test_a_queue_that_owns_the_time_is_never_called_healthy() -> None:
    recording = read(FOLDER / "kv_full.json.gz")
    found = {name: first(partial).cause for name, partial in less(recording).items()}
    assert Cause.HEALTHY not in found.values(), found
