// Requests over time, coloured by phase. Only what is in view is drawn, on a canvas.

import { button, el } from "./dom.js";
import { onTheme, PHASES, phaseColor, themed } from "./colors.js";
import { count, duration, share } from "./format.js";
import { roundTimes } from "./view.js";

const AXIS = 26; // pixels above the rows
const HEIGHT = 420;
const TALLEST = 20; // of a row
const US = 1e3; // nanoseconds of a microsecond
const NEAR = 4; // pixels: a request this close is meant
const ORDERS = {
  lanes: ["side by side", (a, b) => a.arrival - b.arrival],
  arrival: ["a line each, by arrival", (a, b) => a.arrival - b.arrival],
  slowest: ["a line each, slowest first", (a, b) => b.e2e - a.e2e],
  ttft: ["a line each, latest first token first", (a, b) => (b.ttft ?? 0) - (a.ttft ?? 0)],
};

export class Waterfall {
  constructor(run, view, { open, close }) {
    Object.assign(this, { run, view, open, close, chosen: null, hovered: null, rows: [], seen: [], scheduled: false });
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.live = el("p", { class: "sr", "aria-live": "polite" });
    this.box = el(
      "div",
      {
        class: "waterfall",
        tabindex: "0",
        role: "application",
        "aria-label": `Waterfall of ${count(run.requests.length)} requests. Up and down choose one, Enter opens it, left and right move in time, plus and minus zoom, 0 shows all, Escape closes.`,
      },
      this.canvas,
      this.tip,
    );
    this.host = el("div", {}, this.tools(), this.box, this.live);
    this.sort("lanes");
    this.listen();
    view.onChange(() => this.draw());
    onTheme(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  tools() {
    const order = el("select", { "aria-label": "Order of the requests", onchange: () => this.sort(order.value) },
      ...Object.entries(ORDERS).map(([value, [name]]) => el("option", { value }, name)));
    return el(
      "div",
      { class: "tools" },
      order,
      el("span", { class: "spring" }),
      button("−", () => this.view.zoom(2), { "aria-label": "Zoom out" }),
      button("+", () => this.view.zoom(0.5), { "aria-label": "Zoom in" }),
      button("All", () => this.view.reset(), { "aria-label": "Show the whole run" }),
    );
  }

  sort(order) {
    this.ordered = [...this.run.requests].sort(ORDERS[order][1]);
    this.lanes = order === "lanes" ? lanesOf(this.ordered) : null;
    this.draw();
  }

  // What is in view, a list of requests a row. Lanes stay where they are; single requests move up.
  layOut() {
    const { from, to } = this.view;
    const inView = (request) => request.end >= from && request.arrival <= to;
    this.seen = this.ordered.filter(inView);
    this.rows = this.lanes ? this.lanes.map((lane) => lane.filter(inView)) : this.seen.map((request) => [request]);
    this.rowHeight = Math.min(TALLEST, (HEIGHT - AXIS) / Math.max(1, this.rows.length));
  }

  // Many changes, one drawing.
  draw() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.paint();
    });
  }

  paint() {
    const width = this.box.clientWidth;
    if (!width) return;
    const { from, to } = this.view;
    this.layOut();
    const height = AXIS + Math.ceil(this.rowHeight * this.rows.length) + 4;
    const ratio = devicePixelRatio;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    this.canvas.style.height = `${height}px`;
    const ctx = this.canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    const x = (time) => ((time - from) / (to - from)) * width;
    this.paintAxis(ctx, x, width, height);
    this.rows.forEach((row, i) => row.forEach((request) => this.paintRequest(ctx, x, request, AXIS + i * this.rowHeight)));
    this.paintChosen(ctx, x, width);
  }

  paintAxis(ctx, x, width, height) {
    const { from, to } = this.view;
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillStyle = themed("--muted");
    ctx.strokeStyle = themed("--line");
    for (const time of roundTimes(from, to, Math.max(2, width / 110))) {
      const at = Math.round(x(time)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(at, AXIS - 6);
      ctx.lineTo(at, height);
      ctx.stroke();
      ctx.textAlign = at > width - 30 ? "right" : at < 20 ? "left" : "center";
      ctx.fillText(time === 0 ? "0" : duration(time * US), at, 13);
    }
  }

  paintRequest(ctx, x, request, top) {
    const gap = this.rowHeight > 4 ? 1 : 0;
    const height = Math.max(0.75, this.rowHeight - gap);
    ctx.globalAlpha = request.warmUp ? 0.45 : 1;
    for (const { phase, begin, end } of request.pieces) {
      if (end < this.view.from || begin > this.view.to) continue;
      const left = x(begin);
      ctx.fillStyle = phaseColor(phase);
      ctx.fillRect(left, top, Math.max(0.5, x(end) - left), height);
    }
    ctx.globalAlpha = 1;
    if (this.rowHeight >= 5) this.paintStalls(ctx, x, request, top, height);
    if (this.rowHeight >= 14 && !this.lanes) this.paintName(ctx, x(request.end), request, top + height - 4);
  }

  paintStalls(ctx, x, request, top, height) {
    ctx.fillStyle = themed("--stall");
    for (const { begin, end } of request.stalls) {
      const [left, right] = [x(begin), x(end)];
      if (right - left >= 3) ctx.fillRect(left, top + height - 3, right - left, 3);
    }
  }

  paintName(ctx, end, request, baseline) {
    const name = request.name.length > 40 ? `${request.name.slice(0, 39)}…` : request.name;
    ctx.fillStyle = themed("--muted");
    ctx.font = "11px system-ui, sans-serif";
    const inside = end + ctx.measureText(name).width + 8 > this.box.clientWidth;
    if (inside) return;
    ctx.textAlign = "left";
    ctx.fillText(name, end + 6, baseline);
  }

  paintChosen(ctx, x, width) {
    for (const [request, color] of [[this.hovered, themed("--muted")], [this.chosen, themed("--accent")]]) {
      const i = request ? this.rows.findIndex((row) => row.includes(request)) : -1;
      if (i < 0) continue;
      const left = Math.max(1, x(request.arrival) - 2);
      const right = Math.min(width - 1, x(request.end) + 2);
      ctx.strokeStyle = color;
      ctx.lineWidth = 2;
      ctx.strokeRect(left, AXIS + i * this.rowHeight - 1, Math.max(4, right - left), Math.max(4, this.rowHeight + 1));
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const { from, to } = this.view;
    const time = from + (px / box.width) * (to - from);
    const row = this.rows[Math.floor((py - AXIS) / this.rowHeight)] ?? [];
    const near = this.lanes ? (NEAR / box.width) * (to - from) : Infinity;
    const request = row.find(({ arrival, end }) => time >= arrival - near && time <= end + near) ?? null;
    return { px, py, time, request };
  }

  listen() {
    let drag = null;
    this.box.addEventListener("pointerdown", (event) => {
      if (event.button === 0) drag = { x: event.clientX, from: this.view.from, to: this.view.to, moved: false };
    });
    this.box.addEventListener("pointermove", (event) => {
      if (!drag) return this.hover(event);
      const by = event.clientX - drag.x;
      if (!drag.moved && Math.abs(by) < 4) return;
      if (!drag.moved) this.box.setPointerCapture(event.pointerId);
      drag.moved = true;
      const time = (by / this.box.clientWidth) * (drag.to - drag.from);
      this.view.set(drag.from - time, drag.to - time);
    });
    this.box.addEventListener("pointerup", (event) => {
      const { request } = this.at(event);
      if (drag && !drag.moved && request) this.choose(request, true);
      drag = null;
    });
    this.box.addEventListener("pointercancel", () => (drag = null));
    this.box.addEventListener("pointerleave", () => this.unhover());
    this.box.addEventListener("dblclick", (event) => this.view.zoom(0.5, this.at(event).time));
    this.box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  // The page scrolls as always; with Ctrl, or two fingers apart, time zooms, and sideways it moves.
  wheel(event) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    if (event.ctrlKey || event.metaKey) this.view.zoom(Math.exp(event.deltaY * 0.004), this.at(event).time);
    else if (sideways) this.view.pan(sideways / this.box.clientWidth);
    else return;
    event.preventDefault();
  }

  key(event) {
    const actions = {
      ArrowLeft: () => this.view.pan(-0.2),
      ArrowRight: () => this.view.pan(0.2),
      ArrowUp: () => this.step(-1),
      ArrowDown: () => this.step(1),
      Home: () => this.choose(this.seen[0]),
      End: () => this.choose(this.seen.at(-1)),
      Enter: () => this.chosen && this.choose(this.chosen, true),
      "+": () => this.view.zoom(0.5, this.focusTime()),
      "=": () => this.view.zoom(0.5, this.focusTime()),
      "-": () => this.view.zoom(2, this.focusTime()),
      0: () => this.view.reset(),
      Escape: () => this.close(),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  focusTime() {
    const { from, to } = this.view;
    return this.chosen ? Math.min(to, Math.max(from, (this.chosen.arrival + this.chosen.end) / 2)) : undefined;
  }

  step(by) {
    const last = this.seen.length - 1;
    const i = this.chosen ? this.seen.indexOf(this.chosen) : -1;
    this.choose(this.seen[i < 0 ? (by > 0 ? 0 : last) : Math.min(last, Math.max(0, i + by))]);
  }

  choose(request, opened = false) {
    this.chosen = request ?? null;
    if (request) {
      this.view.show(request.arrival, request.end);
      this.live.textContent = `${request.name}: ${lines(request).join(", ")}`;
      if (opened) this.open(request);
    }
    this.draw();
  }

  hover(event) {
    const { px, py, time, request } = this.at(event);
    if (this.hovered !== request) this.draw();
    this.hovered = request;
    if (!request) return this.unhover();
    const piece = request.pieces.find(({ begin, end }) => time >= begin && time < end);
    const here = piece && `${PHASES[piece.phase]} ${duration((piece.end - piece.begin) * US)}, ${share((piece.end - piece.begin) / (request.end - request.arrival))}`;
    this.tip.replaceChildren(el("b", {}, request.name), ...[here, ...lines(request)].filter(Boolean).map((text) => el("div", {}, text)));
    this.tip.hidden = false;
    const left = Math.min(px + 14, this.box.clientWidth - this.tip.offsetWidth - 4);
    this.tip.style.transform = `translate(${Math.max(4, left)}px, ${py + 18}px)`;
  }

  unhover() {
    if (this.hovered) this.draw();
    this.hovered = null;
    this.tip.hidden = true;
  }
}

// Each request in the first lane that is free when it arrives: as many lanes as were ever under way at once.
function lanesOf(byArrival) {
  const lanes = [];
  const freeFrom = [];
  for (const request of byArrival) {
    let lane = freeFrom.findIndex((time) => time <= request.arrival);
    if (lane < 0) lane = freeFrom.push(0) - 1;
    (lanes[lane] ??= []).push(request);
    freeFrom[lane] = request.end;
  }
  return lanes;
}

function lines(request) {
  const tokens = [request.prompt, request.output].every((n) => n !== null) && `${count(request.prompt)} tokens in, ${count(request.output)} out`;
  return [
    `e2e ${duration(request.e2e)}${request.ttft === null ? "" : `, TTFT ${duration(request.ttft)}`}`,
    tokens,
    request.stalls.length > 0 && `${count(request.stalls.length)} stalled`,
  ].filter(Boolean);
}
