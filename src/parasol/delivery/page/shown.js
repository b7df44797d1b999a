"use strict";
// What is shown: an unknown or the size of a vector, at one time; the range of its colours; what it is compared with.

const Shown = (() => {
  const NOTHING = 1e-10; // of the usual size of a field: less is zero and its rounding
  const QUICK = 3e6; // products for the range of all times while a slider moves

  function makeShown(model, maths, state) {
    const { names, times, n_nodes: n } = model.lift;
    // components first, then the sizes of vectors
    const choices = [...names.map((name, i) => ({ name, parts: [i], size: model.sizes[i] })),
      ...model.vectors.map((v) => ({ name: `|${v.name}|`, parts: Array.from({ length: v.n }, (_, k) => v.first + k), size: Math.max(...model.sizes.slice(v.first, v.first + v.n)), vector: v }))];
    const kept = new Map();

    const chosen = () => choices[state.which];

    function of(c, time, which = state.which) {
      const { parts } = choices[which], fields = parts.map((i) => maths.field(c, i, time));
      return fields.length === 1 ? fields[0] : fields[0].map((_, i) => Math.hypot(...fields.map((field) => field[i])));
    }

    function stored(solve, time, which = state.which) {
      // a full solve that came with the page
      const { data } = model.solves[solve].values, { parts } = choices[which];
      const field = (i) => data.subarray((time * names.length + i) * n, (time * names.length + i + 1) * n);
      return parts.length === 1 ? Float32Array.from(field(parts[0])) : Float32Array.from({ length: n }, (_, at) => Math.hypot(...parts.map((i) => field(i)[at])));
    }

    function other() {
      // the field that is compared with, at the same time; null for none
      if (!state.other) return null;
      if (state.other.solve !== undefined) return stored(state.other.solve, state.time);
      return of(maths.coefficients(maths.expand(state.other.inputs), state.other.inputs), state.time);
    }

    function ends(values, from = [Infinity, -Infinity], step = 1) {
      let [low, high] = from;
      for (let i = 0; i < values.length; i += step) { const x = values[i]; if (x < low) low = x; if (x > high) high = x; }
      return [low, high];
    }

    function allTimes(inputs, c, quick) {
      // the ends of the field over all times; quickly: over some of them, until the slider rests
      const key = `${state.which}|${inputs.join()}`;
      if (kept.has(key)) return kept.get(key);
      const work = n * c.length * times.length * chosen().parts.length, every = quick ? Math.max(1, Math.ceil(work / QUICK)) : 1;
      let found = [Infinity, -Infinity];
      for (let t = 0; t < times.length; t += every) found = ends(of(c, t), found);
      found = ends(of(c, times.length - 1), found);
      if (every === 1) { if (kept.size > 20) kept.clear(); kept.set(key, found); }
      return found;
    }

    function mapName(difference) {
      if (difference) return "diverging";
      if (state.map !== "auto") return state.map;
      return !chosen().vector && model.diverging[state.which] ? "diverging" : "sequential";
    }

    function nice([low, high], difference) {
      // a field that is zero is drawn as zero, not as its rounding
      const usual = chosen().size || 1, most = Math.max(Math.abs(low), Math.abs(high));
      if (difference) return most > 0 ? [-most, most] : [-usual, usual];
      const about = mapName(false) === "diverging" || model.mesh.dimension === 1;
      if (most <= NOTHING * usual) return mapName(false) === "diverging" ? [-usual, usual] : model.mesh.dimension === 1 ? [-usual, usual] : [0, usual];
      if (about && model.mesh.dimension > 1) return [-most, most];
      if (high - low > 1e-9 * most) return [low, high];
      return [low - 0.5 * most, high + 0.5 * most]; // a constant field still needs two ends
    }

    return { choices, chosen, of, stored, other, ends, allTimes, mapName, nice };
  }

  return { makeShown };
})();
