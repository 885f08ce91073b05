"""More tables made up for each cause, with other engines, devices and fields than `situations`: one a line.

Their numbers are invented and physically sound: floors, ratios and sums are those of the device they name.
"""

import json
from pathlib import Path
from typing import Any

LINES = Path(__file__).with_name("reports.jsonl").read_text().splitlines()
REPORTS: list[tuple[str, set[str], dict[str, Any]]] = [
    (line["name"], set(line["accept"]), line["table"]) for line in map(json.loads, LINES)
]
