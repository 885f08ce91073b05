// The top of the page: the answer, what 100 % of the time was, and the fix with what it will bring.

import { data, report } from "./data.js";
import { command, el, prose, section, table } from "./dom.js";
import { onPhase, phaseColor } from "./colors.js";
import { amount, count, counted, metricName, rate, ratio, seconds, share } from "./format.js";

export function verdict() {
  const { engine, requests, goal, slo } = report;
  const { model, device } = data.about;
  const about = [
    counted(requests.diagnosed, "request"),
    [engine.name, engine.version].filter(Boolean).join(" "),
    model && (device ? `${model} on ${device}` : model),
    `goal ${metricName(goal)}`,
    slo && `SLO ${Object.entries(slo).map(([metric, s]) => `${metricName(metric)} ${seconds(s)}`).join(", ")}`,
    requests.warm_up && `${count(requests.warm_up)} warm-up apart`,
    recorded(data.run),
    requests.failed && `${count(requests.failed)} failed apart`,
  ];
  return el(
    "header",
    { class: "verdict" },
    el("p", { class: "cause" }, el("span", { class: "chip", id: "cause" }, report.cause)),
    el("h1", { id: "verdict" }, report.verdict),
    el("p", { class: "about" }, ...about.filter(Boolean).map((said) => el("span", {}, said))),
  );
}

// When the first request arrived, where the trace counts time as clocks do.
function recorded(run) {
  const ms = run ? run.start_ns / 1e6 : 0;
  return ms > Date.UTC(2000) && ms < Date.UTC(2200) && `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

export function whereTheTimeWent() {
  const shown = report.phases.filter((phase) => phase.seconds > 0);
  if (!shown.length) return null;
  const legend = shown.map((phase) => [
    el("span", { class: "key" }, swatch(phase.phase), phase.phase),
    seconds(phase.seconds),
    share(phase.share),
    el("span", { class: "parts" }, ...parts(phase)),
  ]);
  return section(
    "Where the time went",
    `100 % is the wall clock of ${counted(report.requests.diagnosed, "request")}, added up.`,
    phaseBar(shown, "The share of each phase"),
    table(["phase", "time", "share", "parts, in percent of the whole"], legend, { class: "legend", label: "Phases" }),
  );
}

// A bar of 100 %. A phase is named inside where there is room; style.css says where.
export function phaseBar(phases, label) {
  const said = phases.map((p) => `${p.phase} ${share(p.share)}`).join(", ");
  return el(
    "div",
    { class: "phase-bar", role: "img", "aria-label": `${label}: ${said}` },
    ...phases.filter((p) => p.share > 0).map((p) =>
      el(
        "div",
        {
          style: { "flex-grow": String(p.share), background: phaseColor(p.phase), color: onPhase(p.phase) },
          title: `${p.phase} ${seconds(p.seconds)}, ${share(p.share)}`,
          "data-phase": p.phase,
        },
        el("span", {}, p.phase),
        el("span", { class: "figure" }, share(p.share)),
      ),
    ),
  );
}

export const swatch = (phase) => el("i", { class: "swatch", style: { background: phaseColor(phase) } });

export function theFix() {
  if (!data.leading) return null;
  const [finding] = report.findings;
  return section(
    finding.prediction || finding.commands.length ? "What to change" : "What to do",
    null,
    el("p", { class: "recommendation" }, ...prose(finding.recommendation)),
    ...finding.commands.map(command),
    finding.prediction && beforeAfter(finding.prediction),
    facts({ ...finding, evidence: finding.evidence.filter((said) => !saidAlready(said)) }),
  );
}

const saidAlready = (evidence) => report.verdict.toLowerCase().includes(evidence.toLowerCase().replace(/\.$/, ""));

export function facts(finding) {
  const where = finding.seconds > 0 ? `${finding.phase} ${seconds(finding.seconds)}, ${share(finding.share)} of the time` : null;
  const reasons = [where, ...finding.evidence].filter(Boolean);
  return el(
    "dl",
    { class: "facts" },
    ...pair("Cost", finding.tradeoff && prose(finding.tradeoff)),
    ...pair("Why", reasons.length > 0 && el("ul", {}, ...reasons.map((said) => el("li", {}, ...prose(said))))),
    ...pair("Confidence", finding.confidence),
  );
}

// Two bars on one scale; where the prediction is uncertain, the second ends in a band.
export function beforeAfter({ metric, before, after, low, high, ratio: times }) {
  const most = Math.max(before, high, after) || 1;
  const percent = (value) => `${Math.max(0, (100 * value) / most).toFixed(2)}%`;
  const bar = (name, value, extra) =>
    el(
      "div",
      { class: `bar ${name}` },
      el("span", { class: "label" }, name),
      el("div", { class: "track" }, el("div", { class: "fill", style: { width: percent(value) } }), extra),
      el("span", { class: "figure" }, amount(metric, value)),
    );
  const band = el("div", { class: "band", style: { left: percent(Math.min(low, high)), width: percent(Math.abs(high - low)) } });
  return el(
    "figure",
    { class: "gain" },
    el("div", { class: "times" }, el("strong", {}, ratio(times)), el("span", {}, `${metricName(metric)}, predicted`)),
    el("div", { class: "bars" }, bar("before", before), bar("after", after, band),
      el("p", { class: "hint" }, `between ${amount(metric, low)} and ${amount(metric, high)}`)),
  );
}

export function metrics() {
  const limits = report.slo ?? {};
  const rows = ["ttft", "tpot", "itl", "e2e"]
    .map((name) => [name, report.metrics[`${name}_s`]])
    .filter(([, values]) => values.p50 !== null)
    .map(([name, values]) => {
      const limit = limits[`${name}_s`];
      const cell = (value) =>
        el("span", { class: limit != null && value > limit ? "over" : "" }, seconds(value));
      return [metricName(name), cell(values.p50), cell(values.p95), cell(values.p99), ...(report.slo ? [limit == null ? "" : seconds(limit)] : [])];
    });
  const throughput = report.metrics.throughput_tok_s;
  if (!rows.length && throughput === null) return null;
  return section(
    "Latency and throughput",
    throughput === null ? null : el("span", {}, "Throughput ", el("b", { id: "throughput" }, rate(throughput))),
    rows.length ? table(["", "p50", "p95", "p99", ...(report.slo ? ["SLO"] : [])], rows, { class: "figures", label: "Percentiles" }) : null,
  );
}

const pair = (name, said) => (said ? [el("dt", {}, name), el("dd", {}, ...[said].flat())] : []);

function parts(phase) {
  return phase.parts
    .filter((part) => part.seconds > 0 && (part.share >= 0.001 || part.part === "other"))
    .sort((a, b) => b.seconds - a.seconds)
    .map((part) => el("span", { title: seconds(part.seconds) }, `${part.part} `, el("b", {}, share(part.share))));
}
