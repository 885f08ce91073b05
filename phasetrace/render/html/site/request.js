// One request, down to each token: its phases, the time to each token, its stalls and who caused them.

import { button, el, present, table } from "./dom.js";
import { PHASES, phaseColor, themed } from "./colors.js";
import { chart } from "./charts.js";
import { count, counted, duration, fromZero, share } from "./format.js";
import { phaseBar } from "./verdict.js";
import { tokenAt, tokensOf } from "./tokens.js";

const US = 1e3; // nanoseconds of a microsecond
const MOST_SHOWN = 12; // stalls

export class RequestPanel {
  // `open` and `close` are told when a request is chosen here, and when none is any more.
  constructor(run, { open, close }) {
    this.run = run;
    this.open = open;
    this.host = el("div", { class: "request", hidden: true, tabindex: "-1", role: "region", "aria-label": "One request" });
    this.host.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
    });
    this.close = close;
  }

  hide() {
    this.host.hidden = true;
    this.host.replaceChildren();
  }

  show(request) {
    const tokens = tokensOf(request, this.run.steps);
    this.host.hidden = false;
    const plot = el("div", { class: "plot", "aria-label": `Time to each token of ${request.name}` });
    this.host.replaceChildren(...present([
      el(
        "div",
        { class: "request-head" },
        el("h3", {}, request.name, request.apart && el("span", { class: "chip quiet" }, request.warmUp ? "warm-up" : request.ended)),
        button("Close", this.close, { class: "quiet", "aria-label": "Close this request" }),
      ),
      el("p", { class: "about" }, ...said(request).map((text) => el("span", {}, text))),
      phaseBar(phasesOf(request), "Phases of this request"),
      tokens ? plot : el("p", { class: "hint" }, "When its tokens came was not recorded, or is left out of this file."),
      tokens && el("p", { class: "hint" }, `Each mark is ${request.several ? "a step, which may have given several tokens" : "a token"}: how long after the one before it came. Typical ${duration(tokens.typical * US)}.`),
      this.stalls(request, tokens),
      this.chunks(request),
      this.paid(request),
    ]));
    if (tokens) drawTokens(plot, request, tokens);
  }

  stalls(request, tokens) {
    if (!request.stalls.length) return null;
    const rows = [...request.stalls].sort((a, b) => b.end - b.begin - (a.end - a.begin)).slice(0, MOST_SHOWN).map((stall) => [
      `+${duration((stall.begin - request.arrival) * US)}`,
      tokens ? count(tokenAt(tokens, stall.end)) : "",
      duration((stall.end - stall.begin) * US),
      `${((stall.end - stall.begin) * US / stall.usual_ns).toFixed(1)}×`,
      stall.cause,
      el("span", { class: "links" }, ...stall.by.map((place) => this.link(place))),
    ]);
    const more = request.stalls.length - rows.length;
    return el(
      "div",
      { class: "stalls" },
      el("h4", {}, `${counted(request.stalls.length, "stall")}${more > 0 ? `, the ${rows.length} longest` : ""}`),
      table(["after arrival", request.several ? "step" : "token", "waited", "of the usual", "because of", "by"], rows, { label: "Stalls" }),
    );
  }

  chunks({ chunks }) {
    const { steps } = this.run;
    if (!steps || chunks.length < 2) return null;
    const rows = chunks.slice(0, MOST_SHOWN).map(([row, tokens], i) => [`chunk ${i + 1}`, count(tokens), duration((steps.end[row] - steps.begin[row]) * US)]);
    return el("div", { class: "stalls" }, el("h4", {}, `Prompt read in ${counted(chunks.length, "chunk")}`), table(["", "tokens", "step"], rows, { label: "Chunks" }));
  }

  paid({ place }) {
    const rows = this.run.interference.pairs
      .filter(([who]) => who === place)
      .slice(0, 6)
      .map(([, by, ns]) => [this.link(by), duration(ns)]);
    return rows.length ? el("div", { class: "stalls" }, el("h4", {}, "Whose prompts it waited for"), table(["request", "decode time it cost"], rows, { label: "Prompts that it waited for" })) : null;
  }

  link(place) {
    const other = this.run.requests[place];
    return button(other.name, () => this.open(other), { class: "link" });
  }
}

function said(request) {
  return [
    `e2e ${duration(request.e2e)}`,
    request.ttft !== null && `TTFT ${duration(request.ttft)}`,
    request.tpot !== null && `TPOT ${duration(request.tpot)}`,
    request.prompt !== null && `${count(request.prompt)} prompt tokens`,
    request.cached ? `${count(request.cached)} of them cached` : null,
    request.output !== null && `${count(request.output)} output tokens`,
    request.ended && (!request.apart || request.warmUp) && `ended by ${request.ended}`,
    request.name !== request.id && `phasetrace id ${request.id}`,
  ].filter(Boolean);
}

export function phasesOf(request) {
  const spent = new Map();
  for (const { phase, begin, end } of request.pieces) spent.set(phase, (spent.get(phase) ?? 0) + end - begin);
  const total = request.end - request.arrival || 1;
  return [...spent].map(([phase, us]) => ({ phase: PHASES[phase], seconds: us / 1e6, share: us / total }));
}

function drawTokens(host, request, { times, gaps }) {
  const x = Array.from(times.subarray(1), (time) => (time - request.arrival) / 1e6);
  const late = new Map(request.stalls.map((stall) => [stall.end, stall]));
  const usual = Array.from(gaps, (gap, i) => (late.has(times[i + 1]) ? null : gap / 1e6));
  const stalled = Array.from(gaps, (gap, i) => (late.has(times[i + 1]) ? gap / 1e6 : null));
  const points = (size, color) => ({ show: true, size, fill: color, stroke: color, width: 0 });
  const plot = chart(
    host,
    {
      height: 190,
      axes: [{ format: fromZero }, { format: fromZero, size: 62 }],
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, (high || 1) * 1.08] } },
      series: [
        {},
        { label: "token", paths: () => null, points: points(5, phaseColor("decode")) },
        { label: "stall", paths: () => null, points: points(9, () => themed("--stall")) },
      ],
      hooks: { setCursor: [(plot) => tell(plot, request, { times, gaps }, late, note)] },
    },
    [x, usual, stalled],
  );
  const note = el("output", { class: "plot-note" });
  if (plot) host.append(note);
}

function tell(plot, request, { times, gaps }, late, note) {
  const i = plot.cursor.idx;
  if (i === null || i === undefined || !note) return;
  const stall = late.get(times[i + 1]);
  const when = duration((times[i + 1] - request.arrival) * US);
  note.textContent = `${request.several ? "step" : "token"} ${count(i + 2)} at +${when}: ${duration(gaps[i] * US)}${stall ? `, stalled by ${stall.cause}` : ""}`;
}
