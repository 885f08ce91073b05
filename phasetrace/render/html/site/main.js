// Puts the page together: first the answer, which needs nothing unpacked, then the pictures.

import { data, loadRun, report } from "./data.js";
import { button, el, section } from "./dom.js";
import { isDark, PHASES, theme } from "./colors.js";
import { View } from "./view.js";
import { metrics, swatch, theFix, verdict, whereTheTimeWent } from "./verdict.js";
import { RequestPanel } from "./request.js";
import { Waterfall } from "./waterfall.js";
import { batchTimeline } from "./batch.js";
import { distributions } from "./distributions.js";
import { roofline } from "./roofline.js";
import { furtherFindings, interference, owners, stalls, stepCosts, theData } from "./findings.js";

const place = document.getElementById("report");
const put = (...sections) => place.append(...sections.filter(Boolean));

function top() {
  const toggle = button(isDark() ? "Light" : "Dark", () => {
    theme(isDark() ? "light" : "dark");
    toggle.textContent = isDark() ? "Light" : "Dark";
  }, { class: "quiet", id: "theme", "aria-label": "Change between light and dark" });
  return el("div", { class: "top" }, el("span", { class: "mark" }, "phasetrace"), el("span", { class: "spring" }), toggle);
}

function timeline(run) {
  const view = new View(run.length);
  const panel = new RequestPanel(run, { open: show, close });
  const waterfall = new Waterfall(run, view, { open: show, close });
  function show(request) {
    waterfall.choose(request);
    panel.show(request);
    panel.host.scrollIntoView({ block: "nearest", behavior: "instant" });
  }
  function close() {
    panel.hide();
    waterfall.choose(null);
    waterfall.box.focus({ preventScroll: true });
  }
  const used = PHASES.filter((_, i) => run.requests.some((request) => request.pieces.some(({ phase }) => phase === i)));
  const keys = el("p", { class: "keys" }, ...used.map((phase) => el("span", { class: "key" }, swatch(phase), phase)),
    run.requests.some(({ stalls }) => stalls.length) && el("span", { class: "key" }, el("i", { class: "swatch stall" }), "stall"));
  const hint = "Click a request for its tokens. Drag to move, Ctrl and wheel (or + and −) to zoom; the arrow keys work too."
    + (run.leftOut ? ` The ${run.requests.length.toLocaleString("en-US")} slowest are shown; ${run.leftOut.toLocaleString("en-US")} are left out.` : "");
  const lanes = section("Requests over time", hint, keys, waterfall.host, panel.host);
  const steps = batchTimeline(run, view);
  return {
    open: show,
    sections: [lanes, steps.length ? section("The batch over time", "What the engine's steps held. Drag across a chart to zoom in; the waterfall follows.", ...steps) : null],
  };
}

let before; // the theme, while the page is printed

async function start() {
  put(top(), verdict(), whereTheTimeWent(), theFix(), metrics());
  const run = await loadRun();
  const shown = run && timeline(run);
  put(...(shown?.sections ?? []), distributions(run), roofline(), owners(), stalls(), interference(run, shown?.open), stepCosts(), furtherFindings(), theData());
  put(el("footer", {}, `phasetrace ${data.version}, ${report.schema}. This file reaches no network.`));
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details.finding").forEach((details) => (details.open = true));
    before = document.documentElement.dataset.theme;
    theme("light"); // paper is white, and what is on a canvas does not know that
  });
  addEventListener("afterprint", () => theme(before));
  requestAnimationFrame(() => (document.documentElement.dataset.ready = String(Math.round(performance.now()))));
}

start();
