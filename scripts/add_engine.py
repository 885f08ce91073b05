"""Install one version of transformers in a folder of its own, to be put on PYTHONPATH beside a shared torch.

Run it with the Python that has torch: `python add_engine.py REQUIREMENT FOLDER [--with REQUIREMENT ...]`.
What that Python already has (torch, numpy and what they share) is not installed a second time; all else that
the requirement needs goes into the folder. An interrupted run leaves FOLDER.partial, never a FOLDER.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def missing_distributions(requirements: list[str]) -> list[str]:
    """Let pip resolve the requirements against this Python, and say what it would have to add."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip("--dry-run", "--report", str(report), *requirements)
        installs = json.loads(report.read_text())["install"]
    return [f"{item['metadata']['name']}=={item['metadata']['version']}" for item in installs]


def pip(*arguments: str) -> None:
    """Run `pip install`; its complaints go to the terminal, its progress does not."""
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *arguments], check=True)


def main() -> None:
    """Resolve, install beside the folder, and move into place."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("requirement")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--with", dest="extra", action="append", default=[], metavar="REQUIREMENT")
    arguments = parser.parse_args()

    partial = arguments.folder.with_name(arguments.folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    wanted = missing_distributions([arguments.requirement, *arguments.extra])
    pip("--no-deps", "--target", str(partial), *wanted)
    shutil.rmtree(arguments.folder, ignore_errors=True)
    partial.rename(arguments.folder)


if __name__ == "__main__":
    main()
