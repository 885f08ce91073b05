"""Which Python processes the agent reaches, and that it says where it does not."""

from pathlib import Path

import pytest

from phasetrace_agent import layout
from tests.integrations.agent import Run

APP = """
import os, subprocess, sys

def record():
    from phasetrace_agent import bootstrap
    bootstrap.recorder().mark(os.getpid(), 1, 1)

def main(way):
    record()
    here = os.path.abspath(__file__)
    if way in ("spawn", "fork", "forkserver"):
        import multiprocessing
        child = multiprocessing.get_context(way).Process(target=record)
        child.start()
        child.join()
        assert child.exitcode == 0
    elif way == "os.fork":
        pid = os.fork()
        if not pid:
            record()
            os._exit(0)
        os.waitpid(pid, 0)
    elif way == "subprocess":
        subprocess.check_call([sys.executable, here])
    elif way == "exec":
        os.execv(sys.executable, [sys.executable, here])
    elif way == "posix_spawn":
        os.waitpid(os.posix_spawn(sys.executable, [sys.executable, here], os.environ), 0)
    elif way == "env":
        subprocess.check_call([sys.executable, "-c", "pass"], env={})
    elif way in ("-I", "-E", "-S"):
        subprocess.check_call([sys.executable, way, "-c", "pass"])
    elif way == "exec -I":
        os.execv(sys.executable, [sys.executable, "-W", "ignore", "-I", "-c", "pass"])

if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path


def clean(run: Run, *arguments: str | Path, **more: str) -> str:
    """Run to a good end without a word on stderr."""
    done = run(*arguments, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("flags", [[], ["-s"], ["-B"], ["-O"], ["-X", "dev"]], ids=" ".join)
def test_a_script_is_recorded(recorded: Run, app: Path, flags: list[str]) -> None:
    clean(recorded, *flags, app)
    assert list(recorded.marks()) == [pid for ids in recorded.marks().values() for pid in ids]
    (facts,) = [facts for facts in recorded.blobs(layout.FACTS) if "python" in facts]
    assert facts["script"] == "app.py"
    assert facts["executable"] == recorded.python.name


@pytest.mark.parametrize("start", [["-m", "app"], ["-c", "import app; app.main('')"]], ids=["-m", "-c"])
def test_modules_and_commands_are_recorded(recorded: Run, app: Path, start: list[str]) -> None:
    clean(recorded, *start, PYTHONPATH=f"{recorded.run}:{app.parent}")
    assert len(recorded.marks()) == 1


@pytest.mark.parametrize("way", ["spawn", "fork", "forkserver", "os.fork", "subprocess", "posix_spawn"])
def test_children_are_recorded_into_files_of_their_own(recorded: Run, app: Path, way: str) -> None:
    clean(recorded, app, way)
    marks = recorded.marks()
    assert len(marks) == 2
    assert all(ids == {pid} for pid, ids in marks.items())
    assert len({info.process for info, _ in recorded.segments()}) == 2
    assert len([facts for facts in recorded.blobs(layout.FACTS) if "python" in facts]) == 2
    assert not recorded.blobs(layout.TROUBLE)


def test_a_program_replaced_by_exec_counts_as_a_new_process(recorded: Run, app: Path) -> None:
    clean(recorded, app, "exec")
    infos = [info for info, _ in recorded.segments()]
    assert len({info.pid for info in infos}) == 1
    assert len({info.process for info in infos}) == 2
    assert sorted(info.execs for info in infos) == [0, 1]


@pytest.mark.parametrize("way", ["-I", "-E", "-S", "exec -I"])
def test_a_child_with_isolating_flags_is_said_to_be_uncovered(recorded: Run, app: Path, way: str) -> None:
    clean(recorded, app, way)
    (trouble,) = recorded.blobs(layout.TROUBLE)
    assert trouble == {"uncovered": f"{recorded.python.name} {way[-2:]}", "why": "flags"}


def test_a_child_with_an_environment_of_its_own_is_said_to_be_uncovered(recorded: Run, app: Path) -> None:
    clean(recorded, app, "env")
    (trouble,) = recorded.blobs(layout.TROUBLE)
    assert trouble == {"uncovered": recorded.python.name, "why": "environment"}


def test_nothing_is_written_where_nothing_is_recorded(recorded: Run) -> None:
    clean(recorded, "-c", "import json, subprocess; subprocess.check_call(['true'])")
    assert not recorded.segments()
    (seen,) = (recorded.spool / "seen").iterdir()
    assert seen.name.split("-")[2] == "0"


def test_the_start_imports_nothing_heavy(recorded: Run) -> None:
    heavy = "json mmap typing re struct collections threading"
    code = f"import sys; print([name for name in {heavy.split()} if name in sys.modules])"
    assert clean(recorded, "-c", code) == clean(recorded, "-c", code, PYTHONPATH="")


USERS_OWN = "import sys; sys.stdout.write('own '); ANSWER = 42"


def test_the_users_sitecustomize_runs_and_keeps_its_name(recorded: Run, app: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(USERS_OWN)
    code = "import sys, app; app.main(''); print(sys.modules['sitecustomize'].ANSWER)"
    path = f"{recorded.run}:{app.parent}:{own}"
    assert clean(recorded, "-c", code, PYTHONPATH=path) == "own 42\n"
    assert len(recorded.marks()) == 1


def test_an_error_in_the_users_sitecustomize_looks_as_it_does_without_us(
    recorded: Run, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("raise RuntimeError('boom')")
    done = recorded("-c", "print(1)", PYTHONPATH=f"{recorded.run}:{own}")
    without = recorded("-c", "print(1)", PYTHONPATH=str(own))
    assert (done.stdout, done.stderr) == (without.stdout, without.stderr)


def test_two_run_directories_start_once(recorded: Run, app: Path, tmp_path: Path) -> None:
    other = Run(tmp_path / "other", recorded.python)
    clean(recorded, app, PYTHONPATH=f"{recorded.run}:{other.run}")
    assert len(recorded.segments()) == 1


@pytest.mark.parametrize("code", ["print(1)", "import subprocess; print(1)"])
def test_an_old_python_runs_untouched(untouched: Run, tmp_path: Path, code: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(USERS_OWN)
    assert clean(untouched, "-W", "error", "-c", code, PYTHONPATH=f"{untouched.run}:{own}") == "own 1\n"
    assert [path.name.split("-")[2] for path in (untouched.spool / "seen").iterdir()] == ["0"]
    assert "phasetrace" not in clean(untouched, "-c", "import sys; print(sorted(sys.modules))")


@pytest.mark.parametrize("spool", ["", "missing", "/dev/null", "/proc/1"])
def test_a_useless_spool_is_no_trouble(recorded: Run, app: Path, spool: str) -> None:
    code = "from phasetrace_agent import bootstrap; r = bootstrap.recorder(); r and r.mark(1, 1, 1)"
    clean(recorded, "-c", code, PHASETRACE_SPOOL=spool)


def test_the_run_directory_holds_no_phasetrace(recorded: Run) -> None:
    done = recorded("-S", "-c", "import phasetrace")
    assert "ModuleNotFoundError" in done.stderr
    names = {path.name for path in recorded.run.iterdir()} - {"__pycache__"}
    packages = {name for name in names if (recorded.run / name / "__init__.py").exists()}
    assert names - packages == {"sitecustomize.py", "phasetrace-0.dist-info"}
    assert {"phasetrace_agent", "phasetrace_host"} <= packages


def test_entry_points_reach_vllm_and_opentelemetry(recorded: Run) -> None:
    code = """
import sys
from importlib.metadata import distribution
for point in distribution("phasetrace").entry_points:
    sys.stdout.write(point.group + " " + str(callable(point.load())) + "\\n")
"""
    assert clean(recorded, "-c", code) == "vllm.general_plugins True\nopentelemetry_instrumentor True\n"
