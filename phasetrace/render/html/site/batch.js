// What stood in the engine's steps over time, under the waterfall and in the same stretch of time.

import { el } from "./dom.js";
import { phaseColor, themed } from "./colors.js";
import { chart, HAVE_CHARTS, translucent } from "./charts.js";
import { count, duration } from "./format.js";
import { lowerBound } from "./tokens.js";

const CHARTS = [
  ["running", "Sequences in a step", () => phaseColor("decode")],
  ["waiting", "Requests waiting", () => phaseColor("queue")],
  ["prefill", "Prompt tokens read in a step", () => phaseColor("prefill")],
  ["kv_blocks", "KV blocks in use", () => themed("--muted")],
];

export function batchTimeline(run, view) {
  const shown = CHARTS.filter(([name]) => run.steps?.[name]);
  if (!shown.length || !HAVE_CHARTS) return [];
  const order = inTime(run.steps);
  return shown.map(([name, title, color]) => {
    const plot = el("div", { class: "plot", "aria-label": `${title}, over time` });
    const value = el("output", { class: "figure" });
    const most = run.steps[name].reduce((a, b) => Math.max(a, b), 0);
    const host = el("div", { class: "small-chart", "data-chart": name }, el("h3", {}, el("span", {}, title, el("span", { class: "most" }, `at most ${count(most)}`)), value), plot);
    // The place must be on the page before a plot can measure it.
    queueMicrotask(() => draw(plot, value, order, run.steps[name], color, view));
    return host;
  });
}

function draw(host, value, order, column, color, view) {
  const plot = chart(
    host,
    {
      height: 84,
      padding: [4, 0, 0, 0], // as wide as the waterfall, so that times stand below each other
      axes: [{ format: inside }, { format: () => "", size: 0 }],
      scales: { x: { time: false, range: () => [view.from / 1e6, view.to / 1e6] }, y: { range: (_, low, high) => [0, Math.max(1, high) * 1.1] } },
      cursor: { sync: { key: "time" }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      series: [{}, { stroke: color, fill: () => translucent(color(), 0.3), width: 1.25, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }],
      hooks: {
        setSelect: [(plot) => zoomTo(plot, view)],
        setCursor: [(plot) => {
          const at = plot.cursor.idx == null ? null : plot.data[1][plot.cursor.idx];
          value.textContent = at == null ? "" : count(at);
        }],
      },
    },
    inView(order, column, view, host.clientWidth),
  );
  if (plot) view.onChange(() => plot.setData(inView(order, column, view, host.clientWidth)));
}

// A nought at the very edge would be cut in half.
const inside = (s) => (s === 0 ? "" : duration(s * 1e9));

function zoomTo(plot, view) {
  const { left, width } = plot.select;
  if (width < 4) return;
  view.set(plot.posToVal(left, "x") * 1e6, plot.posToVal(left + width, "x") * 1e6);
  plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
}

// Steps of several streams follow each other in the columns; on the page they follow each other in time.
function inTime({ begin, end }) {
  const places = Uint32Array.from(end.keys());
  if (begin.some((time, i) => i > 0 && time < begin[i - 1])) places.sort((a, b) => begin[a] - begin[b]);
  return { places, begin: Float64Array.from(places, (p) => begin[p]), end: Float64Array.from(places, (p) => end[p]) };
}

// Times and values of what is in view: each step where they are few, else the largest of neighbours, so that
// no peak is lost. Between steps there is nothing: zero.
function inView({ places, begin, end }, column, view, width) {
  const first = Math.max(0, lowerBound(begin, view.from) - 1);
  const last = Math.min(places.length, lowerBound(begin, view.to) + 1);
  const stride = Math.max(1, Math.floor((last - first) / Math.max(200, width)));
  const [times, values] = [[], []];
  let idleFrom = null;
  for (let i = first; i < last; i += stride) {
    const until = Math.min(last, i + stride);
    let most = 0;
    let latest = 0;
    for (let j = i; j < until; j++) {
      most = Math.max(most, column[places[j]]);
      latest = Math.max(latest, end[j]);
    }
    if (idleFrom !== null && begin[i] - idleFrom > 1000) {
      times.push(idleFrom / 1e6);
      values.push(0);
    }
    times.push(begin[i] / 1e6);
    values.push(most);
    idleFrom = latest;
  }
  if (idleFrom !== null) {
    times.push(idleFrom / 1e6);
    values.push(0);
  }
  return [times, values];
}
