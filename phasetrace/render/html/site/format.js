// Numbers as people read them: what render/units.py does in Python, digit for digit.

const DURATIONS = [
  [7200e9, 3600e9, "h"],
  [600e9, 60e9, "min"],
  [0.9995e9, 1e9, "s"],
  [0.9995e6, 1e6, "ms"],
  [0.9995e3, 1e3, "µs"],
];
const METRICS = { ttft: "TTFT", tpot: "TPOT", itl: "ITL", e2e: "e2e", throughput: "throughput" };
export const UNKNOWN = "?";

export function duration(ns) {
  if (!known(ns)) return UNKNOWN;
  const [size, unit] = unitOf(ns);
  return `${threeDigits(ns / size)} ${unit}`;
}

// For an axis: a nought without a unit.
export const fromZero = (s) => (s === 0 ? "0" : duration(s * 1e9));

export const seconds = (s) => duration(known(s) ? s * 1e9 : null);

export function share(ratio) {
  if (!known(ratio)) return UNKNOWN;
  const percent = 100 * ratio;
  if (Math.abs(percent) >= 9.95) return `${grouped(halfEven(percent, 0), 0)} %`;
  if (Math.abs(percent) >= 0.095) return `${halfEven(percent, 1).toFixed(1)} %`;
  if (percent > 0 && percent < 0.001) return "<0.001 %";
  return `${Number(percent.toPrecision(1))} %`;
}

export const count = (n) => (known(n) ? grouped(n, 0) : UNKNOWN);

export const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

export const rate = (tokens) => (known(tokens) ? `${threeDigits(tokens)} tok/s` : UNKNOWN);

export const metricName = (metric) => METRICS[metric.split("_")[0]] ?? metric;

export function ratio(value) {
  if (!known(value)) return UNKNOWN;
  return `${halfEven(value, value < 2 ? 2 : value < 20 ? 1 : 0).toFixed(value < 2 ? 2 : value < 20 ? 1 : 0)}×`;
}

// A metric of the report: seconds, or tokens a second.
export const amount = (metric, value) => (metric.endsWith("tok_s") ? rate(value) : seconds(value));

export function threeDigits(value) {
  if (!known(value)) return UNKNOWN;
  if (value === 0) return "0";
  const rounded = halfEven(value, 2 - Math.floor(Math.log10(Math.abs(value))));
  if (rounded === 0) return "0";
  const places = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded)))));
  return grouped(rounded, places);
}

export function siPrefixed(value, unit) {
  const steps = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, prefix] = steps.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  return `${threeDigits(value / size)} ${prefix}${unit}`;
}

const known = (value) => typeof value === "number" && Number.isFinite(value);

function unitOf(ns) {
  for (const [least, size, unit] of DURATIONS) if (Math.abs(ns) >= least) return [size, unit];
  return [1, "ns"];
}

function grouped(value, places) {
  return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
}

// To so many places; what lies in the middle goes to the even digit, as in Python.
function halfEven(value, places) {
  const [digits, exponent] = Math.abs(value).toExponential(20).split("e");
  const at = Number(exponent) + places; // index of the last digit kept
  const all = digits.replace(".", "");
  if (at < -1 || at >= all.length - 1) return at < -1 ? 0 : value;
  const kept = BigInt("0" + all.slice(0, at + 1));
  const rest = all.slice(at + 1);
  const middle = "5".padEnd(rest.length, "0");
  const up = rest > middle || (rest === middle && kept % 2n === 1n) ? 1n : 0n;
  return (Math.sign(value) * Number(`${kept + up}e${-places}`));
}
