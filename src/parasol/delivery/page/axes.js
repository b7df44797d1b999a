"use strict";
// What is drawn over the picture: the axes of a solid, arrows, the line of a probe.

const Axes = (() => {
  const HEAD = 4.5, SHORTEST = 5; // pixels: shorter ones are specks

  function silhouette(turn, axis) {
    // the two edges of a box along an axis that bound what is seen of it, as signs of the two other axes
    const others = [0, 1, 2].filter((k) => k !== axis), towards = others.map((k) => (turn[6 + k] >= 0 ? 1 : -1));
    return [[towards[0], -towards[1]], [-towards[0], towards[1]]].map((signs) => ({ others, signs }));
  }

  function box(pen, { lower, upper, names, turn, place }, colours) {
    // one edge with ticks for each axis: below for those that lie, at the left for the one that stands
    const centre = place(lower.map((x, k) => (x + upper[k]) / 2)), taken = [];
    const free = (x, y, w) => taken.every(([a, b, c]) => Math.abs(x - a) > (w + c) / 2 + 6 || Math.abs(y - b) > 15);
    for (let axis = 0; axis < 3; axis++) {
      const ends = silhouette(turn, axis).map(({ others, signs }) => [lower[axis], upper[axis]].map((v) => {
        const p = [0, 0, 0];
        p[axis] = v;
        others.forEach((k, n) => { p[k] = signs[n] > 0 ? upper[k] : lower[k]; });
        return { p, at: place(p) };
      }));
      const key = axis === 2 ? (e) => e[0].at[0] + e[1].at[0] : (e) => -e[0].at[1] - e[1].at[1];
      const [from, to] = key(ends[0]) <= key(ends[1]) ? ends[0] : ends[1];
      const long = Math.hypot(to.at[0] - from.at[0], to.at[1] - from.at[1]);
      pen.lines([[...from.at, ...to.at]], { colour: colours.text, width: 1, alpha: 0.8 });
      if (long < 40) { label(pen, names[axis], from.at, to.at, centre, 26, colours); continue; }
      const ticks = Geometry.ticks(lower[axis], upper[axis], Math.max(2, Math.min(5, Math.floor(long / 45))));
      for (const v of ticks.values) {
        const w = (v - lower[axis]) / (upper[axis] - lower[axis]), at = [0, 1].map((k) => from.at[k] + w * (to.at[k] - from.at[k])), out = outward(from.at, to.at, centre);
        const x = at[0] + 16 * out[0], y = at[1] + 13 * out[1], text = ticks.label(v), wide = Pen.width(text);
        pen.lines([[...at, at[0] + 5 * out[0], at[1] + 5 * out[1]]], { colour: colours.text, width: 1 });
        if (!free(x, y, wide)) continue;
        taken.push([x, y, wide]);
        pen.text(text, x, y, { colour: colours.text });
      }
      label(pen, names[axis], from.at, to.at, centre, 38, colours);
    }
  }

  function outward(a, b, centre) {
    const along = [b[0] - a[0], b[1] - a[1]], size = Math.hypot(...along) || 1, out = [-along[1] / size, along[0] / size];
    const side = (centre[0] - (a[0] + b[0]) / 2) * out[0] + (centre[1] - (a[1] + b[1]) / 2) * out[1];
    return side > 0 ? [-out[0], -out[1]] : out;
  }

  function label(pen, name, a, b, centre, far, colours) {
    // beside the middle of the axis, or above its end where there is no room beside it
    const out = outward(a, b, centre), x = (a[0] + b[0]) / 2 + far * out[0], style = { colour: colours.text, size: 13, slanted: true };
    if (x >= 8) pen.text(name, x, (a[1] + b[1]) / 2 + far * out[1], style);
    else pen.text(name, Math.max(8, a[1] < b[1] ? a[0] : b[0]), Math.min(a[1], b[1]) - 12, style);
  }

  function arrows(pen, list) {
    // {at, way} in pixels: pale beneath, dark above, so that they are seen on every colour
    const shafts = [], heads = [];
    for (const { at: [x, y], way: [u, v] } of list) {
      const size = Math.hypot(u, v);
      if (size < SHORTEST) continue;
      const tip = [x + u / 2, y + v / 2], foot = [x - u / 2, y - v / 2], h = Math.min(HEAD, 0.35 * size), e = [u / size, v / size];
      shafts.push([...foot, ...tip]);
      heads.push([tip[0] - h * (e[0] + 0.6 * e[1]), tip[1] - h * (e[1] - 0.6 * e[0]), ...tip, tip[0] - h * (e[0] - 0.6 * e[1]), tip[1] - h * (e[1] + 0.6 * e[0])]);
    }
    for (const [colour, width] of [["#ffffff", 2.8], ["#161616", 1.2]]) pen.lines([...shafts, ...heads], { colour, width, alpha: colour === "#ffffff" ? 0.75 : 1 });
  }

  function probeLine(pen, [a, b]) {
    for (const [colour, width] of [["#ffffff", 4], ["#161616", 1.6]]) pen.lines([[...a, ...b]], { colour, width });
    for (const [p, name, q] of [[a, "A", b], [b, "B", a]]) {
      const size = Math.hypot(p[0] - q[0], p[1] - q[1]) || 1, x = p[0] + (12 * (p[0] - q[0])) / size, y = p[1] + (12 * (p[1] - q[1])) / size;
      pen.dot(p[0], p[1], 4, "#161616");
      pen.dot(x, y, 8, "#ffffff");
      pen.text(name, x, y, { colour: "#161616", size: 11 });
    }
  }

  return { box, arrows, probeLine, SHORTEST };
})();
