// The phases' colours, which are the same everywhere, and those of the theme, as a canvas needs them.

import { data } from "./data.js";

export const PHASES = data.phases.map(({ phase }) => phase);
const HEX = data.phases.map(({ color }) => color);

export const phaseColor = (phase) => HEX[typeof phase === "number" ? phase : PHASES.indexOf(phase)] ?? "#999999";

// Black or white, whichever stands out more, by the luminance of WCAG 2.
export function onPhase(phase) {
  const [r, g, b] = [1, 3, 5].map((at) => linear(parseInt(phaseColor(phase).slice(at, at + 2), 16) / 255));
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? "#fff" : "#000";
}

const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);

let resolved = new Map(); // what a painting asks for a thousand times

// A colour of style.css by its name: `themed("--ink")`.
export function themed(name) {
  if (resolved.has(name)) return resolved.get(name);
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  resolved.set(name, color);
  return color;
}

const redraws = new Set();

// Called with each change of the theme, printing included; who is called draws at once.
export const onTheme = (redraw) => redraws.add(redraw);

function retheme() {
  resolved = new Map();
  redraws.forEach((redraw) => redraw());
}

// "light", "dark", or nothing for what the system says.
export function theme(to) {
  if (to) document.documentElement.dataset.theme = to;
  else delete document.documentElement.dataset.theme;
  retheme();
}

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", retheme);
