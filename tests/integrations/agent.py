"""A run directory and a spool without a supervisor, and what stands in the spool afterwards."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasetrace.assemble.spool import Record, SegmentInfo, read_segment
from phasetrace_agent import layout, rundir


def read_spool(folder: Path) -> list[Record]:
    """All records of a folder, segment by segment in the order in which they were opened."""
    segments = sorted((read_segment(path) for path in folder.glob("*.seg")), key=lambda read: read[0].number)
    return [record for _, records, _ in segments for record in records]


@dataclass
class Run:
    """What `phasetrace run` would prepare for its command."""

    base: Path
    python: Path

    def __post_init__(self) -> None:
        self.run, self.spool = self.base / "run", self.base / "spool"
        rundir.make(self.run, "0")
        rundir.make_spool(self.spool)

    def environment(self, **more: str) -> dict[str, str]:
        """The command's environment; a warning would be an error."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PHASETRACE"))
        }
        return {
            **kept,
            "PYTHONPATH": str(self.run),
            "PHASETRACE_RUN": str(self.run),
            "PHASETRACE_SPOOL": str(self.spool),
            "PYTHONWARNINGS": "error",
            **more,
        }

    def __call__(self, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            [self.python, *arguments],
            env=self.environment(**more),
            cwd=self.base,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def segments(self) -> list[tuple[SegmentInfo, list[Record]]]:
        """Every segment with its records."""
        return [read_segment(path)[:2] for path in sorted(self.spool.glob("*.seg"))]

    def blobs(self, kind: int) -> list[dict[str, Any]]:
        """The objects of all records of a kind."""
        return [layout.decode_blob(p)[3] for _, records in self.segments() for k, p in records if k == kind]

    def count(self, *kinds: int) -> int:
        """Records of these kinds."""
        return sum(kind in kinds for _, records in self.segments() for kind, _ in records)

    def marks(self) -> dict[int, set[int]]:
        """The request ids of all marks, by the pid in the header of their segment."""
        found: dict[int, set[int]] = {}
        for info, records in self.segments():
            ids = {layout.decode_mark(payload)[0] for kind, payload in records if kind == layout.MARK}
            found.setdefault(info.pid, set()).update(ids)
        return found
