"""`make bench`: every bench_*.py beside this, one after the other, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

failed = []
for path in sorted(Path(__file__).parent.glob("bench_*.py")):
    print(f"== {path.stem.removeprefix('bench_')}", flush=True)
    if subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"]).returncode:
        failed.append(path.name)
sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
