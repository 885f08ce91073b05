// The roofline: what the steps reached, under what the machine can.

import { data } from "./data.js";
import { el, section } from "./dom.js";
import { phaseColor, themed } from "./colors.js";
import { chart, HAVE_CHARTS } from "./charts.js";
import { counted, siPrefixed, threeDigits } from "./format.js";

export function roofline() {
  if (!data.roofline || !HAVE_CHARTS) return null;
  const { points, bandwidth_bytes_s: bandwidth, flops_s: flops } = data.roofline;
  const note = el("output", { class: "figure" });
  const host = el("div", { class: "plot", "data-chart": "roofline", "aria-label": "Roofline: FLOP a second over FLOP a byte" });
  const hint = bandwidth
    ? "Each point is steps of like size; the line is what the machine can do. Attention and the KV cache are not counted."
    : "Each point is steps of like size. What the machine can do is not known: phasetrace bench measures it, and --ceilings brings it here.";
  queueMicrotask(() => draw(host, points, bandwidth, flops, note));
  return section("Roofline", hint,
    el("p", { class: "keys" }, key("decode", "steps that only decode"), key("prefill", "steps that read prompts"), note), host);
}

const key = (phase, said) => el("span", { class: "key" }, el("i", { class: "swatch round", style: { background: phaseColor(phase) } }), said);

function draw(host, points, bandwidth, flops, note) {
  const ridge = bandwidth && flops ? flops / bandwidth : null;
  const xs = points.map((p) => p.intensity);
  const [low, high] = [10 ** Math.floor(Math.log10(Math.min(...xs, ridge ?? Infinity) / 1.2)), 3 * Math.max(...xs, ridge ?? 0)];
  const all = [...new Set([low, ...xs, ridge ?? low, high])].sort((a, b) => a - b);
  const roof = all.map((x) => (bandwidth ? Math.min(x * bandwidth, flops ?? Infinity) : null));
  const of = (kind) => all.map((x) => points.find((p) => p.kind === kind && p.intensity === x)?.flops_s ?? null);
  const dots = (kind) => ({ label: kind, paths: () => null, points: { show: true, size: 9, width: 1, fill: phaseColor(kind), stroke: () => themed("--ground") } });
  const ys = points.map((p) => p.flops_s).concat(roof.filter((y) => y !== null));
  const reach = [10 ** Math.floor(Math.log10(Math.min(...ys) / 1.2)), 1.6 * Math.max(...ys)];
  const decades = (_, axis, least, most) => powersOfTen(axis ? least * 1.01 : least, most);
  chart(
    host,
    {
      height: 300,
      axes: [
        { format: (x) => `${threeDigits(x)} FLOP/B`, splits: decades },
        { format: (y) => siPrefixed(y, "FLOP/s"), size: 84, splits: decades },
      ],
      scales: { x: { time: false, distr: 3, range: [low, high] }, y: { distr: 3, range: reach } },
      series: [{}, { stroke: () => themed("--ink"), width: 1.5, points: { show: false }, spanGaps: true }, dots("prefill"), dots("decode")],
      hooks: { setCursor: [(plot) => tell(plot, points, all, note)] },
    },
    [all, roof, of("prefill"), of("decode")],
  );
}

function powersOfTen(least, most) {
  const found = [];
  for (let power = Math.ceil(Math.log10(least) - 1e-9); 10 ** power <= most; power++) found.push(10 ** power);
  return found;
}

function tell(plot, points, xs, note) {
  const here = points.filter((p) => p.intensity === xs[plot.cursor.idx]);
  note.textContent = here.map((p) => `${counted(p.steps, p.kind + " step")} of ${threeDigits(p.tokens)} tokens: ${siPrefixed(p.flops_s, "FLOP/s")}`).join("; ");
}
