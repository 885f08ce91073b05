"""The JSON report keeps to its schema, whatever the diagnosis holds."""

import json
import math
from collections.abc import Callable
from importlib.resources import files
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phasetrace.model import (
    Breakdown,
    Defect,
    Diagnosis,
    Finding,
    Goal,
    Part,
    PartTime,
    Percentiles,
    Phase,
    PhaseTime,
    Prediction,
    Recording,
)
from phasetrace.render import json_report
from phasetrace.semconv import Cause, CausePhase

SCHEMA = json.loads(files("phasetrace.render").joinpath("diagnosis.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

floats = st.floats()  # NaN and Infinity too
amounts = st.integers(0, 10**18)
parts = st.lists(st.builds(PartTime, st.sampled_from(Part), amounts), max_size=3)


@st.composite
def phase_times(draw: st.DrawFn) -> PhaseTime:
    split = tuple(draw(parts))
    ns = sum(t.ns for t in split) if split else draw(amounts)
    return PhaseTime(draw(st.sampled_from(Phase)), ns, split)


percentiles = st.builds(Percentiles, floats, floats, floats)
predictions = st.builds(
    Prediction, st.sampled_from(["ttft_s", "tpot_s", "e2e_s", "throughput_tok_s"]), *[floats] * 5
)
sentences = st.lists(st.text(), max_size=2).map(tuple)
causes = st.sampled_from([cause.value for cause in Cause])
findings = st.builds(
    Finding,
    cause=causes,
    phase=st.sampled_from([*map(str, Phase), *map(str, CausePhase)]),
    ns=amounts,
    share=floats,
    confidence=st.sampled_from(["high", "medium", "low"]),
    evidence=sentences,
    recommendation=st.text(),
    commands=sentences,
    tradeoff=st.text(),
    prediction=st.none() | predictions,
)
breakdowns = st.builds(
    Breakdown,
    recording=st.just(Recording()),
    requests=st.just(()),
    phases=st.lists(phase_times(), max_size=4).map(tuple),
    metrics=st.dictionaries(st.sampled_from(["ttft_ns", "tpot_ns", "itl_ns", "e2e_ns"]), percentiles),
    throughput_tok_s=st.none() | st.floats(min_value=0),
    defects=st.lists(st.builds(Defect, st.text()), max_size=2).map(tuple),
)
diagnoses = st.builds(
    Diagnosis,
    cause=causes,
    verdict=st.text(),
    goal=st.sampled_from(Goal),
    breakdown=breakdowns,
    findings=st.lists(findings, max_size=3).map(tuple),
    slo=st.none() | st.dictionaries(st.sampled_from(["ttft", "tpot_s"]), floats),
)


def strict(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == json_report.SCHEMA
    assert SCHEMA["$defs"]["cause"]["enum"] == [cause.value for cause in Cause]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(diagnoses)
def test_every_report_keeps_to_the_schema(diagnosis: Diagnosis) -> None:
    text = json_report.diagnosis(diagnosis)
    assert text.isascii()
    VALIDATOR.validate(strict(text))


def test_a_report(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    golden("diagnosis.json", json_report.diagnosis(made.diagnosis()))


def test_shares_of_phases_sum_to_one_and_parts_to_their_phase(made: ModuleType) -> None:
    report = strict(json_report.diagnosis(made.diagnosis()))
    assert sum(p["share"] for p in report["phases"]) == pytest.approx(1)
    for phase in report["phases"]:
        if phase["parts"]:
            assert sum(t["share"] for t in phase["parts"]) == pytest.approx(phase["share"])


def test_unknown_is_null(made: ModuleType) -> None:
    nothing = made.diagnosis(breakdown=Breakdown(Recording(source="jaeger"), ()), findings=())
    report = strict(json_report.diagnosis(nothing))
    assert report["engine"] == {"name": None, "version": None}
    assert report["coverage"] == {"processes": None, "hooked": None, "lost_records": None}
    assert report["metrics"]["ttft_s"] == {"p50": None, "p95": None, "p99": None}
    assert report["recording_overhead"] is None


def test_a_prediction_with_a_hole_is_none(made: ModuleType) -> None:
    holed = made.finding(prediction=Prediction("e2e_s", 1.0, math.nan, 0.5, 0.6, 2.0))
    report = strict(json_report.diagnosis(made.diagnosis(findings=(holed,))))
    assert report["findings"][0]["prediction"] is None
