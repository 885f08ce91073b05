// How TTFT, TPOT and e2e are spread over the requests, with percentiles and what was promised.

import { report } from "./data.js";
import { el, section } from "./dom.js";
import { onTheme, themed } from "./colors.js";
import { chart, HAVE_CHARTS, rule, translucent } from "./charts.js";
import { count, fromZero, metricName, seconds } from "./format.js";

const BINS = 36;
const METRICS = ["ttft", "tpot", "e2e"];

export function distributions(run) {
  if (!run || !HAVE_CHARTS) return null;
  const measured = run.requests.filter((request) => !request.apart);
  const columns = METRICS.map((name) => [name, measured.map((r) => r[name]).filter((ns) => ns !== null).map((ns) => ns / 1e9)]);
  const charts = columns.filter(([, values]) => values.length > 1).map(([name, values]) => {
    const plot = el("div", { class: "plot", "aria-label": `Distribution of ${metricName(name)} over ${count(values.length)} requests` });
    queueMicrotask(() => draw(plot, name, values, note));
    const note = el("output", { class: "figure" });
    return el("div", { class: "small-chart", "data-chart": name }, el("h3", {}, metricName(name), note), plot);
  });
  return charts.length ? section("Distributions", "Requests by their time; lines are percentiles, and the SLO where one was given.", el("div", { class: "three" }, ...charts)) : null;
}

function draw(host, name, values, note) {
  const limit = report.slo?.[`${name}_s`] ?? null;
  const { edges, heights } = histogram(values, limit);
  const width = edges[1] - edges[0];
  const accent = () => themed("--bars");
  chart(
    host,
    {
      height: 190,
      axes: [{ format: fromZero, space: 64 }, { format: count, size: 40, whole: true }],
      scales: { x: { time: false, range: [edges[0], edges.at(-1) + width] }, y: { range: (_, low, high) => [0, (high || 1) * 1.25] } },
      series: [{}, { stroke: accent, fill: () => translucent(accent(), 0.55), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.9], align: 1 }) }],
      hooks: {
        draw: [(plot) => lines(plot, name, limit)],
        setCursor: [(plot) => {
          const i = plot.cursor.idx;
          note.textContent = i == null ? "" : `${seconds(edges[i])} to ${seconds(edges[i] + width)}: ${count(heights[i])}`;
        }],
      },
    },
    [edges, heights],
  );
}

function lines(plot, name, limit) {
  const values = report.metrics[`${name}_s`];
  for (const [row, percentile] of ["p50", "p95", "p99"].entries())
    if (values[percentile] !== null) rule(plot, { at: values[percentile], label: percentile, color: themed("--ink"), row });
  if (limit !== null) rule(plot, { at: limit, label: `SLO ${seconds(limit)}`, color: themed("--stall"), dash: [], row: 3 });
}

function histogram(values, limit) {
  const most = values.reduce((a, b) => Math.max(a, b), limit ?? 0) || 1;
  const width = most / BINS;
  const heights = new Array(BINS + 1).fill(0);
  for (const value of values) heights[Math.min(BINS, Math.floor(value / width))]++;
  return { edges: heights.map((_, i) => i * width), heights };
}
