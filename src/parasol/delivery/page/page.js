"use strict";
// The page itself: the state, one repaint for every move of a slider, and what lies under the pointer.

(() => {
  const MORE = 1.15; // so much larger pictures are where they are put above each other
  const { $, make, theme, select, button } = Parts;
  const { model: tree, arrays } = JSON.parse($("model").textContent);
  const model = Numbers.decode(arrays)(tree), maths = Numbers.makeModel(model), words = Words.number;
  const coordinates = model.about.coordinates.slice(0, model.mesh.dimension);
  const view = View.make($("field"), $("overlay"), model.mesh, coordinates, theme), declared = model.vectors.length > 0 && model.vectors[0].declared;
  const first = { which: declared ? model.lift.names.length : 0, lines: false, mesh: false, arrows: declared, moved: false };
  const state = { ...first, first, inputs: [], time: 0, map: "auto", span: "times", locked: null, axis: view.dimension === 3 ? 0 : -1, height: 0.5, level: null, mark: null, line: null, other: null, how: "beside", quantity: null, along: 0 };
  const shown = Shown.makeShown(model, maths, state), timings = [];
  let answer = null, values = null, against = null, range = [0, 1], probe = null, drawing = null, second = null, stacked = false, waiting = false, resting = 0, quick = false, labels = [];

  const complain = (text) => { $("problem").hidden = false; $("problem").textContent = text; };
  const app = { model, maths, state, view, shown, coordinates, changed, repaint, redraw: show, complain, placeText, levelValue, shownName, answer: () => answer, range: () => range, update: () => controls.update(), views };
  const controls = Controls.makeControls(app), take = Take.makeTake(app), sweep = Curves.makeSweep(model, maths);
  const link = Link.makeLink(model, state, view, complain);
  app.link = link;
  app.sweep = { along: () => state.along, at: (w) => { const p = model.parameters[state.along]; return w >= 1 ? p.high : p.scale === "log" ? p.low * (p.high / p.low) ** w : p.low + w * (p.high - p.low); } };

  function placeText(x, k) {
    const [lower, upper] = view.bounds, step = 10 ** Math.floor(Math.log10(upper[k] - lower[k] || 1) - 3);
    return words(Math.round(x / step) * step, 4);
  }

  function levelValue() { return range[0] + state.level * (range[1] - range[0]); }

  // ---- one repaint --------------------------------------------------------------------------------------------------
  function changed() {
    quick = true;
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(() => { waiting = false; repaint(); });
    }
  }

  function comparing() { return against !== null && (state.how === "difference" ? "difference" : "beside"); }

  function repaint() {
    const start = performance.now();
    view.resize();
    answer = maths.answer(state.inputs, { which: shown.chosen().parts[0], time: state.time });
    values = shown.chosen().vector ? shown.of(answer.coefficients, state.time) : answer.values;
    against = shown.other();
    const difference = comparing() === "difference";
    if (difference) values = values.map((x, i) => x - against[i]);
    range = state.locked || shown.nice(ends(difference), difference);
    show();
    tell();
    timings.push(performance.now() - start);
    clearTimeout(resting);
    const again = quick && !model.steady && state.span === "times"; // for the range of all times
    resting = setTimeout(() => { if (again) repaint(); else speak(); }, 300);
    quick = false;
    link.changed();
  }

  function ends(difference) {
    if (difference) return shown.ends(values);
    let found = !model.steady && state.span === "times" ? shown.allTimes(state.inputs, answer.coefficients, quick) : shown.ends(values);
    if (against) found = shown.ends(against, found);
    return found;
  }

  function shownName() { return comparing() === "difference" ? `difference of ${shown.chosen().name}` : shown.chosen().name; }

  function lookOf(bar) {
    const levels = state.lines ? Geometry.ticks(...range, 16) : { step: 0, label: null };
    return { name: shownName(), map: shown.mapName(comparing() === "difference"), lines: levels.step, say: levels.label, mesh: state.mesh, level: state.level === null ? null : levelValue(), bar };
  }

  function vectorOf(c, solve) {
    if (!model.vectors.length || !(state.arrows || state.moved) || comparing() === "difference") return null;
    const { first: from, n } = model.vectors[0];
    return Array.from({ length: n }, (_, k) => (solve === undefined ? maths.field(c, from + k, state.time) : shown.stored(solve, state.time, from + k)));
  }

  function show() {
    const beside = comparing() === "beside", two = beside && view.dimension > 1, how = { factor: model.vectors.length ? model.vectors[0].factor : 1, arrows: state.arrows, moved: state.moved };
    layOut(two);
    const look = lookOf(!two || stacked), off = valueBound(answer.bound);
    if (view.dimension === 1) Object.assign(look, { label: "this answer", band: comparing() === "difference" ? 0 : off, others: beside ? [{ values: against, name: otherName(), dash: [6, 4] }] : [] });
    view.setVector(vectorOf(answer.coefficients), how);
    view.setField(values, range, look);
    view.draw();
    drawMarks();
    if (!two) return;
    second.resize();
    const solve = state.other.solve;
    second.setVector(vectorOf(solve === undefined ? maths.coefficients(maths.expand(state.other.inputs), state.other.inputs) : null, solve), how);
    second.setField(against, range, { ...look, bar: true });
    const basis = stacked ? "" : `${second.barRoom()}px`; // both pictures are of one size
    if ($("second").style.flexBasis !== basis) { $("second").style.flexBasis = basis; view.spoil(); second.spoil(); }
    second.resize();
    view.resize();
    view.draw();
    drawMarks();
    second.draw();
    second.drawOver({});
  }

  function refresh() {
    view.spoil();
    if (second) second.spoil();
    show();
  }

  function layOut(two) {
    // one picture, or two beside or above each other with the same axes, colours and camera
    const larger = ({ clientWidth: w, clientHeight: h }) => view.fits(w, h / 2) > MORE * view.fits(w / 2, h), above = two && larger($("stage"));
    if (above !== stacked) { stacked = above; $("stage").classList.toggle("stacked", stacked); view.spoil(); if (second) second.spoil(); }
    if ($("second").hidden === two) { $("second").hidden = !two; view.spoil(); if (second) second.spoil(); }
    $("caption").hidden = !against || (view.dimension === 1 && comparing() === "beside");
    if (against) $("caption").textContent = comparing() === "difference" ? `this answer − ${otherName()}` : "this answer";
    if (two) {
      $("caption2").textContent = otherName();
      if (!second) {
        second = View.make($("field2"), $("overlay2"), model.mesh, coordinates, theme, view.camera);
        second.setSlice(state.axis, state.height);
      }
    }
    view.resize();
  }

  function otherName() {
    if (state.other.solve !== undefined) return "full solve";
    const said = Words.listed(Words.settings(model, state.other.inputs, 3));
    return said ? `kept (${said})` : "the one kept";
  }

  function views() {
    const all = [{ view, left: 0, top: 0, field: $("field"), marks: { point: probe || state.mark, line: state.line }, caption: $("caption").hidden ? "" : $("caption").textContent }];
    if (second && !$("second").hidden) all.push({ view: second, left: stacked ? 0 : view.size().width, top: stacked ? view.size().height : 0, field: $("field2"), marks: {}, caption: $("caption2").textContent });
    return all;
  }

  function drawMarks() {
    const line = Array.isArray(drawing) && probe ? [drawing, probe.at] : state.line;
    labels = view.drawOver({ point: probe || state.mark, line }).labels;
    tellProbe();
  }

  // ---- in words and numbers -------------------------------------------------------------------------------------------
  const findings = Findings.makeFindings(model);
  let found = null;

  function valueBound(error) {
    // how far a value at a node may be off: by a calibrated band, else no more than the whole field
    if (model.least_weight === null || model.bound.kind === "none") return Infinity;
    const { parts } = shown.chosen(), root = Math.sqrt(Math.min(...parts.map((f) => model.least_weight[f])));
    const banded = model.reach && error.scale !== undefined;
    return banded ? Math.hypot(...parts.map((f) => model.reach[f])) * error.scale + error.lost / root : error.value / root;
  }

  function tell() {
    found = findings.tell(answer);
    quantities();
    along();
    $("python").textContent = Words.python(model, state.inputs, state.time);
    const level = $("level");
    if (level) level.parentElement.querySelector("output").textContent = state.level === null ? "" : words(levelValue(), 3);
    $("apart").hidden = !against;
    if (against) {
      const here = comparing() === "difference" ? values : values.map((x, i) => x - against[i]), most = Math.max(...shown.ends(here).map(Math.abs)), size = Math.max(...shown.ends(against).map(Math.abs));
      $("apart").textContent = Words.whole(`They differ by at most ${words(most, 3)} at a node${size > 0 ? `, ${words(most / size, 2)} of the largest value` : ""}.`);
    }
  }

  function speak() {
    // for those who listen: once the slider rests
    const [low, high] = shown.ends(values), value = probe ? `${$("probe").textContent}. ` : "";
    $("spoken").textContent = `${value}${shown.chosen().name} from ${words(low)} to ${words(high)}. Relative error ${found.big}, ${found.words}. ${Words.estimateWords(answer.bound)}`.trim();
  }

  function tellProbe() {
    const box = $("probe");
    box.hidden = !probe;
    if (!probe) { box.replaceChildren(); return; }
    const place = probe.at.map((x, k) => `${coordinates[k]} = ${placeText(x, k)}`).join(", "), off = valueBound(answer.bound);
    const within = Number.isFinite(off) && comparing() !== "difference" ? ` ± ${words(off, 2)}` : "";
    box.replaceChildren(make("b", {}, `${shownName()} = ${words(view.valueAt(probe), 5)}${within}`), ` at ${place}`);
    const [x, y] = view.dimension === 1 ? view.onScreen(probe.at, view.valueAt(probe)) : view.onScreen(view.seen(probe)), { width, height } = view.size();
    const w = box.offsetWidth, h = box.offsetHeight;
    box.style.left = `${Math.max(0, Math.min(width - w, x + 14 + w > width ? x - w - 14 : x + 14))}px`;
    box.style.top = `${Math.max(0, Math.min(height - h, y - h - 10 < 0 ? y + 14 : y - h - 10))}px`;
  }

  // ---- quantities, and how they depend on a parameter -----------------------------------------------------------------
  function readers() {
    // what a curve can show: quantities, the ends of the field, the value at the mark
    const list = answer.quantities.map((q, i) => ({ name: q.name, read: (here) => maths.answer(here, { which: 0, time: state.time }).quantities[i] }));
    const field = (here, take_) => {
      const found_ = maths.answer(here, { which: 0, time: state.time });
      return { value: take_(shown.of(found_.coefficients, state.time)), bound: valueBound(found_.bound) };
    };
    const { name } = shown.chosen();
    list.push({ name: `largest ${name} at a node`, read: (here) => field(here, (u) => shown.ends(u)[1]) }, { name: `smallest ${name} at a node`, read: (here) => field(here, (u) => shown.ends(u)[0]) });
    if (state.mark && view.dimension > 1) list.push({ name: `${name} at the mark`, read: (here) => field(here, (u) => view.sample(u, state.mark)) });
    return list;
  }

  function quantities() {
    const kind = (q) => (q.estimate === null || answer.bound.rigorous ? "" : " (estimated)"), list = readers(); // such a bound has a word of its own
    const cell = (q) => make("td", {}, make("span", {}, words(q.value, 6)), " ", make("span", {}, Number.isFinite(q.bound) ? `± ${words(q.bound, 2)}${kind(q)}` : ""));
    const [low, high] = shown.ends(values), name = comparing() === "difference" ? "difference" : shown.chosen().name;
    const rows = [...answer.quantities.map((q) => [q.name, cell(q)]), [`range of ${name}`, make("td", {}, `${words(low)} … ${words(high)}`)]];
    const box = $("quantities");
    if (!box.children.length) {
      const p = model.parameters.filter((one) => !one.choices);
      state.along = model.parameters.indexOf(p[0]);
      box.replaceChildren(make("h2", {}, "Quantities"), make("table", {}));
      if (p.length) {
        box.append(make("div", { class: "options" }, select("curve of", "quantity", [], 0, (v) => { state.quantity = v; changed(); }),
          select("against", "along", p.map((one) => [model.parameters.indexOf(one), one.name]), state.along, (v) => { state.along = Number(v); changed(); })), make("canvas", { class: "small", id: "curve", role: "img", "aria-label": "a quantity against a parameter" }));
      }
    }
    box.querySelector("table").replaceChildren(...rows.map(([title, value]) => make("tr", {}, make("th", { scope: "row" }, title), value)));
    if ($("curve")) sweepAlong(list);
  }

  function sweepAlong(list) {
    const menu = $("quantity"), names = list.map(({ name }) => name);
    if (menu.children.length !== names.length || Array.from(menu.children).some((one, i) => one.textContent !== names[i])) menu.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    if (!names.includes(state.quantity)) state.quantity = names[0];
    menu.value = state.quantity;
    const one = list[names.indexOf(state.quantity)], p = model.parameters[state.along], others = state.inputs.map((x, j) => (j === state.along ? "" : x)).join();
    const key = `${state.quantity}|${state.along}|${state.which}|${state.time}|${others}|${state.mark ? state.mark.at.join() : ""}`;
    if (!sweep.is(key)) sweep.restart(key, p);
    sweep.now = [one, p];
    if (!sweep.timer) advance();
  }

  function advance() {
    // a little of the curve, in the time between frames
    sweep.timer = setTimeout(() => {
      sweep.timer = 0;
      const done = sweep.advance(state.inputs, state.along, sweep.now[0].read);
      drawSweep(...sweep.now);
      if (!done) advance();
    }, 0);
  }

  function drawSweep(one, p) {
    const { xs, ys, band } = sweep.known();
    if (xs.length < 2) return;
    const here = state.inputs[state.along], now = answer.quantities.find((q) => q.name === one.name);
    let i = xs.findIndex((x) => x >= here);
    if (i < 1) i = 1;
    const w = (here - xs[i - 1]) / (xs[i] - xs[i - 1]), y = now ? now.value : ys[i - 1] + w * (ys[i] - ys[i - 1]);
    Curves.plot($("curve"), theme, { xs, curves: [{ ys }], band, names: [p.name, one.name], at: [here, y], log: p.scale === "log" });
  }

  // ---- along a line ---------------------------------------------------------------------------------------------------
  function buildLine() {
    if (view.dimension === 1) { $("probing").hidden = true; return; }
    const set = button("Draw a line", "line", () => { drawing = "start"; set.setAttribute("aria-pressed", "true"); said.textContent = "Now click where the line begins, then where it ends."; });
    const clear = button("Remove", "unline", () => { state.line = null; drawing = null; changed(); }), said = make("p", { class: "note", id: "line-said" });
    $("probing").replaceChildren(make("h2", {}, "Along a line"), make("div", { class: "buttons" }, set, clear), said, make("canvas", { class: "small", id: "profile", role: "img", "aria-label": "the field along a line" }));
  }

  function along() {
    const canvas = $("profile");
    if (!canvas) return;
    canvas.hidden = !state.line;
    $("unline").hidden = !state.line;
    if (!state.line) return;
    const hits = Curves.along(view, state.line), read = (hit, by) => (hit ? by.valueAt(hit) : NaN), two = comparing() === "beside" && second;
    const curves = [{ ys: hits.map(({ hit }) => read(hit, view)) }];
    if (two) curves.push({ ys: hits.map(({ hit }) => read(hit, second)), dash: [5, 4] });
    const inside = curves[0].ys.some(Number.isFinite);
    $("line-said").textContent = inside ? `From A (${state.line[0].map(placeText).join(", ")}) to B (${state.line[1].map(placeText).join(", ")})${two ? `; dashed: ${otherName()}` : ""}.` : "The line lies outside.";
    if (inside) Curves.plot(canvas, theme, { xs: hits.map(({ distance }) => distance), curves, band: null, names: ["distance from A", shownName()], at: null, log: false });
  }

  // ---- the picture under the pointer ----------------------------------------------------------------------------------
  function point(x, y) {
    probe = view.pick(x, y);
    drawMarks();
  }

  function turnBy(right, up) {
    view.camera.azimuth -= right;
    view.camera.elevation = Math.max(-1.55, Math.min(1.55, view.camera.elevation + up));
    probe = null;
    turned();
  }

  function turned() {
    for (const { view: one } of views()) one.draw();
    drawMarks();
    if (second && !$("second").hidden) second.drawOver({});
    link.changed();
  }

  function zoom(factor) {
    view.camera.zoom = Math.max(0.4, Math.min(8, view.camera.zoom * factor));
    turned();
  }

  function click(x, y) {
    const hit = view.pick(x, y);
    if (drawing === "start" && hit) { drawing = hit.at; return; }
    if (drawing && hit) { state.line = [drawing, hit.at]; drawing = null; $("line").setAttribute("aria-pressed", "false"); changed(); return; }
    state.mark = hit;
    changed();
  }

  function listen() {
    const pad = $("overlay"), place = (event) => { const r = pad.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
    const held = new Map();
    let from = null;
    pad.addEventListener("pointerdown", (event) => { pad.setPointerCapture(event.pointerId); held.set(event.pointerId, place(event)); from = place(event); if (view.dimension < 3) point(...from); });
    const release = (event) => { held.delete(event.pointerId); if (!held.size && event.type === "pointercancel") { probe = null; drawMarks(); } };
    pad.addEventListener("pointerup", (event) => { const here = place(event); if (from && Math.hypot(here[0] - from[0], here[1] - from[1]) < 5) click(...here); from = null; release(event); });
    pad.addEventListener("pointercancel", release);
    pad.addEventListener("pointermove", (event) => {
      const here = place(event), before = held.get(event.pointerId);
      if (view.dimension < 3 || !before) { point(...here); return; }
      const others = Array.from(held.entries()).filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      if (others.length) zoom(Math.hypot(here[0] - others[0][0], here[1] - others[0][1]) / (Math.hypot(before[0] - others[0][0], before[1] - others[0][1]) || 1));
      turnBy((here[0] - before[0]) / 150, (here[1] - before[1]) / 150);
      held.set(event.pointerId, here);
    });
    pad.addEventListener("pointerleave", () => { if (!held.size) { probe = null; drawMarks(); } });
    // over a picture that was not clicked the wheel scrolls the page
    pad.addEventListener("wheel", (event) => { if (view.dimension === 3 && (event.ctrlKey || document.activeElement === pad)) { event.preventDefault(); zoom(Math.exp(-event.deltaY / 600)); } }, { passive: false });
    pad.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (step) { event.preventDefault(); if (view.dimension === 3) turnBy(0.08 * step[0], 0.08 * step[1]); else stepProbe(step); }
      if (view.dimension === 3 && (event.key === "+" || event.key === "-")) zoom(event.key === "+" ? 1.1 : 1 / 1.1);
      if (view.dimension === 3 && event.key === "0") { view.reset(); turned(); }
    });
    const sizes = new ResizeObserver(() => { if (answer) refresh(); });
    for (const id of ["overlay", "overlay2"]) sizes.observe($(id));
    const head = document.querySelector("header"), measure = () => document.documentElement.style.setProperty("--head", `${head.offsetHeight}px`);
    new ResizeObserver(measure).observe(head);
    Parts.scheme.addEventListener("change", () => repaint());
    window.addEventListener("hashchange", () => { link.read(); controls.update(); repaint(); });
  }

  function stepProbe([right, up]) {
    const [lower, upper] = view.bounds, from = probe ? probe.at : lower.map((x, k) => (x + upper[k]) / 2);
    const next = from.map((x, k) => x + 0.02 * (upper[k] - lower[k]) * [right, up][k]), hit = view.nearPoint(...next);
    if (!hit) return;
    probe = hit;
    drawMarks();
    $("spoken").textContent = $("probe").textContent;
  }

  // ---- begin ------------------------------------------------------------------------------------------------------------
  controls.begin();
  link.read();
  take.build();
  buildLine();
  controls.rest();
  listen();
  if (!view.works) complain("This browser offers no WebGL2, so the field cannot be drawn. Numbers, bounds and files are right all the same.");
  $("field").addEventListener("webglcontextlost", () => complain("The browser has taken the graphics away from this page. Load it again to see the field."));
  repaint();
  window.parasol = {
    model, state, timings, repaint() { view.spoil(); repaint(); }, view, shown, words: Words, picture: take.picture, paper: take.paper, csv: take.table, animation: take.animation, fileName: take.fileName, link,
    labels: () => labels, range: () => range, second: () => second, curve: sweep.known, probe: () => probe,
    answer: (inputs, options) => {
      const one = maths.answer(inputs, options);
      return { ...one, values: Array.from(one.values), coefficients: Array.from(one.coefficients), mu: Array.from(one.mu) };
    },
    set(inputs, { time = state.time, which = state.which } = {}) {
      Object.assign(state, { inputs: Array.from(inputs), time, which });
      controls.update();
      repaint();
    },
    pick: view.pick, valueAt: view.valueAt, finish: view.finish,
  };
})();
