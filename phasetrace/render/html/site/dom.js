// Elements. Text is always text: nothing here takes markup.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) node.style.setProperty(key, to);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...present(children.flat()));
  return node;
}

export const present = (children) => children.filter((child) => child !== null && child !== undefined && child !== false);

// A sentence, with what stands between backticks as code.
export const prose = (text) => text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));

export function section(title, hint, ...children) {
  const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
  const heading = el("h2", { id }, title);
  return el("section", { "aria-labelledby": id }, heading, hint && el("p", { class: "hint" }, hint), ...children);
}

// Where a table is too wide it scrolls; browsers let the keyboard scroll what does.
export function table(head, rows, { label, ...props } = {}) {
  const cells = (tag, row) => row.map((cell, i) => el(cell === "" ? "td" : tag, { class: i ? "" : "name", scope: tag === "th" && cell ? "col" : null }, cell));
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      { "aria-label": label ?? head.filter(Boolean).join(", "), ...props },
      el("thead", {}, el("tr", {}, ...cells("th", head))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...cells("td", row)))),
    ),
  );
}

export function button(label, action, props = {}) {
  return el("button", { type: "button", onclick: action, ...props }, label);
}

export function command(text) {
  const code = el("code", {}, text);
  const copy = button("Copy", () => {
    copied(text, code).then(
      () => (copy.textContent = "Copied"),
      () => (copy.textContent = "Press Ctrl+C"),
    );
    setTimeout(() => (copy.textContent = "Copy"), 1600);
  }, { class: "copy" });
  return el("div", { class: "command" }, el("pre", {}, code), copy);
}

// Where the clipboard is out of reach, the text is selected and the user's own key copies it.
async function copied(text, code) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(code);
    if (!document.execCommand("copy")) throw new Error("no clipboard");
  }
}
