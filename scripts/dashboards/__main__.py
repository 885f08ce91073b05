"""Writes dashboards/*.json for Grafana: `python -m scripts.dashboards`."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from scripts.dashboards.engine import engine
from scripts.dashboards.fleet import fleet
from scripts.dashboards.trace import trace

FOLDER = Path(__file__).resolve().parent.parent.parent / "dashboards"
DASHBOARDS = {"fleet": fleet, "engine": engine, "trace": trace}


def document(name: str) -> str:
    """A dashboard as Grafana imports it."""
    encoded = json.dumps(DASHBOARDS[name]().build(), cls=JSONEncoder)
    return json.dumps(json.loads(encoded), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in DASHBOARDS:
        (FOLDER / f"{each}.json").write_text(document(each), encoding="utf-8")
