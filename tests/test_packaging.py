"""What a user gets from the wheel, the sdist and an editable install."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.render.html.browser import missing


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and an sdist, built offline by the hatchling of this environment."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=root,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def wheel_names(built: Path) -> set[str]:
    """The names of the files in the wheel."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def packages(root: Path) -> set[str]:
    """The top-level packages that the repository holds, wherever they lie."""
    folders = [root, root / "integrations", root / "collectors"]
    return {path.parent.name for folder in folders for path in folder.glob("phasetrace*/__init__.py")}


def test_every_package_is_top_level_in_the_wheel(root: Path, wheel_names: set[str]) -> None:
    top_level = {name.split("/")[0] for name in wheel_names if ".dist-info/" not in name}
    assert top_level == packages(root)
    assert {"phasetrace", "phasetrace_agent", "phasetrace_transformers"} <= top_level


def test_the_wheel_holds_every_module_and_type_marker(root: Path, wheel_names: set[str]) -> None:
    sources = {
        str(path.relative_to(base))
        for base in (root, root / "integrations", root / "collectors")
        for package in base.glob("phasetrace*/")
        for path in package.rglob("*.py")
    }
    assert sources <= wheel_names
    assert "phasetrace/py.typed" in wheel_names


def test_the_wheel_holds_the_page_and_the_charts_with_their_licence(
    root: Path, wheel_names: set[str]
) -> None:
    room = "phasetrace/render/html"
    assert {f"{room}/site/main.js", f"{room}/site/style.css"} <= wheel_names
    if not (root / room / "vendor").is_dir():
        missing("the build could not fetch the charts")
    vendored = {f"{room}/vendor/uplot/{name}" for name in ("uPlot.iife.min.js", "uPlot.min.css", "LICENSE")}
    assert vendored <= wheel_names


def test_the_wheel_offers_the_script_and_the_instrumentor(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        entry_points = archive.read(name).decode()
    assert "phasetrace = phasetrace.cli:main" in entry_points
    assert "phasetrace = phasetrace_agent.instrumentor:Instrumentor" in entry_points


def test_a_wheel_from_the_sdist_is_the_same(built: Path, wheel_names: set[str], tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (wheel,) = (tmp_path / "again").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert set(archive.namelist()) == wheel_names


def test_no_package_bears_an_engines_name(root: Path) -> None:
    folders = [path.name for path in (root / "integrations").iterdir() if path.is_dir()]
    assert all(name.startswith("phasetrace_") for name in folders if name != "__pycache__")


def test_the_wheel_installs_and_imports(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import phasetrace, phasetrace_agent, phasetrace_transformers; print(phasetrace.__file__)"
    # -S -P: neither the editable install nor the repository is in reach.
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


def test_the_changelog_knows_the_version(root: Path) -> None:
    from phasetrace import __version__

    headings = re.findall(r"^## \[(.+?)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert __version__ in headings or headings[0] == "Unreleased"
