"""What recording costs a real vLLM: the same offline requests with and without it, in turns.

Two engines stand side by side, one of them under `phasetrace run`; in each pair both run the same round, one
after the other, so that what else the machine does meets both. Beside the ratios of throughput stands what
the recording says of itself. The model is tiny: a step is hardly more than vLLM's Python, the worst case.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.bench_run import ROOT, share_of_run, step_ms
from benchmarks.figure import Figure, figure
from phasetrace.read import read

VLLM_PYTHON = ROOT / ".engines/vllm/bin/python"
APPLICATION = Path(__file__).with_name("vllm_rounds.py")
PHASETRACE = [sys.executable, "-c", "import sys; from phasetrace.cli import main; sys.exit(main())"]
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
SIZES = ["--hidden", "128", "--layers", "2", "--heads", "4", "--kv-heads", "2", "--context", "1024"]


def measure(quick: bool = False) -> Iterator[Figure]:
    """Figures of one engine with recording and one without; none where the engine is not set up."""
    if not VLLM_PYTHON.exists():
        print("  skipped: `make engines-vllm` sets up what this records")
        return
    yield from of_pairs(5 if quick else 15)


def of_pairs(pairs: int) -> Iterator[Figure]:
    """Figures of so many pairs of rounds."""
    with tempfile.TemporaryDirectory() as folder:
        model, trace = Path(folder) / "tiny", Path(folder) / "trace.json"
        environment = {**os.environ, **ENVIRONMENT}
        make = [str(VLLM_PYTHON), str(ROOT / "examples/small_model.py"), str(model), *SIZES]
        subprocess.run(make, env=environment, check=True, capture_output=True)
        command = [str(VLLM_PYTHON), str(APPLICATION), str(model)]
        with ExitStack() as stack:
            plain = stack.enter_context(Engine(command, environment))
            recorded = stack.enter_context(
                Engine([*PHASETRACE, "run", "--quiet", "-o", str(trace), "--", *command], environment)
            )
            rates = []
            for number in range(pairs):
                engines = [plain, recorded] if number % 2 else [recorded, plain]
                found = {engine: engine.round() for engine in engines}
                rates.append((found[plain], found[recorded]))
        recording = read(trace)
    yield figure("vLLM: a step, recorded", [step_ms(recording)], "ms")
    yield figure("vLLM: throughput without recording", [rate for rate, _ in rates], "tok/s")
    yield figure("vLLM: throughput with / without recording, in pairs", [b / a for a, b in rates], "")
    yield figure("vLLM: time in hooks / wall time of the run", [share_of_run(recording)], "%")


class Engine:
    """An application that runs a round when it is told to."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Engine:
        while self._line() != "ready":
            pass
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=300)

    def round(self) -> float:
        """Output tokens a second."""
        assert self._process.stdin is not None
        self._process.stdin.write("again\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the application has ended")
        return line.strip()
