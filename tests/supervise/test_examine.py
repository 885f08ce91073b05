"""`doctor` finds the Python that a command runs, and says what would keep us out of it."""

import sys
from pathlib import Path

import pytest

from phasetrace.supervise import examine
from phasetrace.supervise.examine import Check
from phasetrace.supervise.target import resolve
from tests.supervise.runs import PYTHON


def answers(*command: str) -> dict[str, Check]:
    return {check.subject: check for check in examine(command)}


def script(folder: Path, first: str) -> str:
    path = folder / "tool"
    path.write_text(first + "\npass\n")
    path.chmod(0o755)
    return str(path)


def test_python_itself() -> None:
    target = resolve([PYTHON, "-u", "-X", "dev", "app.py", "-I"])
    assert target is not None
    assert target.python == (PYTHON, "-u", "-X", "dev")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["-Im", "tool"], ("-I",)),
        (["-c", "pass", "-E"], ()),
        (["-", "-E"], ()),
        (["-Wignore", "-m", "x"], ("-Wignore",)),
    ],
)
def test_flags_end_where_the_application_begins(flags: list[str], expected: tuple[str, ...]) -> None:
    target = resolve([PYTHON, *flags])
    assert target is not None
    assert target.python[1:] == expected


def test_script_and_wrapper(tmp_path: Path) -> None:
    for first in (f"#!{PYTHON} -u", "#!/usr/bin/env python3"):
        target = resolve([script(tmp_path, first)])
        assert target is not None
        assert target.python[0] in (PYTHON, "python3")
    target = resolve(["nice", "-n", "5", PYTHON, "-E", "app.py"])
    assert target is not None
    assert target.python == (PYTHON, "-E")
    assert resolve(["true"]) is None


def test_uv_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text("")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    target = resolve(["uv", "run", "--isolated", "app.py"])
    assert target is not None
    assert target.python == ("uv", "run", "python")


def test_a_python_that_would_be_recorded() -> None:
    found = answers(PYTHON, "app.py")
    assert found["agent"].fine
    assert found["python"].answer.startswith(".".join(map(str, sys.version_info[:3])))
    assert found["spool"].fine
    assert not found["engine"].fine  # nothing is installed there


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_flags_that_keep_the_agent_out(flag: str) -> None:
    agent = answers(PYTHON, flag, "app.py")["agent"]
    assert not agent.fine
    assert "flags" in agent.answer


def test_what_cannot_run(tmp_path: Path) -> None:
    assert not answers("no-such-command")["command"].fine
    assert answers("true")["command"].fine
    broken = answers(script(tmp_path, "#!/missing/python3"))["python"]
    assert not broken.fine
    assert "does not start" in broken.answer


def test_application_without_a_sitecustomize_of_its_own_is_not_told_of_one() -> None:
    assert "sitecustomize" not in answers(PYTHON, "app.py")


def test_endpoint_is_named_without_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://user:planted@host:4318")
    assert "planted" not in answers(PYTHON, "app.py")["endpoint"].answer
