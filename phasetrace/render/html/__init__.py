"""A diagnosis as one HTML file that opens from disk, needs no network, and obeys nothing that a trace says.

`document` says what the page knows, `page` puts it into a file. What the page does is written in JavaScript
and CSS under `site/`; the charts are uPlot's, which the build puts under `vendor/`. Both are given as strings
(`Parts`), since this room reads no files.
"""

from phasetrace.render.html.page import Parts, report

__all__ = ["Parts", "report"]
