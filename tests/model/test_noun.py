"""A noun is a dataclass with slots; that nobody sets its fields is the type checker's to say."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from phasetrace.model import Request, Sequence
from tests.builders import request

SETS_A_FIELD = """
from phasetrace.model import Sequence
row = Sequence(prompt_tokens=1)
row.prompt_tokens = 2
"""


def test_a_noun_is_compared_and_replaced_by_its_fields() -> None:
    row = Sequence(prompt_tokens=1)
    assert row == Sequence(prompt_tokens=1) and replace(row, output_tokens=2) == Sequence(1, None, 2)
    assert {field.name for field in fields(Sequence)} >= {"prompt_tokens", "output_tokens"}
    with pytest.raises(AttributeError):
        row.nonsense = 1  # type: ignore[attr-defined]
    assert not hasattr(request(), "__dict__") and Request.__hash__ is None


def test_the_type_checker_forbids_setting_a_field(tmp_path: Path) -> None:
    code = tmp_path / "sets.py"
    code.write_text(SETS_A_FIELD)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--cache-dir",
        str(tmp_path),
        "--follow-imports=silent",
        str(code),
    ]
    told = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert "read-only" in told.stdout, told
