"""What stands at the axes of the charts, in a real Chromium."""

from itertools import pairwise
from pathlib import Path

from phasetrace.render import html
from tests.render.html import scenes
from tests.render.html.browser import chromium, missing

# Notes each word that a canvas is given, with the chart that it belongs to.
NOTES = """
window.$written = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
  window.$written.push([this.canvas.closest("[data-chart]")?.dataset.chart, text]);
  return fillText.call(this, text, ...place);
};
"""


def test_requests_are_counted_in_whole_numbers(parts: html.Parts, tmp_path: Path) -> None:
    if parts.charts is None:
        missing("this copy was built without charts; building it anew fetches them")
    file = tmp_path / "report.html"
    file.write_text(html.report(scenes.diagnosis(scenes.served(requests=6)), parts), encoding="utf-8")
    with chromium() as browser:
        page = browser.new_page()
        page.add_init_script(NOTES)
        page.goto(file.as_uri())
        page.wait_for_function("$written.some(([chart, text]) => chart === 'e2e' && text === 'p99')")
        written = page.evaluate("$written")
    for chart in ("ttft", "tpot", "e2e"):
        texts = [text for where, text in written if where == chart]
        assert texts and all(text != following for text, following in pairwise(texts)), texts
