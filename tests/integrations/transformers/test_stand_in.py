"""The hooks on every Python that can be recorded, with forty lines in the place of transformers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from phasetrace.assemble.assembler import Assembler
from phasetrace.model import RequestStatus
from phasetrace_agent import layout
from tests.integrations.agent import Run

STAND_IN = Path(__file__).parent.parent / "stand_in"
APPLICATION = Path(__file__).parent / "stand_in_application.py"


def test_the_application_runs_as_without_recording_and_is_recorded(recorded: Run) -> None:
    plain = subprocess.run(
        [recorded.python, APPLICATION],
        env={"PYTHONPATH": str(STAND_IN)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    seen = recorded(APPLICATION, PYTHONPATH=f"{recorded.run}:{STAND_IN}")
    assert (seen.returncode, seen.stdout, seen.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert json.loads(seen.stdout)["name"] == "GenerationMixin.generate"

    assembler = Assembler()
    for info, records in recorded.segments():
        assembler.feed(info, records)
    recording = assembler.close()
    requests = sorted(recording.requests, key=lambda request: request.arrival_ns)
    assert [request.status for request in requests] == [
        RequestStatus.OK,
        RequestStatus.OK,
        RequestStatus.FAILED,
    ]
    first, second, failed = requests
    assert [(s.prompt_tokens, s.output_tokens) for s in first.sequences] == [(3, 5), (3, 5)]
    assert [(s.prompt_tokens, s.output_tokens) for s in second.sequences] == [(40, 3)]
    assert first.settings["streamer"] is True
    assert failed.error_type == "RuntimeError"
    assert not recorded.blobs(layout.TROUBLE)


SPAN = """
from opentelemetry.sdk.trace import TracerProvider
from stand_in_application import Ids, Model

model = Model()
with TracerProvider().get_tracer("app").start_as_current_span("work") as span:
    model.generate(Ids([[1, 2]]), max_new_tokens=2)
    model.generate(Ids([[1, 2]]), max_new_tokens=2)
model.generate(Ids([[1, 2]]), max_new_tokens=2)
context = span.get_span_context()
print(f"{context.trace_id:032x} {context.span_id:016x} {span.start_time}")
"""


def test_the_application_s_real_span_is_the_parent(tmp_path: Path) -> None:
    run = Run(tmp_path, Path(sys.executable))
    folders = [run.run, STAND_IN, APPLICATION.parent]
    seen = run("-c", SPAN, PYTHONPATH=os.pathsep.join(map(str, folders)), PYTHONWARNINGS="")
    trace, span, begin = seen.stdout.split()
    arrivals = run.blobs(layout.ARRIVED)
    told = {"trace": trace, "span": span, "begin_wall": int(begin)}
    assert [arrival.get("parent") for arrival in arrivals] == [told, told, None]
    assert arrivals[0]["frontend_begin"] < arrivals[1]["frontend_begin"], (
        "the second begins where the first ended"
    )


def refused(recorded: Run, tmp_path: Path, version: str) -> dict[str, object]:
    """The engine's facts where this version is installed, after the application ran untouched."""
    package = tmp_path / "old" / "transformers"
    package.parent.mkdir()
    subprocess.run(["cp", "-r", STAND_IN / "transformers", package], check=True)
    (package / "__init__.py").write_text(f"__version__ = {version!r}\n")
    seen = recorded(APPLICATION, PYTHONPATH=f"{recorded.run}:{package.parent}")
    assert (seen.returncode, seen.stderr) == (3, "")
    assert not recorded.blobs(layout.ARRIVED)
    return next(fact for fact in recorded.blobs(layout.FACTS) if "engine" in fact)


@pytest.mark.parametrize("recorded", [(3, 11)], indirect=True)
@pytest.mark.parametrize("version", ["4.45.2", "4.9.0", "3.5.1", "unheard of"])
def test_other_versions_are_refused_politely(recorded: Run, tmp_path: Path, version: str) -> None:
    assert refused(recorded, tmp_path, version)["refused"]
