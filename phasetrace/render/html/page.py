"""The file: head, policy, data and code, put together so that only this code can ever run in it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phasetrace.model import Diagnosis
from phasetrace.render.html.document import document
from phasetrace.render.html.modules import joined

# Everything is forbidden but this style and these scripts, known by their hashes. `data:` is for the icon,
# which is empty: without one a browser asks the server of the file for one.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a page is made of besides its data. `charts` and its style and licence are another project's."""

    style: str
    modules: Mapping[str, str]  # by name, in the order of their imports
    charts: str | None = None
    charts_style: str = ""
    charts_licence: str = ""


def report(d: Diagnosis, parts: Parts) -> str:
    """The whole report."""
    code = joined(parts.modules)
    scripts = [code] if parts.charts is None else [parts.charts, code]
    style = parts.charts_style + "\n" + parts.style
    policy = _POLICY.format(scripts=" ".join(map(_hash, scripts)), styles=_hash(style))
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{html.escape(str(d.cause))} - phasetrace</title>",
        '<link rel="icon" href="data:,">',
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        "<noscript>This report draws itself by a script, which can reach nothing but this file.</noscript>",
        '<main id="report"></main>',
        f'<script type="application/json" id="data">{_json(document(d))}</script>',
    ]
    if parts.charts is not None:
        lines += [f"<!-- uPlot, under this licence:\n{parts.charts_licence.strip()}\n-->"]
        lines += [f"<script>{parts.charts}</script>"]
    return "\n".join([*lines, f'<script type="module">{code}</script>', "</body>", "</html>", ""])


def _json(content: dict[str, Any]) -> str:
    """JSON that no HTML can hide in."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
