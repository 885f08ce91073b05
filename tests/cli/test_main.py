"""The command line as a whole: exit codes, and one line for whatever the user did wrong."""

import subprocess
import sys

import pytest

from phasetrace import cli
from phasetrace.cli.own_path import OWN_ROOT, without


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in cli.COMMANDS:
        assert f"  {name} " in shown
    listed = shown.partition("Commands:")[2].splitlines()
    assert not any(line.endswith("...") for line in listed)  # none is cut


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_each_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: phasetrace {name}")
    assert "\\" not in shown and "\b" not in shown  # what keeps click from filling a paragraph is for click


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["run"],
        ["run", "--no-such-option", "--", "true"],
        ["run", "--detail", "everything", "--", "true"],
        ["run", "--", "no-such-command"],
        ["run", "-o", "/missing/folder/trace.json", "--", "true"],
        ["run", "--otlp", "no://address", "--", "true"],
        ["recover"],
        ["recover", "/missing"],
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PHASETRACE_SPOOL", raising=False)
    assert cli.main(arguments) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("phasetrace: ")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "proposal"),
    [
        (["diagnosee", "x"], "Did you mean 'diagnose'?"),
        (["predict", "x"], "; `phasetrace --help` says more"),
        (["run"], "; `phasetrace run --help` says more"),
        (["show", "a", "b"], "; `phasetrace show --help` says more"),
        (["diagnose", "x", "--fail-onn", "any"], "Did you mean '--fail-on'?"),
        (["diagnose", "x", "--format", "xml"], "; `phasetrace diagnose --help` says more"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(
    arguments: list[str], proposal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.rstrip().endswith(proposal)


def test_shells_complete(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cli.COMPLETION, "zsh_source")
    assert cli.main([]) == 0
    assert "#compdef phasetrace" in capsys.readouterr().out
    monkeypatch.setenv(cli.COMPLETION, "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", "phasetrace diag")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert cli.main([]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["plain", "diagnose"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert "0." in capsys.readouterr().out


def test_no_arguments_show_help() -> None:
    done = subprocess.run([sys.executable, "-m", "phasetrace"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Usage" in done.stderr


def test_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m phasetrace --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode in (0, cli.READER_GONE)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("explain padding >/dev/full", 2),
        ("explain no-such-cause 2>/dev/full", 2),
        ("explain no-such-cause 2>&-", 2),
        ("explain padding >&-", 0),
        ("diagnose - <&-", 2),
    ],
)
def test_streams_that_are_closed_or_full(words: str, code: int) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m phasetrace {words}"], capture_output=True, text=True
    )
    assert done.returncode == code
    assert done.stderr.count("\n") <= 1 and "Traceback" not in done.stderr


def test_run_starts_without_heavy_imports() -> None:
    code = "import sys; import phasetrace.cli.run; print({'numpy', 'grpc', 'rich'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_packages_meant_for_the_application_are_not_ours() -> None:
    path = ["", "/app/packages", "/usr/lib/python3.11", str(OWN_ROOT)]
    kept = without(path, f"/app/packages:{OWN_ROOT}:")
    assert kept == ["", "/usr/lib/python3.11", str(OWN_ROOT)]
