"use strict";
// What can be moved and chosen: parameters, functions, time, how it is shown, what it is compared with.

const Controls = (() => {
  const { $, make, select, tick, button, slider } = Parts;
  const MOST_DEVIATIONS = 4, WHOLE = 6000; // standard deviations of a mode; milliseconds in which all times pass at usual speed

  function makeControls(app) {
    const { model, state, view } = app, updates = [], changed = () => app.changed(), { times } = model.lift;
    const add = ({ row, update }) => { updates.push(update); return row; };

    // ---- parameters ---------------------------------------------------------------------------------------------------
    function scalar(p, j) {
      if (p.choices) return chooser(p, j);
      state.inputs.push(p.scale === "log" ? Math.sqrt(p.low * p.high) : (p.low + p.high) / 2);
      const note = [p.low, p.high].map((x) => Words.short(x, 7).replaceAll("-", "−")).join(" … ");
      return add(slider({ id: `p-${p.name}`, label: p.name, low: p.low, high: p.high, log: p.scale === "log", note, get: () => state.inputs[j], set: (x) => { state.inputs[j] = x; changed(); } }));
    }

    function chooser(p, j) {
      // a parameter with nothing between its values
      state.inputs.push(p.choices[Math.floor(p.choices.length / 2)]);
      const list = make("select", { id: `p-${p.name}`, onchange: () => { state.inputs[j] = p.choices[list.selectedIndex]; changed(); } }, ...p.words.map((word) => make("option", {}, word)));
      updates.push(() => {
        const distances = p.choices.map((value) => Math.abs(value - state.inputs[j])), nearest = distances.indexOf(Math.min(...distances));
        state.inputs[j] = p.choices[nearest];
        list.selectedIndex = nearest;
      });
      return make("div", { class: "row" }, make("label", { for: `p-${p.name}` }, p.name), list);
    }

    function functionOf(f) {
      const [count, modes] = f.samples.shape, take = (values) => { values.forEach((x, k) => { state.inputs[f.input + k] = x; }); update(); changed(); };
      const sample = (i) => Array.from(f.samples.data.subarray(i * modes, (i + 1) * modes));
      sample(0).forEach((x) => state.inputs.push(x));
      const choice = make("select", { id: `f-${f.name}`, "aria-label": `sample of ${f.name}`, onchange: () => { if (choice.value !== "own") take(choice.value === "zero" ? Array(modes).fill(0) : sample(Number(choice.value))); } },
        ...Array.from({ length: count }, (_, i) => make("option", { value: String(i) }, `sample ${i + 1}`)), make("option", { value: "zero" }, "zero"), make("option", { value: "own" }, "your own"));
      const normal = () => Math.max(-MOST_DEVIATIONS, Math.min(MOST_DEVIATIONS, Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random())));
      const draw = button("Draw another", `f-${f.name}-draw`, () => { choice.value = "own"; take(Array.from({ length: modes }, normal)); });
      const rows = Array.from({ length: f.n_sliders }, (_, k) => add(slider({ id: `f-${f.name}-${k + 1}`, label: `mode ${k + 1}`, low: -MOST_DEVIATIONS, high: MOST_DEVIATIONS, log: false, kind: "mode",
        get: () => state.inputs[f.input + k], set: (x) => { choice.value = "own"; state.inputs[f.input + k] = x; changed(); } })));
      const legend = make("legend", {}, make("i", {}, f.name), ` on the ${f.on}: a sample, and the first ${f.n_sliders} of its ${modes} modes (in standard deviations)`);
      return make("fieldset", {}, legend, make("div", { class: "choice" }, choice, draw), make("div", { class: "rows" }, ...rows));
    }

    // ---- time ---------------------------------------------------------------------------------------------------------
    function time() {
      const last = times.length - 1, shown = make("output", { for: "time" });
      const go = (t) => { state.time = Math.max(0, Math.min(last, t)); show(); changed(); };
      const bar = make("input", { type: "range", id: "time", min: "0", max: String(last), step: "1", oninput: () => go(Number(bar.value)) });
      const show = () => { bar.value = String(state.time); shown.textContent = Words.number(times[state.time]); bar.setAttribute("aria-valuetext", `${model.about.time} = ${Words.number(times[state.time])}`); };
      let playing = 0, speed = 1;
      const start = () => { playing = setInterval(() => go((state.time + 1) % (last + 1)), Math.max(16, WHOLE / speed / (last + 1))); };
      const play = button("Play", "play", () => {
        if (playing) { clearInterval(playing); playing = 0; } else start();
        play.textContent = playing ? "Pause" : "Play";
        play.setAttribute("aria-pressed", String(Boolean(playing)));
      }, { "aria-pressed": "false" });
      const pace = select("speed", "speed", [[0.25, "¼ ×"], [0.5, "½ ×"], [1, "1 ×"], [2, "2 ×"], [4, "4 ×"]], 1, (v) => { speed = Number(v); if (playing) { clearInterval(playing); start(); } });
      updates.push(show);
      return make("div", { class: "time" }, make("div", { class: "row" }, make("label", { for: "time" }, model.about.time), bar, shown),
        make("div", { class: "buttons" }, play, button("◀", "back", () => go(state.time - 1), { "aria-label": "one step back" }), button("▶", "forward", () => go(state.time + 1), { "aria-label": "one step on" }), pace));
    }

    // ---- how it is shown ----------------------------------------------------------------------------------------------
    function options() {
      const items = [], set = (name) => (value) => { state[name] = value; changed(); }, { choices } = app.shown;
      const unlock = () => { state.locked = null; $("lock").checked = false; };
      if (choices.length > 1) items.push(select("field", "which", choices.map(({ name }, i) => [i, name]), state.which, (v) => { state.which = Number(v); unlock(); changed(); }));
      if (view.dimension > 1) items.push(select("colours", "map", [["auto", "automatic"], ["sequential", "dark to light"], ["diverging", "about zero"]], state.map, set("map")));
      if (!model.steady) items.push(select("range of", "span", [["times", "all times"], ["moment", "this moment"]], state.span, set("span")));
      items.push(tick("hold the range", "lock", state.locked, (on) => { state.locked = on ? app.range() : null; changed(); }));
      if (view.dimension > 1) items.push(tick("contours", "lines", state.lines, set("lines")));
      if (view.dimension === 2) items.push(tick("mesh", "mesh", state.mesh, set("mesh")));
      if (model.vectors.length) {
        const v = model.vectors[0];
        items.push(tick(`arrows of ${v.name}`, "arrows", state.arrows, set("arrows")), tick(`moved by ${v.name} × ${Words.number(v.factor)}`, "deformed", state.moved, set("moved")));
      }
      const parts = [make("h2", {}, "View"), make("div", { class: "options" }, ...items)];
      if (view.dimension === 3) parts.push(...solid());
      const hints = { 1: "Point at the curve to read it; click to mark a point.", 2: "Point to read; click to mark a point. With the keyboard: arrow keys.", 3: "Drag to turn (on a phone sideways, or with two fingers), point to read, click to mark. Click, then the wheel zooms. Keys: arrows, + and −, 0." };
      parts.push(make("p", { class: "note", id: "hint" }, hints[view.dimension]));
      $("options").replaceChildren(...parts);
      $("overlay").setAttribute("aria-label", `${model.lift.names.join(", ")} ${view.dimension === 1 ? "as a curve" : "in colour"}. ${hints[view.dimension]}`);
    }

    function solid() {
      const cut = () => { for (const { view: one } of app.views()) one.setSlice(state.axis, state.height); };
      const [lower, upper] = view.bounds, shown = make("output", { for: "height" }), axis = () => Math.max(0, state.axis);
      const tell = () => { shown.textContent = app.placeText(lower[axis()] + state.height * (upper[axis()] - lower[axis()]), axis()); bar.setAttribute("aria-valuetext", shown.textContent); };
      const bar = make("input", { type: "range", id: "height", min: "0", max: "200", step: "1", value: String(200 * state.height), "aria-label": "where to cut", oninput: () => { state.height = Number(bar.value) / 200; cut(); tell(); changed(); } });
      const choice = select("cut", "axis", [[-1, "none"], ...app.coordinates.map((name, k) => [k, `across ${name}`])], state.axis, (v) => { state.axis = Number(v); cut(); tell(); changed(); });
      const level = make("input", { type: "range", id: "level", min: "0", max: "1000", step: "1", value: String(1000 * (state.level ?? 0.5)), "aria-label": "value of the surface", oninput: () => { state.level = Number(level.value) / 1000; on.querySelector("input").checked = true; changed(); } });
      const value = make("output", { for: "level" });
      const on = tick("surface of equal values", "surface", state.level !== null, (yes) => { state.level = yes ? Number(level.value) / 1000 : null; changed(); });
      updates.push(() => { value.textContent = state.level === null ? "" : Words.number(app.levelValue(), 3); });
      cut();
      tell();
      return [make("div", { class: "options" }, choice, button("Reset view", "reset", () => { view.reset(); changed(); }), on),
        make("div", { class: "row" }, make("span", {}, "cut at"), bar, shown), make("div", { class: "row" }, make("span", {}, "value"), level, value)];
    }

    // ---- beside each other --------------------------------------------------------------------------------------------
    function compare() {
      const wordsOf = (inputs) => Words.listed(Words.settings(model, inputs, 3)) || "as drawn";
      const list = make("select", { id: "other", "aria-label": "compare with", onchange: () => {
        const v = list.value;
        if (v === "none") state.other = null;
        if (v === "kept") state.other = { inputs: kept };
        if (v.startsWith("solve")) { state.other = { solve: Number(v.slice(5)) }; state.inputs.splice(0, state.inputs.length, ...Array.from(model.solves[state.other.solve].inputs.data)); }
        update();
        changed();
      } });
      let kept = state.other && state.other.inputs ? state.other.inputs : null;
      const fill = () => {
        const now = state.other === null ? "none" : state.other.solve !== undefined ? `solve${state.other.solve}` : "kept";
        list.replaceChildren(make("option", { value: "none" }, "nothing"), ...(kept ? [make("option", { value: "kept" }, `kept: ${wordsOf(kept)}`)] : []),
          ...model.solves.map((solve, i) => make("option", { value: `solve${i}` }, `full solve: ${wordsOf(Array.from(solve.inputs.data))}`)));
        list.value = now;
        how.parentElement.hidden = now === "none";
        said.textContent = model.solves.length ? "A full solve came with this page for each of the parameters in the list; choosing it moves the sliders there." : "";
        said.hidden = !said.textContent;
      };
      const keep = button("Keep this answer", "keep", () => { kept = state.inputs.slice(); state.other = { inputs: kept }; update(); changed(); });
      const howLabel = select("shown", "how", [["beside", view.dimension === 1 ? "in one plot" : "side by side"], ["difference", "their difference"]], state.how, (v) => { state.how = v; changed(); });
      const how = howLabel.querySelector("select"), said = make("p", { class: "note" }), found = make("p", { class: "note number", id: "apart" });
      $("compare").replaceChildren(make("h2", {}, "Compare"), make("div", { class: "buttons" }, keep, make("label", {}, "with", list), howLabel), found, said);
      updates.push(fill);
      fill();
    }

    // ---- how it was made ----------------------------------------------------------------------------------------------
    function provenance() {
      const a = model.about, n = model.lift.n_nodes, between = model.mesh.smooth ? "by cubics from the values at the nodes" : "linearly";
      const line = `Made by parasol ${a.parasol}: ${n} nodes, ${a.n_modes} modes, ${a.map === "reduced model" ? "coefficients by the reduced model" : `coefficients by a map (${a.map})`}. Everything is computed in this page; nothing is loaded or sent. Between nodes values are interpolated ${between}; what follows ± holds at the nodes.`;
      const rows = Object.entries(a.facts).flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, typeof value === "number" ? Words.number(value) : String(value))]);
      $("provenance").append(make("p", {}, line), ...(rows.length ? [make("details", {}, make("summary", {}, "How it was made"), make("dl", {}, ...rows))] : []));
    }

    function begin() {
      // the sliders, which know what the state begins with
      const form = $("sliders");
      form.addEventListener("submit", (event) => event.preventDefault());
      form.append(...model.parameters.map(scalar), ...model.functions.map(functionOf));
      if (!model.steady) form.append(time());
      form.hidden = !form.children.length;
    }

    function rest() {
      options();
      compare();
      provenance();
      update();
    }

    const update = () => updates.forEach((one) => one());
    return { begin, rest, update };
  }

  return { makeControls };
})();
