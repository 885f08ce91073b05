"""Import hooks and wrappers: the application cannot tell that they are there."""

import functools
import gc
import inspect
import pickle
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import phasetrace_host
from phasetrace_agent import bootstrap, calibrate, hooking, layout
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import Spool
from tests.integrations.agent import Run, read_spool


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder(Spool(str(tmp_path)))
    monkeypatch.setitem(bootstrap._made, "recorder", recorder)
    return recorder


def troubles(folder: Path) -> list[dict[str, Any]]:
    return [layout.decode_blob(payload)[3] for kind, payload in read_spool(folder) if kind == layout.TROUBLE]


class Engine:
    """Stands in for an engine's class."""

    def generate(self, prompt: str, *, length: int = 3) -> str:
        """Generate."""
        if length < 0:
            raise ValueError("too short")
        return prompt * length

    @classmethod
    def load(cls, name: str) -> tuple[type, str]:
        return cls, name

    @staticmethod
    def version() -> str:
        return "1"


@pytest.fixture
def engine() -> Iterator[type[Engine]]:
    """A class of its own for each test."""
    before = dict(vars(Engine))
    yield Engine
    for name in ("generate", "load", "version"):
        setattr(Engine, name, before[name])


def quiet(*_: object) -> None:
    """Part of a hook that does nothing."""


def broken(*_: object) -> None:
    """Part of a hook that fails."""
    raise RuntimeError("a secret prompt")


def test_a_wrapped_method_looks_and_works_as_before(engine: type[Engine]) -> None:
    signature, original = inspect.signature(engine.generate), engine.generate
    assert hooking.wrap(engine, "generate", hooking.around(hooking.Hook("here"), quiet, quiet))
    assert inspect.signature(engine.generate) == signature
    assert engine.generate.__doc__ == "Generate."
    assert engine.generate.__wrapped__ is original  # type: ignore[attr-defined]
    assert engine().generate("a", length=2) == "aa"
    assert pickle.loads(pickle.dumps(Engine.generate)) is Engine.generate


def test_wrapping_twice_wraps_once_and_unwrapping_restores(engine: type[Engine]) -> None:
    original = vars(engine)["generate"]
    make = hooking.around(hooking.Hook("here"), quiet, quiet)
    hooking.wrap(engine, "generate", make)
    wrapper = vars(engine)["generate"]
    hooking.wrap(engine, "generate", make)
    assert vars(engine)["generate"] is wrapper
    assert hooking.unwrap(engine, "generate")
    assert vars(engine)["generate"] is original
    assert not hooking.unwrap(engine, "generate")


@pytest.mark.parametrize(
    "dress", [functools.wraps, lambda _: lambda function: function], ids=["wraps", "bare"]
)
def test_what_somebody_wrapped_since_is_left(engine: type[Engine], dress: Any) -> None:
    hooking.wrap(engine, "generate", hooking.around(hooking.Hook("here"), quiet, quiet))
    ours = engine.generate

    @dress(ours)
    def theirs(self: Engine, prompt: str) -> str:
        return ours(self, prompt)

    engine.generate = theirs  # type: ignore[method-assign, assignment]
    assert not hooking.unwrap(engine, "generate")
    assert engine.generate is theirs


def test_class_methods_and_static_methods_stay_what_they_are(engine: type[Engine]) -> None:
    for name in ("load", "version"):
        hooking.wrap(engine, name, hooking.around(hooking.Hook("here"), quiet, quiet))
    assert engine.load("x") == (engine, "x")
    assert engine().version() == "1"
    assert hooking.unwrap(engine, "load")
    assert engine.load("x") == (engine, "x")


def test_a_name_that_is_not_there_is_not_wrapped(engine: type[Engine]) -> None:
    assert not hooking.wrap(engine, "nothing", hooking.around(hooking.Hook("here")))
    assert hooking.defining_class(type("Sub", (engine,), {}), "generate") is engine
    assert hooking.defining_class(engine, "nothing") is None


@pytest.mark.parametrize("parts", [(broken, quiet), (quiet, broken)], ids=["before", "after"])
def test_a_failing_hook_turns_itself_off_and_is_told_once(
    engine: type[Engine], recorder: Recorder, tmp_path: Path, parts: tuple[Any, Any]
) -> None:
    hook = hooking.Hook("engine.generate")
    hooking.wrap(engine, "generate", hooking.around(hook, *parts))
    assert [engine().generate("a") for _ in range(3)] == ["aaa"] * 3
    assert not hook.on
    assert troubles(tmp_path) == [{"where": "engine.generate", "error": "RuntimeError"}]


def test_the_applications_exception_passes_untouched(
    engine: type[Engine], recorder: Recorder, tmp_path: Path
) -> None:
    hooking.wrap(engine, "generate", hooking.around(hooking.Hook("here"), quiet, quiet))
    with pytest.raises(ValueError, match="too short") as caught:
        engine().generate("a", length=-1)
    assert caught.value.__context__ is None
    assert traceback.extract_tb(caught.tb)[-1].name == "generate"
    assert not troubles(tmp_path)


def test_the_cost_of_each_kind_is_measured(tmp_path: Path) -> None:
    costs = calibrate.costs({"step": 5})
    assert set(costs) == {
        "step",
        "arrived",
        "mark",
        "detail",
        "finished",
        "ended",
        "pause",
        "device",
        "record",
        "execution",
        "prefix",
    }
    assert all(0 < cost < 10**7 for cost in costs.values())


def test_only_long_collections_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    times = iter([0, 10, 10 + phasetrace_host.THRESHOLD_NS - 1, 10**6, 10**6 + phasetrace_host.THRESHOLD_NS])
    monkeypatch.setattr(phasetrace_host, "time", SimpleNamespace(monotonic_ns=lambda: next(times)))
    callbacks: list[Any] = []
    monkeypatch.setattr(phasetrace_host, "gc", SimpleNamespace(callbacks=callbacks))
    monkeypatch.setattr(phasetrace_host, "_recorder", None)
    phasetrace_host.instrument(recorder)
    phasetrace_host.instrument(recorder)
    (watch,) = callbacks
    info = {"generation": 2, "collected": 7, "uncollectable": 0}
    watch("stop", info)  # we came in the middle of one
    for phase in ("start", "stop", "start", "stop"):
        watch(phase, info)
    (pause,) = [layout.decode_pause(p) for kind, p in read_spool(tmp_path) if kind == layout.PAUSE]
    assert pause == (layout.GC, 2, 10**6, 10**6 + phasetrace_host.THRESHOLD_NS, 7)
    assert gc.isenabled()


# --- In processes of their own: an engine that is imported, and its integration ---

APP = """
import sys
from phasetrace_agent import bootstrap, importhook
importhook.TRIGGERS["engine.core"] = "integration"
sys.path.insert(0, "packages")
"""
INTEGRATION = """
import sys
HOOKS = {"step": 5}
calls = []
def instrument(recorder):
    calls.append(sys.modules["engine.core"].READY)
    recorder.mark(1, 1, 1)
"""


@pytest.fixture
def engine_app(recorded: Run) -> Run:
    """A run with an engine and its integration beside the application."""
    package = recorded.base / "packages" / "engine"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "core.py").write_text("READY = True")
    (package.parent / "integration.py").write_text(INTEGRATION)
    return recorded


def output(run: Run, code: str) -> str:
    """What the application prints, with nothing on stderr."""
    done = run("-c", APP + code)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_an_integration_starts_after_its_module(engine_app: Run) -> None:
    code = """
import engine
assert "integration" not in sys.modules
import engine.core, importlib, integration
print(integration.calls, type(engine.core.__loader__).__name__, "phasetrace_host" in sys.modules)
importlib.reload(engine.core)
"""
    assert output(engine_app, code) == "[True] SourceFileLoader True"
    assert list(engine_app.marks().values()) == [{1}]
    (costs,) = [facts["costs"] for facts in engine_app.blobs(layout.FACTS) if "costs" in facts]
    assert costs["step"] > 0


def test_a_second_spool_is_told_all_again(engine_app: Run) -> None:
    second = engine_app.base / "second"
    second.mkdir()
    code = """
import engine.core
bootstrap.stop()
bootstrap.start("second")
"""
    assert output(engine_app, code) == ""
    told = [layout.decode_blob(payload)[3] for kind, payload in read_spool(second) if kind == layout.FACTS]
    assert [facts for facts in told if "costs" in facts]


def test_a_module_that_was_imported_before_is_hooked_too(engine_app: Run) -> None:
    code = """
importhook.uninstall()
import engine.core
importhook.install()
import integration
print(integration.calls)
"""
    assert output(engine_app, code) == "[True]"


def test_an_engine_that_fails_to_import_fails_as_it_would(engine_app: Run) -> None:
    (engine_app.base / "packages" / "engine" / "core.py").write_text("1 / 0")
    code = """
import traceback
for _ in range(2):
    try:
        import engine.core
    except ZeroDivisionError:
        print("phasetrace" in traceback.format_exc().lower(), "integration" in sys.modules)
"""
    assert output(engine_app, code).split("\n")[0].endswith("False")


@pytest.mark.parametrize("source", ["raise RuntimeError", "", "def instrument(recorder): 1 / 0", "1 +"])
def test_an_integration_that_fails_is_told_and_the_engine_works(engine_app: Run, source: str) -> None:
    (engine_app.base / "packages" / "integration.py").write_text(source)
    assert output(engine_app, "import engine.core; print(engine.core.READY)") == "True"
    (trouble,) = engine_app.blobs(layout.TROUBLE)
    assert trouble["where"] == "integration"


def test_an_engine_that_is_imported_after_the_run_has_been_cleaned_away(engine_app: Run) -> None:
    code = f"""
import shutil
shutil.rmtree({str(engine_app.run)!r})
shutil.rmtree({str(engine_app.spool)!r})
import engine.core, subprocess
subprocess.check_call([sys.executable, "-I", "-c", "pass"])
print(engine.core.READY, bootstrap.recorder())
"""
    assert output(engine_app, code) == "True None"


def test_the_instrumentor_starts_and_stops(engine_app: Run) -> None:
    code = f"""
import os
from phasetrace_agent.instrumentor import Instrumentor
importhook.uninstall()
bootstrap._folder = ""
os.environ["PHASETRACE_SPOOL"] = {str(engine_app.spool)!r}
Instrumentor().instrument(skip_dep_check=True)
Instrumentor().instrument()
import engine.core
recorder = bootstrap.recorder()
print(sys.meta_path.count(importhook.Finder), recorder.enabled)
Instrumentor().uninstrument()
print(sys.meta_path.count(importhook.Finder), recorder.enabled, bootstrap.recorder())
bootstrap.start({str(engine_app.base)!r})
print(bootstrap.recorder().enabled)
"""
    assert output(engine_app, code) == "1 True\n0 False None\nTrue"
    assert read_spool(engine_app.base)
    assert sys.meta_path


# --- Privacy ---

SECRETS = """
import os, subprocess, sys
from phasetrace_agent import bootstrap
sys.argv[0] = "/home/SECRET-argv/app.py"
recorder = bootstrap.recorder()
recorder.mark(1, 1, 1)
recorder.failed("hook", RuntimeError("SECRET-message"))
recorder.detail(1, {"bad": object()})
for how in (["-I"], ["-E", "-X", "SECRET=option"]):
    subprocess.run([sys.executable, *how, "-c", "'SECRET-code'", "SECRET-argument"], check=True)
subprocess.run([sys.executable, "-c", "pass", "SECRET-argument"], env={"KEY": "SECRET-variable"}, check=True)
"""


def test_no_secret_reaches_the_spool(recorded: Run) -> None:
    folder = recorded.base / "SECRET-folder"
    folder.mkdir()
    (folder / "app.py").write_text(SECRETS)
    done = recorded("-X", "utf8", folder / "app.py", "SECRET-argument", TOKEN="SECRET-token")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(recorded.blobs(layout.TROUBLE)) == 5
    for path in recorded.spool.rglob("*"):
        assert "SECRET" not in path.name
        if path.is_file():
            assert b"SECRET" not in path.read_bytes()
