// Requests over time, coloured by phase. Only what is in view is drawn, on a canvas.

import { button, el } from "./dom.js";
import { onTheme, PHASES, themed } from "./colors.js";
import { count, duration, share } from "./format.js";
import { paint } from "./paint.js";
import { ORDERS, Rows } from "./rows.js";

const US = 1e3; // nanoseconds of a microsecond
export class Waterfall {
  constructor(run, view, { open, close }) {
    Object.assign(this, { run, view, open, close, chosen: null, hovered: null, scheduled: false });
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
    onTheme(() => this.paint());
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
      button("All", () => this.view.reset(), { "aria-label": "All: show the whole run" }),
    );
  }

  sort(order) {
    this.rows = new Rows(this.run.requests, order);
    this.draw();
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
    this.rows.layOut(this.view);
    paint(this.canvas, this.rows, this.view, width, [[this.hovered, themed("--muted")], [this.chosen, themed("--accent")]]);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const { from, to } = this.view;
    const time = from + (px / box.width) * (to - from);
    const request = this.rows.at(py, time, (to - from) / box.width);
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
      Home: () => this.choose(this.rows.seen[0]),
      End: () => this.choose(this.rows.seen.at(-1)),
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
    const last = this.rows.seen.length - 1;
    const i = this.chosen ? this.rows.seen.indexOf(this.chosen) : -1;
    this.choose(this.rows.seen[i < 0 ? (by > 0 ? 0 : last) : Math.min(last, Math.max(0, i + by))]);
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

function lines(request) {
  const tokens = [request.prompt, request.output].every((n) => n !== null) && `${count(request.prompt)} tokens in, ${count(request.output)} out`;
  return [
    `e2e ${duration(request.e2e)}${request.ttft === null ? "" : `, TTFT ${duration(request.ttft)}`}`,
    tokens,
    request.apart && (request.warmUp ? "warm-up" : request.ended),
    request.stalls.length > 0 && `${count(request.stalls.length)} stalled`,
  ].filter(Boolean);
}
