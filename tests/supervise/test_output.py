"""Where traces and spools can and cannot go."""

import os
import subprocess
from pathlib import Path

import pytest

from phasetrace.errors import UsageError
from phasetrace.supervise import folder as folders
from phasetrace.supervise import output
from tests.supervise.runs import Runs, app


@pytest.mark.parametrize(
    "place", ["/dev/null", "/dev/full", ".", "missing/trace.json", "-", "/proc/trace.json", "a" * 300]
)
def test_unwritable_output_is_said_before_the_command_runs(runs: Runs, place: str) -> None:
    words = runs.words(["touch", "has-run"])
    words[words.index("-o") + 1] = place
    done = subprocess.run(
        words, env=runs.environment({}), cwd=runs.folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("phasetrace: ")
    assert not (runs.folder / "has-run").exists()
    assert os.path.exists("/dev/null")


def test_check_leaves_nothing_behind(tmp_path: Path) -> None:
    output.check(tmp_path / "trace.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError):
        output.check(tmp_path)


@pytest.mark.parametrize("command", [["no-such-command"], ["./missing/script"], ["/etc/passwd"], ["/"]])
def test_command_that_cannot_start(runs: Runs, command: list[str]) -> None:
    done = runs.run(command)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert command[0] in done.stderr
    assert runs.left == []
    assert not runs.trace.exists()


def test_script_without_a_first_line_runs_as_in_a_shell(runs: Runs) -> None:
    script = runs.folder / "script"
    script.write_text("exit 4\n")
    script.chmod(0o755)
    assert runs.run([str(script)]).returncode == 4


def test_spool_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = folders.make_folder(tmp_path)
    assert folder.spool.stat().st_mode & 0o777 == 0o700
    assert (folder.spool / "salt").stat().st_mode & 0o777 == 0o600


def test_spool_place_that_is_no_folder_is_said_and_passed_over(runs: Runs) -> None:
    runs.spools.write_text("a file")
    done = runs.run(app("generate", 1))
    assert done.returncode == 0
    assert "using another place" in done.stderr
    assert len(runs.recording().requests) == 1


@pytest.mark.soak(20)
def test_full_spool_costs_records_and_not_the_application(runs: Runs) -> None:
    runs.spools.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(runs.spools)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small file system")
    try:
        done = runs.run(app("generate", 5))
        assert done.returncode == 0
        assert runs.recording().processes[0].lost_records > 0
        assert "no room" in done.stderr
    finally:
        subprocess.run(["umount", str(runs.spools)], check=True)


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2>&- >&- <&-"])
def test_a_terminal_that_cannot_be_written_changes_nothing(runs: Runs, stderr: str) -> None:
    words = " ".join(runs.words(app("nothing", 3)))
    done = subprocess.run(["sh", "-c", f"{words} {stderr}"], env=runs.environment({}), timeout=60)
    assert done.returncode == 3
    assert runs.left == []
