// The waterfall on its canvas.

import { phaseColor, themed } from "./colors.js";
import { duration } from "./format.js";
import { roundTimes } from "./view.js";

const US = 1e3; // nanoseconds of a microsecond
const FONT = "11px system-ui, sans-serif";

// Draws rows in a stretch of time, `width` pixels wide; `marked` are requests with a frame and its colour.
export function paint(canvas, rows, view, width, marked) {
  const ratio = devicePixelRatio;
  Object.assign(canvas, { width: width * ratio, height: rows.total * ratio });
  canvas.style.height = `${rows.total}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.font = FONT;
  const x = (time) => ((time - view.from) / (view.to - view.from)) * width;
  axis(ctx, x, view, width, rows.total);
  rows.rows.forEach((row, i) => row.forEach((request) => bar(ctx, x, view, request, rows.top(i), rows.height)));
  if (rows.height >= 14 && !rows.lanes) rows.rows.forEach(([request], i) => name(ctx, x(request.end) + 6, width, request, rows.top(i + 1) - 5));
  for (const [request, color] of marked) frame(ctx, x, width, request, color, rows);
}

function axis(ctx, x, { from, to }, width, height) {
  ctx.fillStyle = themed("--muted");
  ctx.strokeStyle = themed("--line");
  for (const time of roundTimes(from, to, Math.max(2, width / 110))) {
    const at = Math.round(x(time)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(at, 20);
    ctx.lineTo(at, height);
    ctx.stroke();
    ctx.textAlign = at > width - 30 ? "right" : at < 20 ? "left" : "center";
    ctx.fillText(time === 0 ? "0" : duration(time * US), at, 13);
  }
}

function bar(ctx, x, { from, to }, request, top, rowHeight) {
  const height = Math.max(0.75, rowHeight - (rowHeight > 4 ? 1 : 0));
  ctx.globalAlpha = request.apart ? 0.45 : 1;
  for (const { phase, begin, end } of request.pieces) {
    if (end < from || begin > to) continue;
    const left = x(begin);
    ctx.fillStyle = phaseColor(phase);
    ctx.fillRect(left, top, Math.max(0.5, x(end) - left), height);
  }
  ctx.globalAlpha = 1;
  if (rowHeight >= 5) stalls(ctx, x, request, top + height - 3);
}

function stalls(ctx, x, request, top) {
  ctx.fillStyle = themed("--stall");
  for (const { begin, end } of request.stalls) {
    const width = x(end) - x(begin);
    if (width >= 3) ctx.fillRect(x(begin), top, width, 3);
  }
}

function name(ctx, left, width, request, baseline) {
  const said = request.name.length > 40 ? `${request.name.slice(0, 39)}…` : request.name;
  if (left + ctx.measureText(said).width > width) return;
  ctx.fillStyle = themed("--muted");
  ctx.textAlign = "left";
  ctx.fillText(said, left, baseline);
}

function frame(ctx, x, width, request, color, rows) {
  const i = rows.of(request);
  if (i < 0) return;
  const left = Math.max(1, x(request.arrival) - 2);
  const right = Math.min(width - 1, x(request.end) + 2);
  ctx.strokeStyle = color;
  ctx.lineWidth = 2;
  ctx.strokeRect(left, rows.top(i) - 1, Math.max(4, right - left), Math.max(4, rows.height + 1));
}
