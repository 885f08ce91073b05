"""Keep the recording in a trace file under a name."""

import gzip
import sys
import tempfile
from pathlib import Path

from phasetrace.emit.trace_file import TraceFile
from phasetrace.read import read
from tests.advise.recorded import FOLDER


def main(trace: str, name: str) -> None:
    """Write it with few spans, since all that is known is beside them, and packed."""
    recording = read(Path(trace))
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "trace.json"
        with TraceFile(written, detail="summary") as file:
            file.write(recording)
        (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(written.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
