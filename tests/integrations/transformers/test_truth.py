"""The recording against an application that times itself: the same instants, seen by both, within one run."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from phasetrace.model import Part, Request, Steps
from phasetrace_agent import layout
from tests.integrations.transformers.recorded import run_recorded

pytestmark = pytest.mark.slow
# Between two stamps of the same instant another process may have had the processor, for milliseconds on a
# busy machine, which says nothing of either. So each case is measured several times, and of every step the
# best counts; where that was not enough all are measured once more.
REPEATS = 3


class Case(NamedTuple):
    """What the application measured, and what was recorded of it."""

    own: dict[str, Any]
    request: Request
    steps: Steps
    token_times: list[int]  # on the monotonic clock, as the application's

    @property
    def name(self) -> str:
        return "prompt {prompt}, output {output}, batch {batch}".format(**self.own)


@pytest.fixture(scope="module")
def cases(
    engine_python: Path, transformers_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Case]:
    found = measured(tmp_path_factory.mktemp("truth"), engine_python, transformers_dir)
    if any(missed(off) for off in (*forward_parts(found), *token_times(found))):
        found += measured(tmp_path_factory.mktemp("again"), engine_python, transformers_dir)
    return found


def measured(base: Path, engine_python: Path, transformers_dir: Path) -> list[Case]:
    """Every case, several times."""
    run = run_recorded(base, engine_python, transformers_dir, "truth.py", str(REPEATS))
    own = json.loads(run.output)
    requests = sorted(run.recording.requests, key=lambda request: request.arrival_ns)
    steps = {s.stream: s for s in run.recording.steps}
    times: dict[int, list[int]] = {}
    for kind, payload in run.records:
        if kind == layout.STEP:
            step = layout.decode_step(payload)
            times.setdefault(step["stream"], []).append(step["ends"][-1])
    assert len(own) == len(requests) == 18 * REPEATS
    return [
        Case(o, r, steps[r.stream], times[r.stream])
        for o, r in zip(own, requests, strict=True)
        if r.stream is not None
    ]


def deviations(cases: list[Case], steps: slice) -> dict[str, float]:
    """How far these steps' forward parts are off, summed, by case; 1 is what is allowed: 1 % or 0.2 ms."""
    off: dict[str, list[npt.NDArray[np.int64]]] = {}
    true: dict[str, list[int]] = {}
    for case in cases:
        own = np.array([end - begin for begin, end in case.own["forwards"]])[steps]
        off.setdefault(case.name, []).append(case.steps.parts[Part.FORWARD][steps] - own)
        true.setdefault(case.name, []).append(int(own.sum()))
    found = {}
    for name, repeats in off.items():
        best = np.min(np.abs(repeats), axis=0).sum()
        found[name] = float(best) / max(0.01 * min(true[name]), 200_000)
    print(f"worst: {max(found.values()):.3f} of the tolerance")
    return found


def forward_parts(cases: list[Case]) -> tuple[dict[str, float], dict[str, float]]:
    """Of prefill and of decode."""
    return deviations(cases, slice(0, 1)), deviations(cases, slice(1, None))


def token_times(cases: list[Case]) -> list[dict[str, float]]:
    """How far the first and the last token are off, by case, in units of 0.2 ms."""
    found: list[dict[str, float]] = []
    for which in (0, -1):
        off: dict[str, float] = {}
        for case in cases:
            late = abs(case.token_times[which] - case.own["tokens"][which]) / 200_000
            off[case.name] = min(off.get(case.name, late), late)
        print(f"worst: {max(off.values()):.3f} of the tolerance")
        found.append(off)
    return found


def missed(off: dict[str, float]) -> dict[str, float]:
    """What is off by more than the tolerance."""
    assert len(off) == 18
    return {name: by for name, by in off.items() if by > 1}


def test_the_forward_part_of_prefill(cases: list[Case]) -> None:
    assert missed(forward_parts(cases)[0]) == {}


def test_the_sum_of_the_forward_parts_of_decode(cases: list[Case]) -> None:
    assert missed(forward_parts(cases)[1]) == {}


@pytest.mark.parametrize("which", [0, 1], ids=["first", "last"])
def test_the_first_and_the_last_token(cases: list[Case], which: int) -> None:
    assert missed(token_times(cases)[which]) == {}


def test_parts_sum_to_the_request(cases: list[Case]) -> None:
    for case in cases:
        assert case.steps.begin_ns[0] == case.request.arrival_ns
        assert (sum(case.steps.parts.values()) == case.steps.end_ns - case.steps.begin_ns).all()
        assert (case.steps.begin_ns[1:] == case.steps.end_ns[:-1]).all()
        assert case.steps.end_ns[-1] == case.request.last_token_ns
        assert len(case.steps) == case.own["output"]
