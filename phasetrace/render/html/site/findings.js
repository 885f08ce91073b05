// Below the pictures: the further findings, who owns the percentiles, who slowed whom, what the data lacks.

import { data, report } from "./data.js";
import { button, command, el, prose, section, table } from "./dom.js";
import { count, duration, metricName, ratio, seconds, share, threeDigits } from "./format.js";
import { beforeAfter, facts, phaseBar } from "./verdict.js";

export function furtherFindings() {
  const further = data.leading ? report.findings.slice(1) : report.findings;
  if (!further.length) return null;
  return section(data.leading ? "What else was found" : "What was found", null, ...further.map((finding) =>
    el(
      "details",
      { class: "finding" },
      el(
        "summary",
        {},
        el("b", {}, finding.cause),
        el("span", { class: "muted" }, `${finding.phase} ${share(finding.share)}`),
        finding.prediction && el("span", { class: "gain-word" }, `${metricName(finding.prediction.metric)} ${ratio(finding.prediction.ratio)}`),
      ),
      el("p", {}, ...prose(finding.recommendation)),
      ...finding.commands.map(command),
      finding.prediction && beforeAfter(finding.prediction),
      facts(finding),
    )));
}

export function owners() {
  if (!data.owners.length) return null;
  const groups = [...new Set(data.owners.map((owner) => owner.group))];
  const rows = (group) => data.owners.filter((owner) => owner.group === group).map((owner) => [
    `near ${metricName(owner.metric)} p${owner.percentile}`,
    seconds(owner.seconds),
    phaseBar(owner.phases, "Phases"),
  ]);
  const shown = (group) => el("div", { class: "group" }, group && el("h3", {}, group), table(["", "", ""], rows(group), { class: "owners", label: group ?? "All requests" }));
  const [all, ...apart] = groups.map(shown);
  return section("Who owns the percentiles", "The mean of the requests near each percentile, by phase: what a typical one waits for is seldom what a slow one does.",
    all, apart.length > 0 && el("details", { class: "more" }, el("summary", {}, "The same by kind of request"), ...apart));
}

export function stalls() {
  if (!data.stall_patterns.length) return null;
  const rows = data.stall_patterns.map((p) => [
    p.cause,
    count(p.count),
    seconds(p.typical_s),
    seconds(p.lost_s),
    p.period_s === null ? "" : `every ${seconds(p.period_s)}`,
  ]);
  return section("Stalls by cause", "Steps whose tokens came much later than usual, by what caused it.",
    table(["because of", "stalls", "typical", "lost in all", ""], rows, { class: "figures", label: "Stalls by cause" }));
}

export function interference(run, open) {
  const dearest = (run?.interference.cost ?? []).slice(0, 8);
  if (!dearest.length) return null;
  const most = dearest[0][1] || 1;
  const rows = dearest.map(([place, ns]) => {
    const request = run.requests[place];
    return [
      button(request.name, () => open(request), { class: "link" }),
      duration(ns),
      el("div", { class: "track" }, el("div", { class: "fill", style: { width: `${((100 * ns) / most).toFixed(1)}%` } })),
      request.prompt === null ? "" : `${count(request.prompt)} prompt tokens`,
    ];
  });
  return section("Who slowed the others", "Decode time that reading a request's prompt cost all others.", table(["request", "cost", "", "for"], rows, { class: "costs", label: "Interference" }));
}

const TERMS = {
  fixed: "each step",
  per_sequence: "each sequence in it",
  per_context: "each 1,000 tokens of context in it",
  per_prefill: "each prompt token that it reads",
  per_attention: "each 1,000,000 pairs of prompt token and context",
};
const SCALE = { per_context: 1e3, per_attention: 1e6 };

export function stepCosts() {
  const models = data.step_costs.filter((model) => model.terms.some((term) => term.seconds > 0));
  if (!models.length) return null;
  return section("Step cost", "Fitted on the steps of this run.", ...models.map((model) => {
    const rows = model.terms.filter((term) => term.seconds > 0).map(({ term, seconds: s, low, high }) => {
      const scale = SCALE[term] ?? 1;
      return [TERMS[term] ?? term, seconds(s * scale), `${seconds(low * scale)} to ${seconds(high * scale)}`];
    });
    const said = `${model.process}: ${model.steps.toLocaleString("en-US")} steps, ${threeDigits(100 * model.explained)} % of the variance explained`;
    return el("div", { class: "group" }, el("p", { class: "muted" }, said), table(["", "takes", "between"], rows, { class: "figures", label: said }));
  }));
}

export function theData() {
  const { seen, ceilings, unsplit, undecided } = data.caveats;
  const defects = report.data.map(({ defect }) => defect);
  const said = [
    ...seen.map((text) => ["coverage", text]),
    ...(ceilings ? [["ceilings", ceilings]] : []),
    ...defects.map((text) => ["defect", text]),
    ...unsplit.map((text) => ["not split", text]),
    ...undecided.map(({ cause, measure }) => [`cannot tell ${cause}`, `missing: ${measure}`]),
  ].filter(([, text]) => text);
  return section("What this rests on", null, el("dl", { class: "facts data" }, ...said.flatMap(([name, text]) => [el("dt", { class: name === "defect" ? "over" : "" }, name), el("dd", {}, ...prose(text))])));
}
