"use strict";
// The page itself: controls, one repaint for every move of a slider, and what can be taken away.

(() => {
  const STEPS = 1000, MOST_DEVIATIONS = 4;
  const { model: tree, arrays } = JSON.parse(document.getElementById("model").textContent);
  const model = Numbers.decode(arrays)(tree), maths = Numbers.makeModel(model), words = Words.number;
  const $ = (id) => document.getElementById(id);
  const coordinates = model.about.coordinates.slice(0, model.mesh.dimension);
  const view = View.makeView($("field"), $("overlay"), model.mesh, coordinates, theme);
  const state = { inputs: [], time: 0, which: 0, locked: null, lines: false, map: "auto", axis: view.dimension === 3 ? 0 : -1, height: 0.5, probe: null };
  let answer = null, range = [0, 1], waiting = false, speaking = 0;
  const timings = [];

  // ---- small helpers ------------------------------------------------------------------------------------------------
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

  function theme() {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    return { text: colour("--ink"), accent: colour("--accent"), card: colour("--card") };
  }

  function placeText(x, k) {
    const [lower, upper] = view.bounds, step = 10 ** Math.floor(Math.log10(upper[k] - lower[k]) - 3);
    return words(Math.round(x / step) * step, 4);
  }

  const mapName = () => (state.map === "auto" ? (model.diverging[state.which] ? "diverging" : "sequential") : state.map);

  // ---- one repaint --------------------------------------------------------------------------------------------------
  function changed() {
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(() => { waiting = false; repaint(); });
    }
  }

  function repaint() {
    const start = performance.now();
    const resized = view.resize();
    answer = maths.answer(state.inputs, { which: state.which, time: state.time });
    const found = statistics(answer.values);
    range = state.locked || niceRange(found.low, found.high);
    show(resized || view.dimension === 1);
    tell(found);
    timings.push(performance.now() - start);
  }

  function show(over = true) {
    // axes and marks stay as they are while only the field moves
    view.setField(answer.values, range, { map: mapName(), lines: state.lines ? Geometry.ticks(...range, 12).step : 0 });
    view.draw();
    if (over) view.drawOver(state.probe && state.probe.at);
    drawBar($("bar"));
  }

  function statistics(values) {
    let low = Infinity, high = -Infinity, sum = 0;
    for (const x of values) {
      if (x < low) low = x;
      if (x > high) high = x;
      sum += x;
    }
    return { low, high, mean: sum / values.length };
  }

  function niceRange(low, high) {
    if (mapName() === "diverging") { const most = Math.max(-low, high, 1e-300); return [-most, most]; }
    if (high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high))) return [low, high];
    const pad = 0.5 * Math.abs(high) || 0.5; // a constant field still needs two ends
    return [low - pad, high + pad];
  }

  function tell(found) {
    const name = model.lift.names[state.which], rows = { min: found.low, "mean of the nodes": found.mean, max: found.high };
    $("statistics").replaceChildren(...Object.entries(rows).map(([key, value]) => make("div", {}, make("dt", {}, key), make("dd", {}, words(value)))));
    const duals = model.reduced && model.reduced.duals, error = Words.errorWords(answer.bound, model.bound, duals ? duals.probability : null);
    fill.error(error);
    fill.quantities();
    $("python").textContent = Words.python(model, state.inputs, state.time);
    tellProbe();
    clearTimeout(speaking); // for those who listen: once the slider rests
    speaking = setTimeout(() => {
      const value = state.probe ? `${$("probe").textContent}. ` : "";
      $("spoken").textContent = `${value}${name} from ${words(found.low)} to ${words(found.high)}. Relative error ${error.big}, ${error.words}. ${Words.estimateWords(answer.bound)}`.trim();
    }, 500);
  }

  function tellProbe() {
    const shown = state.probe;
    if (!shown) { $("probe").textContent = ""; return; }
    const place = shown.at.map((x, k) => `${coordinates[k]} = ${placeText(x, k)}`).join(", ");
    const off = model.least_weight === null || model.bound.kind === "none" ? Infinity : answer.bound.value / Math.sqrt(model.least_weight);
    const within = Number.isFinite(off) ? ` ± ${words(off, 2)}` : "";
    $("probe").textContent = `${model.lift.names[state.which]} = ${words(view.valueAt(shown.parts), 5)}${within} at ${place}`;
  }

  const fill = {
    error(found) {
      const { big, about, quietly } = fill.parts || (fill.parts = fill.make());
      about.textContent = Words.estimateWords(answer.bound);
      about.hidden = !about.textContent;
      big.box.className = found.kind;
      big.text.textContent = found.big;
      big.words.textContent = ` ${found.words}`;
      const digits = Number.isFinite(answer.bound.relative) ? Math.min(1, Math.max(0, (Math.log10(Math.max(answer.bound.relative, 1e-300)) + 10) / 10)) : 1;
      big.meter.style.width = `${100 * digits}%`;
      big.meter.parentElement.hidden = found.kind === "unknown";
      quietly.textContent = `${found.note} ${Words.discretisationWords(answer.discretisation)}`.trim();
    },
    make() {
      const text = make("span", { class: "big" }), said = make("span"), meter = make("div");
      const box = make("div", {}, text, said, make("div", { class: "meter", title: "from 10⁻¹⁰ to 1, in powers of ten", "aria-hidden": "true" }, meter));
      const about = make("p", { class: "about" }), quietly = make("p", { class: "note" });
      $("error").replaceChildren(make("h2", {}, "Error bound"), box, about, quietly);
      return { big: { box, text, words: said, meter }, about, quietly };
    },
    quantities() {
      $("quantities").hidden = !answer.quantities.length;
      if (!answer.quantities.length) return;
      const kind = (q) => (q.estimate === null || answer.bound.rigorous ? "" : " (estimated)"); // such a bound has a word of its own
      const cell = (q) => make("td", {}, words(q.value, 6), make("span", {}, Number.isFinite(q.bound) ? ` ± ${words(q.bound, 2)}${kind(q)}` : ""));
      $("quantities").replaceChildren(make("h2", {}, "Quantities"), make("table", {}, ...answer.quantities.map((q) => make("tr", {}, make("th", { scope: "row" }, q.name), cell(q)))));
    },
  };

  function drawBar(canvas) {
    const dense = Math.min(2, window.devicePixelRatio || 1), width = canvas.clientWidth, height = canvas.clientHeight, g = canvas.getContext("2d");
    if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(height * dense);
    }
    g.setTransform(dense, 0, 0, dense, 0, 0);
    g.clearRect(0, 0, width, height);
    const top = 24, bottom = height - 12, colour = Paint.colours(mapName()), fade = g.createLinearGradient(0, bottom, 0, top);
    for (let i = 0; i <= 24; i++) fade.addColorStop(i / 24, `rgb(${colour(i / 24).join(",")})`);
    g.fillStyle = fade;
    g.fillRect(2, top, 14, bottom - top);
    g.fillStyle = g.strokeStyle = theme().text;
    g.lineWidth = 1;
    g.strokeRect(2.5, top + 0.5, 13, bottom - top - 1);
    g.font = "italic 13px system-ui, sans-serif";
    g.textAlign = "left";
    g.textBaseline = "middle";
    g.fillText(model.lift.names[state.which], 3, 11);
    g.font = "12px system-ui, sans-serif";
    const ticks = Geometry.ticks(...range, Math.max(2, Math.min(8, (bottom - top) / 45)));
    for (const v of ticks.values) {
      const y = bottom - ((v - range[0]) / (range[1] - range[0])) * (bottom - top);
      g.fillRect(16, y - 0.5, 4, 1);
      g.fillText(ticks.label(v), 23, y);
    }
  }

  // ---- sliders ------------------------------------------------------------------------------------------------------
  const controls = []; // functions that bring a control in line with the state

  function slider(id, label, low, high, log, get, set, note = "") {
    const to = (x) => (log ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low)) * STEPS;
    const from = (t) => (t <= 0 ? low : t >= STEPS ? high : log ? low * (high / low) ** (t / STEPS) : low + ((high - low) * t) / STEPS);
    const bar = make("input", { type: "range", id, min: "0", max: String(STEPS), step: "1", oninput: () => move(from(Number(bar.value))) });
    const exact = make("input", { type: "number", min: String(low), max: String(high), step: "any", "aria-label": `${label}, exact value`, onchange: () => {
      const x = exact.valueAsNumber;
      move(Number.isNaN(x) ? get() : x);
      update();
    } });
    const move = (x) => { set(Math.min(high, Math.max(low, x))); changed(); };
    const update = () => {
      const x = get();
      if (document.activeElement !== bar || Math.abs(from(Number(bar.value)) - x) > 1e-12 * (high - low)) bar.value = String(Math.round(to(x)));
      bar.setAttribute("aria-valuetext", words(x));
      exact.value = String(Number(x.toPrecision(5)));
    };
    bar.addEventListener("input", update);
    controls.push(update);
    const name = make("label", { for: id }, label);
    if (note) name.append(make("span", { class: "range" }, note));
    return make("div", { class: "row" }, name, bar, exact);
  }

  function chooser(p, j) {
    // a parameter with nothing between its values
    state.inputs.push(p.choices[Math.floor(p.choices.length / 2)]);
    const list = make("select", { id: `p-${p.name}`, onchange: () => { state.inputs[j] = p.choices[list.selectedIndex]; changed(); } }, ...p.words.map((word) => make("option", {}, word)));
    controls.push(() => {
      const distances = p.choices.map((value) => Math.abs(value - state.inputs[j])), nearest = distances.indexOf(Math.min(...distances));
      state.inputs[j] = p.choices[nearest]; // of a link that says something between
      list.selectedIndex = nearest;
    });
    return make("div", { class: "row" }, make("label", { for: `p-${p.name}` }, p.name), list);
  }

  function build() {
    const form = $("sliders");
    form.addEventListener("submit", (event) => event.preventDefault());
    form.append(make("h2", {}, model.parameters.length || model.functions.length ? "Parameters" : "Time"));
    model.parameters.forEach((p, j) => {
      if (p.choices) { form.append(chooser(p, j)); return; }
      state.inputs.push(p.scale === "log" ? Math.sqrt(p.low * p.high) : (p.low + p.high) / 2);
      form.append(slider(`p-${p.name}`, p.name, p.low, p.high, p.scale === "log", () => state.inputs[j], (x) => { state.inputs[j] = x; }, `${words(p.low)} … ${words(p.high)}${p.scale === "log" ? ", log" : ""}`));
    });
    model.functions.forEach(buildFunction);
    if (!model.steady) buildTime(form);
    buildOptions();
    buildProvenance();
    controls.forEach((update) => update());
  }

  function buildFunction(f) {
    const [count, modes] = f.samples.shape, take = (values) => { values.forEach((x, k) => { state.inputs[f.input + k] = x; }); controls.forEach((update) => update()); changed(); };
    const sample = (i) => Array.from(f.samples.data.subarray(i * modes, (i + 1) * modes));
    sample(0).forEach((x) => state.inputs.push(x));
    const choice = make("select", { id: `f-${f.name}`, "aria-label": `sample of ${f.name}`, onchange: () => { if (choice.value !== "own") take(choice.value === "zero" ? Array(modes).fill(0) : sample(Number(choice.value))); } },
      ...Array.from({ length: count }, (_, i) => make("option", { value: String(i) }, `sample ${i + 1}`)), make("option", { value: "zero" }, "zero"), make("option", { value: "own" }, "your own"));
    const normal = () => Math.max(-MOST_DEVIATIONS, Math.min(MOST_DEVIATIONS, Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random())));
    const draw = make("button", { type: "button", onclick: () => { choice.value = "own"; take(Array.from({ length: modes }, normal)); } }, "Draw another");
    const rows = Array.from({ length: f.n_sliders }, (_, k) => slider(`f-${f.name}-${k + 1}`, `mode ${k + 1}`, -MOST_DEVIATIONS, MOST_DEVIATIONS, false, () => state.inputs[f.input + k], (x) => { choice.value = "own"; state.inputs[f.input + k] = x; }));
    const legend = make("legend", {}, make("i", {}, f.name), ` on the ${f.on}: a sample, and ${f.n_sliders} of its ${modes} modes (in standard deviations)`);
    $("sliders").append(make("fieldset", {}, legend, make("div", { class: "choice" }, choice, draw), ...rows));
  }

  function buildTime(form) {
    const times = model.lift.times, last = times.length - 1;
    const shown = make("output", { for: "time" });
    const bar = make("input", { type: "range", id: "time", min: "0", max: String(last), step: "1", oninput: () => { state.time = Number(bar.value); update(); changed(); } });
    const update = () => { bar.value = String(state.time); shown.textContent = words(times[state.time]); bar.setAttribute("aria-valuetext", `${model.about.time} = ${words(times[state.time])}`); };
    let playing = 0;
    const play = make("button", { type: "button", id: "play", "aria-pressed": "false", onclick: () => {
      if (playing) { clearInterval(playing); playing = 0; } else playing = setInterval(() => { state.time = (state.time + 1) % (last + 1); update(); changed(); }, Math.max(40, 6000 / (last + 1)));
      play.textContent = playing ? "Pause" : "Play";
      play.setAttribute("aria-pressed", String(Boolean(playing)));
    } }, "Play");
    controls.push(update);
    form.append(make("div", { class: "row" }, make("label", { for: "time" }, model.about.time), bar, shown), make("div", { class: "buttons" }, play));
  }

  function buildOptions() {
    const select = (label, id, choices, value, set) => make("label", {}, label, make("select", { id, onchange: (event) => { set(event.target.value); changed(); } }, ...choices.map(([key, text]) => make("option", { value: String(key), selected: String(key) === String(value) }, text))));
    const tick = (label, id, set) => make("label", {}, make("input", { type: "checkbox", id, onchange: (event) => { set(event.target.checked); changed(); } }), label);
    const items = [];
    if (model.lift.names.length > 1) items.push(select("field", "which", model.lift.names.map((name, i) => [i, name]), 0, (v) => { state.which = Number(v); state.locked = null; $("lock").checked = false; }));
    if (view.dimension > 1) {
      items.push(select("colours", "map", [["auto", "automatic"], ["sequential", "dark to light"], ["diverging", "about zero"]], "auto", (v) => { state.map = v; }));
      items.push(tick("contour lines", "lines", (on) => { state.lines = on; }));
    }
    items.push(tick("lock the range", "lock", (on) => { state.locked = on ? range : null; }));
    const parts = [make("h2", {}, "View"), make("div", { class: "options" }, ...items)];
    if (view.dimension === 3) parts.push(...buildSlice(select));
    $("options").replaceChildren(...parts);
    const hints = { 1: "Point at the curve to read it.", 2: "Point at the picture to read it, or move with the arrow keys.", 3: "Drag to turn, wheel to zoom, point to read; arrow keys turn as well." };
    $("hint").textContent = hints[view.dimension];
    $("overlay").setAttribute("aria-label", `${model.lift.names.join(", ")} in colour. ${hints[view.dimension]}`);
  }

  function buildSlice(select) {
    const cut = () => view.setSlice(state.axis, state.height);
    const axis = select("cut", "axis", [[-1, "none"], ...coordinates.map((name, k) => [k, `across ${name}`])], state.axis, (v) => { state.axis = Number(v); cut(); });
    const [lower, upper] = view.bounds;
    const place = () => { const k = Math.max(0, state.axis); return lower[k] + state.height * (upper[k] - lower[k]); };
    const shown = make("output", { for: "height" });
    const bar = make("input", { type: "range", id: "height", min: "0", max: "200", step: "1", value: "100", "aria-label": "where to cut", oninput: () => { state.height = Number(bar.value) / 200; cut(); tellPlace(); changed(); } });
    const tellPlace = () => { shown.textContent = placeText(place(), Math.max(0, state.axis)); bar.setAttribute("aria-valuetext", shown.textContent); };
    axis.querySelector("select").addEventListener("change", tellPlace);
    cut();
    tellPlace();
    return [make("div", { class: "options" }, axis), make("div", { class: "row" }, make("span", {}, "at"), bar, shown)];
  }

  function buildProvenance() {
    const a = model.about, n = model.lift.n_nodes;
    const line = `Made by parasol ${a.parasol}: ${n} nodes, ${a.n_modes} modes, ${a.map}. Everything is computed in this page; nothing is loaded or sent. Between nodes values are interpolated linearly; what follows ± holds at the nodes.`;
    const rows = Object.entries(a.facts).flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, typeof value === "number" ? words(value) : String(value))]);
    $("provenance").append(make("p", {}, line), ...(rows.length ? [make("details", {}, make("summary", {}, "How it was made"), make("dl", {}, ...rows))] : []));
  }

  // ---- the picture under the pointer --------------------------------------------------------------------------------
  function point(x, y) {
    state.probe = view.pick(x, y);
    view.drawOver(state.probe && state.probe.at);
    tellProbe();
  }

  function turnBy(right, up) {
    view.camera.azimuth -= right;
    view.camera.elevation = Math.max(-1.55, Math.min(1.55, view.camera.elevation + up));
    state.probe = null;
    tellProbe();
    show();
  }

  function listen() {
    const pad = $("overlay"), place = (event) => { const r = pad.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
    let held = null;
    pad.addEventListener("pointerdown", (event) => { pad.setPointerCapture(event.pointerId); held = place(event); if (view.dimension < 3) point(...held); });
    pad.addEventListener("pointerup", () => { held = null; });
    pad.addEventListener("pointermove", (event) => {
      const here = place(event);
      if (view.dimension === 3 && held) { turnBy((here[0] - held[0]) / 150, (here[1] - held[1]) / 150); held = here; } else point(...here);
    });
    pad.addEventListener("pointerleave", () => { if (!held) { state.probe = null; view.drawOver(null); tellProbe(); } });
    pad.addEventListener("wheel", (event) => { if (view.dimension === 3) { event.preventDefault(); zoom(Math.exp(-event.deltaY / 600)); } }, { passive: false });
    pad.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (step) { event.preventDefault(); if (view.dimension === 3) turnBy(0.08 * step[0], 0.08 * step[1]); else stepProbe(step); }
      if (view.dimension === 3 && (event.key === "+" || event.key === "-")) zoom(event.key === "+" ? 1.1 : 1 / 1.1);
    });
    new ResizeObserver(() => { if (answer) { view.resize(); show(); } }).observe($("field"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());
    $("png").addEventListener("click", savePicture);
    $("csv").addEventListener("click", () => save("field.csv", new Blob([table()], { type: "text/csv" })));
    $("copy").addEventListener("click", copyPython);
  }

  function zoom(factor) {
    view.camera.zoom = Math.max(0.4, Math.min(8, view.camera.zoom * factor));
    show();
  }

  function stepProbe([right, up]) {
    const [lower, upper] = view.bounds, from = state.probe ? state.probe.at : lower.map((x, k) => (x + upper[k]) / 2);
    const next = from.map((x, k) => x + 0.02 * (upper[k] - lower[k]) * [right, up][k]), found = view.nearPoint(...next);
    if (!found) return;
    state.probe = found;
    view.drawOver(found.at);
    tellProbe();
    $("spoken").textContent = $("probe").textContent;
  }

  // ---- to take away -------------------------------------------------------------------------------------------------
  function save(name, blob) {
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function table() {
    const { names, n_nodes: n } = model.lift, d = model.mesh.dimension, { data } = model.mesh.points;
    const fields = names.map((_, which) => maths.field(answer.coefficients, which, state.time));
    const rows = [[...coordinates, ...names].join(",")];
    for (let i = 0; i < n; i++) rows.push([...data.subarray(d * i, d * i + d), ...fields.map((field) => field[i])].join(","));
    return rows.join("\n") + "\n";
  }

  function picture() {
    const [field, over, bar] = ["field", "overlay", "bar"].map($), dense = field.width / field.clientWidth || 1, caption = Math.round(30 * dense);
    const sheet = make("canvas", { width: field.width + bar.width, height: field.height + caption }), g = sheet.getContext("2d");
    g.fillStyle = theme().card;
    g.fillRect(0, 0, sheet.width, sheet.height);
    view.draw(); // in this very task, while the drawing is still there
    g.drawImage(field, 0, 0);
    g.drawImage(over, 0, 0);
    g.drawImage(bar, field.width, 0);
    g.fillStyle = theme().text;
    g.font = `${13 * dense}px system-ui, sans-serif`;
    const parameters = model.parameters.map((p, j) => `${p.name} = ${words(state.inputs[j])}`), time = model.steady ? [] : [`${model.about.time} = ${words(model.lift.times[state.time])}`];
    g.fillText([model.title, ...parameters, ...time].join("   "), 12 * dense, field.height + 18 * dense);
    return sheet;
  }

  function savePicture() {
    picture().toBlob((blob) => save("field.png", blob));
  }

  async function copyPython() {
    const done = (said) => { $("copy").textContent = said; setTimeout(() => { $("copy").textContent = "Copy as Python"; }, 1500); };
    try {
      await navigator.clipboard.writeText($("python").textContent);
      done("Copied");
    } catch {
      getSelection().selectAllChildren($("python")); // not allowed here: at least it is selected
      done("Selected: copy it");
    }
  }

  // ---- begin --------------------------------------------------------------------------------------------------------
  build();
  listen();
  const complain = (text) => { $("problem").hidden = false; $("problem").textContent = text; };
  if (!view.works) complain("This browser offers no WebGL2, so the field cannot be drawn. Numbers, bounds and files are right all the same.");
  $("field").addEventListener("webglcontextlost", () => complain("The browser has taken the graphics away from this page. Load it again to see the field."));
  repaint();
  window.parasol = {
    model, state, timings, repaint, picture,
    answer: (inputs, options) => {
      const found = maths.answer(inputs, options);
      return { ...found, values: Array.from(found.values), coefficients: Array.from(found.coefficients), mu: Array.from(found.mu) };
    },
    set(inputs, { time = state.time, which = state.which } = {}) {
      Object.assign(state, { inputs: Array.from(inputs), time, which });
      controls.forEach((update) => update());
      repaint();
    },
    csv: table, pick: view.pick, valueAt: view.valueAt, finish: view.finish,
  };
})();
