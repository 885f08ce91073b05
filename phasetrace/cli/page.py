"""Reads what the HTML report is made of: page code, and the charts that the build vendored."""

from __future__ import annotations

from importlib.resources import files

from phasetrace.render.html import Parts

MODULES = (
    "format",
    "dom",
    "columns",
    "data",
    "colors",
    "view",
    "charts",
    "verdict",
    "tokens",
    "request",
    "rows",
    "paint",
    "waterfall",
    "batch",
    "distributions",
    "roofline",
    "findings",
    "main",
)


def parts() -> Parts:
    """All of it; without charts where the package was built without them."""
    room = files("phasetrace.render.html")
    own = room.joinpath("site")
    vendored = room.joinpath("vendor", "uplot")
    modules = {name: own.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in MODULES}
    style = own.joinpath("style.css").read_text(encoding="utf-8")
    if not vendored.joinpath("uPlot.iife.min.js").is_file():
        return Parts(style, modules)
    script, css, licence = (
        vendored.joinpath(name).read_text(encoding="utf-8")
        for name in ("uPlot.iife.min.js", "uPlot.min.css", "LICENSE")
    )
    return Parts(style, modules, script, css, licence)
