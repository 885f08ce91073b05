"""The recording against an application that times itself: the same instants, seen by both, within one run."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from phasetrace.model import Request, Steps
from phasetrace_agent import layout
from tests.integrations.transformers.recorded import run_recorded

pytestmark = pytest.mark.slow
# Each case is measured several times and the best counts: between two stamps of the same instant another
# process may have had the processor, which says nothing of either
REPEATS = 2


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
    run = run_recorded(
        tmp_path_factory.mktemp("truth"), engine_python, transformers_dir, "truth.py", str(REPEATS)
    )
    own = json.loads(run.output)
    requests = sorted(run.recording.requests, key=lambda request: request.arrival_ns)
    steps = {s.stream: s for s in run.recording.steps}
    times: dict[int, list[int]] = {}
    for kind, payload in run.records:
        if kind == layout.STEP:
            step = layout.decode_step(payload)
            times.setdefault(step["stream"], []).append(step["ends"][-1])
    assert len(own) == len(requests)
    return [
        Case(o, r, steps[r.stream], times[r.stream])
        for o, r in zip(own, requests, strict=True)
        if r.stream is not None
    ]


def worst_of_best(deviations: list[tuple[str, float]]) -> dict[str, float]:
    """The best of each case's repeats, as a share of the tolerance."""
    best: dict[str, float] = {}
    for name, deviation in deviations:
        best[name] = min(best.get(name, deviation), deviation)
    assert len(best) == 18
    print("worst:", max(best.values()), "of the tolerance")
    return best


def of_tolerance(measured: float, true: float) -> float:
    """A deviation, where 1 is as much as is allowed: 1 % or 0.2 ms."""
    return abs(measured - true) / max(0.01 * true, 200_000)


def test_the_forward_part_of_prefill(cases: list[Case]) -> None:
    best = worst_of_best(
        [
            (case.name, of_tolerance(case.steps.parts["forward"][0], end - begin))
            for case in cases
            for begin, end in case.own["forwards"][:1]
        ]
    )
    assert {name: share for name, share in best.items() if share > 1} == {}


def test_the_sum_of_the_forward_parts_of_decode(cases: list[Case]) -> None:
    best = worst_of_best(
        [
            (
                case.name,
                of_tolerance(
                    case.steps.parts["forward"][1:].sum(),
                    sum(end - begin for begin, end in case.own["forwards"][1:]),
                ),
            )
            for case in cases
        ]
    )
    assert {name: share for name, share in best.items() if share > 1} == {}


@pytest.mark.parametrize("which", [0, -1], ids=["first", "last"])
def test_the_first_and_the_last_token(cases: list[Case], which: int) -> None:
    best = worst_of_best(
        [(case.name, abs(case.token_times[which] - case.own["tokens"][which]) / 200_000) for case in cases]
    )
    assert {name: share for name, share in best.items() if share > 1} == {}


def test_parts_sum_to_the_request(cases: list[Case]) -> None:
    for case in cases:
        assert case.steps.begin_ns[0] == case.request.arrival_ns
        assert (sum(case.steps.parts.values()) == case.steps.end_ns - case.steps.begin_ns).all()
        assert (case.steps.begin_ns[1:] == case.steps.end_ns[:-1]).all()
        assert case.steps.end_ns[-1] == case.request.last_token_ns
        assert len(case.steps) == case.own["output"]
