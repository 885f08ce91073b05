// uPlot in the page's own look. Without it (a build that could not fetch it) the place of a chart says so.

import { el } from "./dom.js";
import { onTheme, themed } from "./colors.js";

export const HAVE_CHARTS = typeof uPlot !== "undefined";
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();
const FONT = "11px system-ui, sans-serif";

// Draws `data` and gives the plot, or null. `options` are uPlot's but for size, colours and fonts; `axes`
// holds {format, size, space, splits, whole} for x and y, `height` pixels.
export function chart(host, { height, axes, ...options }, data) {
  if (!HAVE_CHARTS) {
    host.append(el("p", { class: "hint" }, "No chart: this copy of phasetrace was built without its charting library."));
    return null;
  }
  const plot = new uPlot(
    {
      legend: { show: false },
      cursor: { points: { size: 6 }, drag: { x: false, y: false } },
      ...options,
      width: Math.max(120, host.clientWidth),
      height,
      axes: axes.map(axis),
    },
    data,
    host,
  );
  plot.root.setAttribute("role", "img");
  plot.root.setAttribute("aria-label", host.getAttribute("aria-label") ?? "");
  new ResizeObserver(() => {
    if (host.clientWidth && host.clientWidth !== plot.width) plot.setSize({ width: host.clientWidth, height });
  }).observe(host);
  onTheme(() => plot.redraw(false));
  return plot;
}

function axis({ format, splits, size, space, whole }, i) {
  return {
    stroke: () => themed("--muted"),
    font: FONT,
    size: size ?? (i ? 54 : 30),
    gap: 4,
    space: space ?? (i ? 26 : 70),
    grid: { stroke: () => themed("--line"), width: 1, show: i > 0 },
    ticks: { show: false },
    values: (plot, found) => found.map((value) => (value === null ? "" : format(value))),
    ...(splits ? { splits } : {}),
    ...(whole ? { incrs: WHOLE } : {}), // no half requests
  };
}

// A line through a plot with a word at its head.
export function rule(plot, { at, label, color, dash = [4, 4], row = 0 }) {
  const x = plot.valToPos(at, "x", true);
  const { left, top, width, height } = plot.bbox;
  if (!(x >= left && x <= left + width)) return;
  const { ctx } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = ratio;
  ctx.setLineDash(dash.map((d) => d * ratio));
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, top + height);
  ctx.stroke();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  const onRight = x + ctx.measureText(label).width + 8 * ratio > left + width;
  ctx.textAlign = onRight ? "right" : "left";
  ctx.fillText(label, x + (onRight ? -4 : 4) * ratio, top + (11 + 13 * row) * ratio);
  ctx.restore();
}

export const translucent = (color, alpha) =>
  color.startsWith("#")
    ? color + Math.round(alpha * 255).toString(16).padStart(2, "0")
    : color.replace(/^rgba?\(([^,]+,[^,]+,[^,)]+).*$/, `rgba($1, ${alpha})`);
