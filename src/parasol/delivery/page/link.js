"use strict";
// The state of the page in its address: parameters by their names, what is shown by names that begin with a dot.

const Link = (() => {
  const WAIT = 300; // milliseconds: addresses cannot be changed often

  function makeLink(model, state, view, complain) {
    let timer = 0, begun = null;
    const flags = ["lines", "mesh", "arrows", "moved"];

    function text() {
      const parts = model.parameters.map((p, j) => [p.name, p.choices ? p.words[p.choices.indexOf(state.inputs[j])] : String(state.inputs[j])]);
      for (const f of model.functions) parts.push([f.name, state.inputs.slice(f.input, f.input + f.modes.shape[0]).map((x) => Number(x.toPrecision(8))).join(",")]);
      if (!model.steady) parts.push([".time", String(state.time)]);
      if (state.which !== state.first.which) parts.push([".field", String(state.which)]);
      if (state.map !== "auto") parts.push([".map", state.map]);
      if (state.span !== "times") parts.push([".span", state.span]);
      for (const flag of flags) if (Boolean(state[flag]) !== Boolean(state.first[flag])) parts.push([`.${flag}`, state[flag] ? "1" : "0"]);
      if (state.locked) parts.push([".range", state.locked.join(",")]);
      if (view.dimension === 3) {
        parts.push([".cut", `${state.axis},${state.height}`], [".camera", [view.camera.azimuth, view.camera.elevation, view.camera.zoom].map((x) => Number(x.toPrecision(5))).join(",")]);
        if (state.level !== null) parts.push([".level", String(state.level)]);
      }
      if (state.line) parts.push([".line", state.line.flat().map((x) => Number(x.toPrecision(8))).join(",")]);
      if (state.other) parts.push([".with", state.other.solve !== undefined ? `solve${state.other.solve}` : state.other.inputs.join(",")], [".how", state.how]);
      return new URLSearchParams(parts).toString();
    }

    function write() {
      clearTimeout(timer);
      try { history.replaceState(null, "", `#${text()}`); } catch { /* where pages have no address of their own */ }
    }

    function changed() {
      // as long as nothing has changed, the address stays as it was
      clearTimeout(timer);
      if (begun === null) begun = text();
      if (location.hash || text() !== begun) timer = setTimeout(write, WAIT);
    }

    function read() {
      // what the address says; what it says wrongly is refused, and said so
      const given = new URLSearchParams(location.hash.slice(1)), wrong = [];
      const numbers = (key, count) => { const list = (given.get(key) || "").split(",").map(Number); return list.length === count && list.every(Number.isFinite) && given.get(key) !== "" ? list : (wrong.push(key), null); };
      model.parameters.forEach((p, j) => {
        if (!given.has(p.name)) return;
        if (p.choices) { const at = p.words.indexOf(given.get(p.name)); if (at >= 0) state.inputs[j] = p.choices[at]; else wrong.push(`${p.name} = ${given.get(p.name)}`); return; }
        const x = given.get(p.name) === "" ? NaN : Number(given.get(p.name));
        if (x >= p.low && x <= p.high) state.inputs[j] = x;
        else wrong.push(`${p.name} = ${given.get(p.name)} (from ${Words.number(p.low)} to ${Words.number(p.high)})`);
      });
      for (const f of model.functions) if (given.has(f.name)) { const list = numbers(f.name, f.modes.shape[0]); if (list) list.forEach((x, k) => { state.inputs[f.input + k] = x; }); }
      const whole = (key, most, set) => { if (!given.has(key)) return; const x = Number(given.get(key)); if (Number.isInteger(x) && x >= 0 && x <= most) set(x); else wrong.push(key); };
      whole(".time", model.lift.times.length - 1, (x) => { state.time = x; });
      whole(".field", model.lift.names.length + model.vectors.length - 1, (x) => { state.which = x; });
      for (const flag of flags) whole(`.${flag}`, 1, (x) => { state[flag] = x === 1; });
      if (["sequential", "diverging"].includes(given.get(".map"))) state.map = given.get(".map");
      if (given.get(".span") === "moment") state.span = "moment";
      if (given.has(".range")) { const found = numbers(".range", 2); if (found && found[0] < found[1]) state.locked = found; else if (found) wrong.push(".range"); }
      if (view.dimension === 3 && given.has(".cut")) { const found = numbers(".cut", 2); if (found && [-1, 0, 1, 2].includes(found[0]) && found[1] >= 0 && found[1] <= 1) [state.axis, state.height] = found; }
      if (view.dimension === 3 && given.has(".camera")) { const found = numbers(".camera", 3); if (found && found[2] > 0) [view.camera.azimuth, view.camera.elevation, view.camera.zoom] = found; }
      if (view.dimension === 3 && given.has(".level")) { const found = numbers(".level", 1); if (found) state.level = Math.min(1, Math.max(0, found[0])); }
      if (given.has(".line")) { const d = view.dimension, found = numbers(".line", 2 * d); if (found) state.line = [found.slice(0, d), found.slice(d)]; }
      readOther(given);
      if (wrong.length) complain(`The link asks for what this page does not have, which is left out: ${wrong.join(", ")}.`);
    }

    function readOther(given) {
      const other = given.get(".with");
      if (!other) return;
      const solve = /^solve(\d+)$/.exec(other);
      if (solve && Number(solve[1]) < model.solves.length) state.other = { solve: Number(solve[1]) };
      const inputs = other.split(",").map(Number);
      const inside = model.parameters.every((p, j) => (p.choices ? p.choices.includes(inputs[j]) : inputs[j] >= p.low && inputs[j] <= p.high));
      if (!solve && inside && inputs.length === state.inputs.length && inputs.every(Number.isFinite)) state.other = { inputs };
      if (given.get(".how") === "difference") state.how = "difference";
    }

    return { write, changed, read, text };
  }

  return { makeLink };
})();
