"use strict";
// Small plots: a quantity against a parameter, with its band, and the field along a line.

const Curves = (() => {
  const SAMPLES = 49, BUDGET = 5; // points of a curve, milliseconds for it in each frame
  const ALONG = 160, FLAT = 1e-3;

  // ---- a plot ---------------------------------------------------------------------------------------------------------
  function plot(canvas, colours, { xs, curves, band, names, at, log }) {
    // xs and the ys of curves ([{ys, second, dash}]); band: ± around the first; at: x of the mark
    const dense = Math.min(2, window.devicePixelRatio || 1), { clientWidth: width, clientHeight: height } = canvas;
    if (!width) return [];
    if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(height * dense);
    }
    const pen = Pen.onCanvas(canvas, dense), style = colours();
    pen.clear(width, height);
    let low = Infinity, high = -Infinity;
    for (const { ys } of curves) for (const y of ys) if (Number.isFinite(y)) { low = Math.min(low, y); high = Math.max(high, y); }
    if (!(high >= low)) return [];
    const ends = [low, high];
    const flat = FLAT * Math.max(Math.abs(low), Math.abs(high)) || 1;
    const reach = high - low < flat ? Infinity : high - low; // the band is shown as far as the curve is still seen beside it
    if (band) for (const [i, off] of band.entries()) if (Number.isFinite(off)) { const y = curves[0].ys[i]; low = Math.min(low, Math.max(y - off, ends[0] - reach)); high = Math.max(high, Math.min(y + off, ends[1] + reach)); }
    if (high - low < flat) { const middle = (low + high) / 2; low = middle - flat; high = middle + flat; } // no mountains of rounding
    const gap = 0.06 * (high - low);
    low -= gap;
    high += gap;
    const room = Pen.widest(Pen.ticksUp(low, high, height - 70)), left = room + 16, right = width - Math.max(12, Pen.widest(log ? powers(xs[0], xs[xs.length - 1], (v) => 1e3 * Math.log(v)) : Pen.ticksAcross(xs[0], xs[xs.length - 1], width - left - 20)) / 2 + 4), top = 28, bottom = height - 40;
    const [from, to] = [xs[0], xs[xs.length - 1]], scale = log ? (v) => Math.log(v / from) / Math.log(to / from) : (v) => (v - from) / (to - from || 1);
    const x = (v) => left + scale(v) * (right - left), y = (v) => Math.max(top - 2, Math.min(bottom + 2, bottom - ((v - low) / (high - low)) * (bottom - top)));
    Pen.axes(pen, { left, right, top, bottom }, { low: from, high: to, to: x, ticks: log ? powers(from, to, x) : null }, { low, high, to: y }, names, style, true);
    const pieces = (ys) => { const out = []; let now = null; ys.forEach((v, i) => { if (!Number.isFinite(v)) { now = null; return; } if (!now) out.push((now = [])); now.push(x(xs[i]), y(v)); }); return out; };
    if (band && band.every(Number.isFinite)) {
      const line = [...xs.flatMap((v, i) => [x(v), y(curves[0].ys[i] + band[i])])];
      for (let i = xs.length - 1; i >= 0; i--) line.push(x(xs[i]), y(curves[0].ys[i] - band[i]));
      pen.area(line, style.accent, 0.18);
    }
    curves.slice(1).forEach(({ ys, dash }) => pen.lines(pieces(ys), { colour: style.second, width: 1.8, dash: dash || [] }));
    pen.lines(pieces(curves[0].ys), { colour: style.accent, width: 2 });
    if (at) { pen.lines([[x(at[0]), top, x(at[0]), bottom]], { colour: style.quiet, dash: [3, 3] }); pen.dot(x(at[0]), y(at[1]), 4, style.accent); }
    return pen.labels.slice();
  }

  function powers(low, high, to) {
    // powers of ten in place of even steps, two and five times them where there are few, as many as have room
    const all = [], label = (v) => Words.number(v, 2).replace(/^1 × /, "");
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) for (const m of [1, 2, 5]) all.push({ v: m * 10 ** p, m });
    const inside = all.filter(({ v }) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9)), few = inside.filter(({ m }) => m === 1);
    const values = [];
    let last = -Infinity;
    for (const { v } of few.length >= 3 ? few : inside) {
      const wide = Pen.width(label(v));
      if (to(v) - wide / 2 > last + 6) { values.push(v); last = to(v) + wide / 2; }
    }
    return { values, label };
  }

  // ---- a quantity against a parameter ---------------------------------------------------------------------------------
  function makeSweep(model, maths) {
    // computes a little in each frame, and starts again when another parameter has moved
    let key = "", xs = [], ys = [], bounds = [], next = 0, order = [];

    function restart(name, p) {
      key = name;
      xs = Array.from({ length: SAMPLES }, (_, i) => (p.scale === "log" ? p.low * (p.high / p.low) ** (i / (SAMPLES - 1)) : p.low + ((p.high - p.low) * i) / (SAMPLES - 1)));
      xs[SAMPLES - 1] = p.high;
      ys = Array(SAMPLES).fill(NaN);
      bounds = Array(SAMPLES).fill(NaN);
      next = 0;
      order = [];
      for (let step = 16; step >= 1; step /= 2) for (let i = 0; i < SAMPLES; i += step) if (!order.includes(i)) order.push(i);
    }

    function advance(inputs, along, read) {
      // whether it is complete
      const end = performance.now() + BUDGET;
      while (next < SAMPLES && performance.now() < end) {
        const i = order[next++], here = inputs.slice();
        here[along] = xs[i];
        const found = read(here);
        ys[i] = found.value;
        bounds[i] = found.bound;
      }
      return next >= SAMPLES;
    }

    function known() {
      // the points that are there, in order
      const at = ys.map((y, i) => i).filter((i) => Number.isFinite(ys[i]));
      return { xs: at.map((i) => xs[i]), ys: at.map((i) => ys[i]), band: at.map((i) => bounds[i]) };
    }

    return { is: (name) => name === key, restart, advance, known };
  }

  // ---- along a line -----------------------------------------------------------------------------------------------------
  function along(view, [from, to]) {
    // distances from the first point, and what lies under each of them
    const length = Math.hypot(...to.map((x, k) => x - from[k]));
    return Array.from({ length: ALONG + 1 }, (_, n) => {
      const w = n / ALONG, at = from.map((x, k) => x + w * (to[k] - x));
      return { distance: w * length, hit: view.nearPoint(...at) };
    });
  }

  return { plot, makeSweep, along };
})();
