"""What people met in public: graded by the same rules as `check.py` beside the cases."""

import json
import runpy
import statistics
from pathlib import Path
from typing import Any

import pytest

from phasetrace.advise import diagnose_table
from phasetrace.model import Diagnosis, Table
from phasetrace.read import read_any

RIGHT = 0.95  # of the cases
KEYWORDS = 0.9  # of the cases
GAIN_OFF = 0.25  # median relative error of the predicted gain


@pytest.fixture(scope="module")
def cases(root: Path) -> Path:
    folder = root.parent / "shared" / "cases"
    if not (folder / "visible" / "EXPECTED.jsonl").is_file():
        pytest.skip("no cases beside the repository (../shared/cases)")
    return folder


@pytest.fixture(scope="module")
def graded(cases: Path) -> list[tuple[dict[str, Any], Diagnosis]]:
    lines = (cases / "visible" / "EXPECTED.jsonl").read_text().splitlines()
    found = []
    for expected in map(json.loads, lines):
        table = read_any(cases / "visible" / expected["case"])
        assert isinstance(table, Table)
        found.append((expected, diagnose_table(table)))
    return found


def test_causes_are_right_and_never_confidently_wrong(graded: list[tuple[dict[str, Any], Diagnosis]]) -> None:
    missed = [e["case"] for e, d in graded if d.cause not in e["accept"]]
    wrong = [e["case"] for e, d in graded if d.cause in e["reject"]]
    assert not wrong
    assert len(missed) <= (1 - RIGHT) * len(graded), missed


def test_recommendations_name_the_fix(cases: Path, graded: list[tuple[dict[str, Any], Diagnosis]]) -> None:
    has_keyword = runpy.run_path(str(cases / "check.py"))["has_keyword"]
    without = [
        e["case"] for e, d in graded if not has_keyword(d.findings[0].recommendation, e["fix_keywords"])
    ]
    assert len(without) <= (1 - KEYWORDS) * len(graded), without


def test_predicted_gains_are_near_the_measured_ones(graded: list[tuple[dict[str, Any], Diagnosis]]) -> None:
    errors = [
        abs(d.findings[0].prediction.ratio / e["gain_ratio"] - 1)
        for e, d in graded
        if e["gain_ratio"] and d.findings[0].prediction
    ]
    assert len(errors) >= 16
    assert statistics.median(errors) <= GAIN_OFF
