// What the page knows. Times of the run are microseconds since its first request arrived; -1 is unknown.

import { unpackAll } from "./columns.js";

export const data = JSON.parse(document.getElementById("data").textContent);
export const report = data.report;

const REQUESTS = [
  "arrival", "pieces", "piece_phase", "piece_end", "e2e_ns", "ttft_ns", "tpot_ns",
  "prompt", "cached", "output", "warm_up", "apart", "several", "first_row", "end_row",
];
const STEPS = ["end", "idle", "running", "waiting", "kv_blocks", "prefill"];

export async function loadRun() {
  if (!data.run) return null;
  const { requests: packed, steps: packedSteps, stalls } = data.run;
  const [columns, steps] = await Promise.all([
    unpackAll(packed, REQUESTS),
    packedSteps ? unpackAll(packedSteps, STEPS) : null,
  ]);
  if (steps) steps.begin = steps.idle.map((idle, i) => (i ? steps.end[i - 1] : 0) + idle);
  const requests = packed.ids.map((id, i) => requestAt(i, id, packed, columns));
  let at = 0;
  for (const [i, request] of requests.entries()) {
    let begin = request.arrival;
    for (let n = columns.pieces[i]; n > 0; n--, at++) {
      const end = columns.piece_end[at];
      request.pieces.push({ phase: columns.piece_phase[at], begin, end });
      begin = end;
    }
    request.end = begin;
  }
  for (const stall of stalls) requests[stall.request].stalls.push(stall);
  const length = requests.reduce((latest, request) => Math.max(latest, request.end), 1);
  return { requests, steps, length, interference: data.run.interference, leftOut: data.run.left_out };
}

function requestAt(i, id, packed, columns) {
  const known = (name) => (columns[name][i] < 0 ? null : columns[name][i]);
  return {
    place: i,
    id,
    name: packed.names[i] || id,
    arrival: columns.arrival[i],
    e2e: columns.e2e_ns[i],
    ttft: known("ttft_ns"),
    tpot: known("tpot_ns"),
    prompt: known("prompt"),
    cached: known("cached"),
    output: known("output"),
    warmUp: columns.warm_up[i] === 1,
    apart: columns.apart[i] === 1, // of no statistics: warm-up, failed, cut off
    several: columns.several[i] === 1, // a step may have given several tokens, or none
    rows: [columns.first_row[i], columns.end_row[i]],
    ended: packed.ended[i],
    chunks: packed.chunks[i],
    pieces: [],
    stalls: [],
  };
}
