"""Perfetto's own trace processor opens what is exported, and its SQL finds what `diagnose` says."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phasetrace.emit.perfetto import to_perfetto
from phasetrace.model import Breakdown
from tests.conftest import ENGINES
from tests.emit.perfetto.scene import server

pytestmark = pytest.mark.slow
PROCESSOR = Path(__file__).with_name("processor.py")
PATIENCE_S = 120
Ask = Callable[..., list[list[dict[str, Any]]]]

# As in docs/other-traces.md: what lies in `preempted` is its own, and not the phase's around it.
PHASES = """
SELECT s.name, SUM(s.dur - IFNULL((
  SELECT SUM(p.dur) FROM slice p WHERE p.name = 'preempted' AND s.name IN ('prefill', 'decode')
  AND p.track_id = s.track_id AND p.ts >= s.ts AND p.ts < s.ts + s.dur), 0)) AS ns
FROM slice s WHERE s.category = 'diagnosed'
AND s.name IN ('frontend', 'queue', 'prefill', 'decode', 'preempted', 'delivery') GROUP BY s.name
"""
COUNTERS = """
SELECT t.name, MAX(c.value) AS most FROM counter c JOIN process_counter_track t ON c.track_id = t.id
GROUP BY t.name
"""
ARROWS = """
SELECT i.name AS begin, o.name AS end, p.name AS inside FROM flow f
JOIN slice i ON f.slice_out = i.id JOIN slice o ON f.slice_in = o.id JOIN slice p ON o.parent_id = p.id
"""
LINES = """
SELECT p.name AS process, t.name AS line FROM thread t JOIN process p USING (upid)
WHERE t.name IS NOT NULL ORDER BY t.tid
"""
ERRORS = "SELECT name FROM stats WHERE value > 0 AND severity <> 'info'"


@pytest.fixture(scope="module")
def python() -> Path:
    found = ENGINES / "perfetto" / "bin" / "python"
    if not found.exists() or not shutil.which("node"):
        pytest.skip("Perfetto's trace processor is not installed: `make engines` and Node set it up")
    return found


@pytest.fixture
def ask(python: Path, tmp_path: Path) -> Ask:
    def about(breakdown: Breakdown, *queries: str) -> list[list[dict[str, Any]]]:
        trace = tmp_path / "trace.perfetto.json"
        trace.write_bytes(b"".join(to_perfetto(breakdown)))
        done = subprocess.run(
            [python, PROCESSOR, trace, *queries], capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    return about


def test_sql_finds_what_diagnose_says(ask: Ask) -> None:
    found = server()
    phases, counters, arrows, lines, errors = ask(found, PHASES, COUNTERS, ARROWS, LINES, ERRORS)
    assert {row["name"]: row["ns"] for row in phases} == {p.phase.value: p.ns for p in found.phases if p.ns}
    assert {row["name"]: row["most"] for row in counters} == {
        "sequences running": 2,
        "requests waiting": 1,
        "KV blocks used": 14,
        "prompt tokens read": 400,
    }
    arrow = {"begin": "prefill chunk", "end": "others' prompts", "inside": "token"}
    assert arrows == [arrow] * 2
    assert {row["process"] for row in lines} == {"app"}
    assert [row["line"] for row in lines][:3] == ["engine steps", "pauses", "start"] and len(lines) == 6
    assert errors == []
