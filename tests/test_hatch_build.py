"""How the charts of the report get into the package: by hash, once, and never at the cost of the build."""

import importlib.util
import io
import subprocess
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def build(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", root / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Warnings:
    """Stands for hatchling's own output."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def display_warning(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def warnings() -> Warnings:
    return Warnings()


@pytest.fixture
def hook(build: ModuleType, tmp_path: Path, warnings: Warnings) -> Any:
    return build.Charts(str(tmp_path), {}, None, None, str(tmp_path), "wheel", warnings)


def archive(build: ModuleType) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for name in (*build.WANTED, "package/../../outside", "package/README.md"):
            member = tarfile.TarInfo(name)
            member.size = 3
            file.addfile(member, io.BytesIO(b"abc"))
    return packed.getvalue()


def test_only_what_is_wanted_is_unpacked(
    hook: Any, build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build, "fetched", lambda: archive(build))
    hook.initialize("standard", {})
    assert sorted(path.name for path in hook.folder.iterdir()) == [
        "LICENSE",
        "VERSION",
        "uPlot.iife.min.js",
        "uPlot.min.css",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["phasetrace"]
    monkeypatch.setattr(build, "fetched", lambda: pytest.fail("fetched again"))
    hook.initialize("standard", {})
    assert hook.dependencies() == []


def test_other_bytes_are_refused(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def pack(command: list[str], cwd: str, **_: Any) -> None:
        Path(cwd, "uplot-1.6.32.tgz").write_bytes(b"something else")

    monkeypatch.setattr(build.subprocess, "run", pack)
    with pytest.raises(ValueError, match="not what it was"):
        build.fetched()


def test_npm_gives_up_soon_where_there_is_no_network(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def pack(command: list[str], cwd: str, **_: Any) -> None:
        asked.extend(command)
        Path(cwd, "uplot-1.6.32.tgz").write_bytes(b"")

    monkeypatch.setattr(build.subprocess, "run", pack)
    with pytest.raises(ValueError):
        build.fetched()
    assert "--fetch-retries=1" in asked


@pytest.mark.parametrize(
    "error", [OSError("no npm"), subprocess.CalledProcessError(1, "npm"), ValueError("other")]
)
def test_a_build_that_cannot_fetch_goes_on_and_says_so(
    hook: Any, build: ModuleType, warnings: Warnings, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail() -> bytes:
        raise error

    monkeypatch.setattr(build, "fetched", fail)
    hook.initialize("standard", {})
    assert not hook.folder.exists()
    assert "the HTML report will have no charts" in warnings.said[0]


def test_npm_is_asked_for_only_where_there_is_none(
    hook: Any, build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(build.shutil, "which", lambda _: "/usr/bin/npm")
    assert hook.dependencies() == []
    monkeypatch.setattr(build.shutil, "which", lambda _: None)
    assert hook.dependencies() == [build.NODE]
    monkeypatch.setattr(build.platform, "machine", lambda: "riscv64")
    assert hook.dependencies() == []


def test_it_can_be_done_without(
    hook: Any, build: ModuleType, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHASETRACE_WITHOUT_CHARTS", "1")
    monkeypatch.setattr(build.shutil, "which", lambda _: None)
    hook.initialize("standard", {})
    assert hook.dependencies() == [] and not hook.folder.exists() and warnings.said == []
