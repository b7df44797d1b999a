"use strict";
// Small things that the page is put together from: elements, sliders, colours of the theme.

const Parts = (() => {
  const STEPS = 1000;
  const $ = (id) => document.getElementById(id);

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name in node && typeof value !== "string") node[name] = value;
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  const select = (label, id, choices, value, set) => make("label", {}, label, make("select", { id, onchange: (event) => set(event.target.value) }, ...choices.map(([key, text]) => make("option", { value: String(key), selected: String(key) === String(value) }, text))));
  const tick = (label, id, on, set) => make("label", {}, make("input", { type: "checkbox", id, checked: Boolean(on), onchange: (event) => set(event.target.checked) }), label);
  const button = (label, id, click, more = {}) => make("button", { type: "button", id, onclick: click, ...more }, label);

  let seen = null;
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", () => { seen = null; });

  // pictures that are taken away are for paper
  const PAPER = { text: "#3c434f", line: "#e9ebef", accent: "#0b6bb0", second: "#c2571a", card: "#ffffff", quiet: "#5b6371", back: [1, 1, 1], front: [0.24, 0.26, 0.31] };
  let printing = false;

  function onPaper(work) {
    printing = true;
    try { return work(); } finally { printing = false; }
  }

  function theme() {
    // colours of the page, once for each scheme
    if (printing) return PAPER;
    if (seen) return seen;
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
    seen = { text: colour("--ink"), line: colour("--grid"), accent: colour("--accent"), second: colour("--second"), card: colour("--card"), quiet: colour("--quiet"), back: parts(colour("--card")), front: parts(colour("--ink")) };
    return seen;
  }

  function slider({ id, label, low, high, log, get, set, note = "", kind = "" }) {
    // a bar and a number; a number outside of the range is refused, and said so
    const to = (x) => (log ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low)) * STEPS;
    const from = (t) => (t <= 0 ? low : t >= STEPS ? high : log ? low * (high / low) ** (t / STEPS) : low + ((high - low) * t) / STEPS);
    const bar = make("input", { type: "range", id, min: "0", max: String(STEPS), step: "1", oninput: () => { set(from(Number(bar.value))); refuse(""); } });
    const refused = make("p", { class: "refused", id: `${id}-refused`, role: "alert", hidden: true });
    const refuse = (text) => { refused.textContent = text; refused.hidden = !text; if (text) exact.setAttribute("aria-invalid", "true"); else exact.removeAttribute("aria-invalid"); };
    const exact = make("input", { type: "number", step: "any", "aria-label": `${label}, exact value`, "aria-describedby": `${id}-refused`, onchange: () => {
      const x = exact.valueAsNumber, shown = Words.number(get(), 5);
      if (Number.isNaN(x)) { refuse(`That is no number; shown is ${label} = ${shown}.`); return; }
      if (x < low || x > high) { refuse(`${Words.number(x, 6)} is outside ${Words.number(low)} … ${Words.number(high)}; shown is still ${label} = ${shown}.`); return; }
      refuse("");
      set(x);
      update();
    } });
    const update = () => {
      const x = get();
      if (document.activeElement !== bar || Math.abs(from(Number(bar.value)) - x) > 1e-12 * (high - low)) bar.value = String(Math.round(to(x)));
      bar.setAttribute("aria-valuetext", Words.number(x));
      if (refused.hidden) exact.value = Words.short(x, kind === "mode" ? 8 : 11);
    };
    bar.addEventListener("input", update);
    const name = make("label", { for: id, title: label }, label);
    if (note) name.append(make("span", { class: "range" }, note));
    return { row: make("div", { class: `row ${kind}` }, name, bar, exact, refused), update };
  }

  return { $, make, select, tick, button, theme, onPaper, scheme, slider };
})();
