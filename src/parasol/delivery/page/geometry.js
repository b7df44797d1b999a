"use strict";
// Where things are: the triangle under a point, the cut of a solid with a plane, the first thing a ray meets.

const Geometry = (() => {
  // ---- in the plane -------------------------------------------------------------------------------------------------
  function locator(points, triangles) {
    // a grid of boxes with the triangles that touch each; answers with the corners and their weights
    const count = triangles.length / 3, side = Math.max(1, Math.ceil(Math.sqrt(count / 2)));
    let low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    for (let i = 0; i < points.length; i++) {
      low[i % 2] = Math.min(low[i % 2], points[i]);
      high[i % 2] = Math.max(high[i % 2], points[i]);
    }
    const box = (value, axis) => Math.min(side - 1, Math.max(0, Math.floor(((value - low[axis]) / (high[axis] - low[axis] || 1)) * side)));
    const boxes = Array.from({ length: side * side }, () => []);
    for (let t = 0; t < count; t++) {
      const xs = [0, 1, 2].map((k) => points[2 * triangles[3 * t + k]]), ys = [0, 1, 2].map((k) => points[2 * triangles[3 * t + k] + 1]);
      for (let i = box(Math.min(...xs), 0); i <= box(Math.max(...xs), 0); i++) {
        for (let j = box(Math.min(...ys), 1); j <= box(Math.max(...ys), 1); j++) boxes[i * side + j].push(t);
      }
    }
    return (x, y) => {
      for (const t of boxes[box(x, 0) * side + box(y, 1)]) {
        const corners = [0, 1, 2].map((k) => triangles[3 * t + k]);
        const weights = inTriangle(x, y, ...corners.flatMap((i) => [points[2 * i], points[2 * i + 1]]));
        if (weights) return { corners, weights };
      }
      return null;
    };
  }

  function inTriangle(x, y, ax, ay, bx, by, cx, cy) {
    const area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay);
    const b = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area, c = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area;
    return b >= -1e-9 && c >= -1e-9 && b + c <= 1 + 1e-9 ? [1 - b - c, b, c] : null;
  }

  // ---- in space -----------------------------------------------------------------------------------------------------
  function cut(points, tetrahedra, axis, height) {
    // triangles of the cut, each corner on an edge: at `ends[2i]` with weight 1 − w, at `ends[2i + 1]` with weight w
    const ends = [], weights = [], positions = [];
    const corner = (i, j) => {
      const a = points[3 * i + axis] - height, b = points[3 * j + axis] - height, w = a / (a - b);
      ends.push(i, j);
      weights.push(w);
      for (let k = 0; k < 3; k++) positions.push(k === axis ? height : points[3 * i + k] + w * (points[3 * j + k] - points[3 * i + k]));
    };
    for (let t = 0; t < tetrahedra.length; t += 4) {
      const below = [], above = [];
      for (let k = 0; k < 4; k++) (points[3 * tetrahedra[t + k] + axis] <= height ? below : above).push(tetrahedra[t + k]);
      if (!below.length || !above.length) continue;
      if (below.length === 2) {
        const [a, b] = below, [c, d] = above;
        for (const [i, j] of [[a, c], [a, d], [b, d], [a, c], [b, d], [b, c]]) corner(i, j);
      } else {
        const [one, others] = below.length === 1 ? [below[0], above] : [above[0], below];
        for (const other of others) corner(one, other);
      }
    }
    return { ends: Uint32Array.from(ends), weights: Float32Array.from(weights), positions: Float32Array.from(positions) };
  }

  function rotation(azimuth, elevation) {
    // rows are the directions to the right, up, and towards the viewer; z points up at elevation 0
    const ca = Math.cos(azimuth), sa = Math.sin(azimuth), ce = Math.cos(elevation), se = Math.sin(elevation);
    return [-sa, ca, 0, -se * ca, -se * sa, ce, ce * ca, ce * sa, se];
  }

  function firstHit(triangles, position, x, y, turn, keep) {
    // of triangles given by their number and corner positions, the one nearest to the viewer under (x, y) of the screen
    let best = null;
    for (let t = 0; t < triangles; t++) {
      const seen = [0, 1, 2].map((k) => turned(turn, position(t, k)));
      const weights = inTriangle(x, y, ...seen.flatMap((p) => [p[0], p[1]]));
      if (!weights) continue;
      const depth = weights[0] * seen[0][2] + weights[1] * seen[1][2] + weights[2] * seen[2][2];
      if (best && best.depth >= depth) continue;
      const at = [0, 1, 2].map((axis) => weights.reduce((sum, w, k) => sum + w * position(t, k)[axis], 0));
      if (keep(at)) best = { triangle: t, weights, depth, at };
    }
    return best;
  }

  function turned(turn, p) {
    return [0, 1, 2].map((row) => turn[3 * row] * p[0] + turn[3 * row + 1] * p[1] + turn[3 * row + 2] * p[2]);
  }

  // ---- round numbers for axes ---------------------------------------------------------------------------------------
  function ticks(low, high, most) {
    const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * (1 - 1e-9));
    const out = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) out.push(k * step);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (Math.abs(step / power - 2.5) < 1e-9 ? 1 : 0));
    const size = Math.max(Math.abs(low), Math.abs(high));
    const label = (value) => {
      if (size >= 1e5 || size < 1e-3) return value === 0 ? "0" : value.toExponential(Math.max(1, Math.min(6, Math.ceil(Math.log10(size / step)))));
      return (Math.abs(value) < 1e-12 * size ? 0 : value).toFixed(Math.min(digits, 12));
    };
    return { values: out, step, label: (value) => label(value).replace("-", "−") };
  }

  return { locator, cut, rotation, turned, firstHit, ticks };
})();
