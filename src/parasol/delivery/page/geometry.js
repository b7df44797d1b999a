"use strict";
// Where things are: the triangle under a point, the first thing a ray meets, round numbers for axes.

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
  function solidLocator(points, tetrahedra) {
    // as in the plane: a grid of boxes with the tetrahedra that touch each; three numbers for each point
    const count = tetrahedra.length / 4, side = Math.max(1, Math.min(40, Math.ceil(Math.cbrt(count / 6)))), low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (let i = 0; i < points.length; i++) { low[i % 3] = Math.min(low[i % 3], points[i]); high[i % 3] = Math.max(high[i % 3], points[i]); }
    const box = (value, axis) => Math.min(side - 1, Math.max(0, Math.floor(((value - low[axis]) / (high[axis] - low[axis] || 1)) * side))), boxes = Array.from({ length: side ** 3 }, () => []);
    for (let t = 0; t < count; t++) {
      const from = [0, 0, 0], to = [0, 0, 0];
      for (let axis = 0; axis < 3; axis++) {
        const all = [0, 1, 2, 3].map((k) => points[3 * tetrahedra[4 * t + k] + axis]);
        from[axis] = box(Math.min(...all), axis);
        to[axis] = box(Math.max(...all), axis);
      }
      for (let i = from[0]; i <= to[0]; i++) for (let j = from[1]; j <= to[1]; j++) for (let k = from[2]; k <= to[2]; k++) boxes[(i * side + j) * side + k].push(t);
    }
    const at = (i) => [points[3 * i], points[3 * i + 1], points[3 * i + 2]], minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    const volume = (a, b, c) => a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
    return (x, y, z) => {
      if ([x, y, z].some((v, k) => v < low[k] || v > high[k])) return null;
      for (const t of boxes[(box(x, 0) * side + box(y, 1)) * side + box(z, 2)]) {
        const corners = [0, 1, 2, 3].map((k) => tetrahedra[4 * t + k]), [a, b, c, d] = corners.map(at), e = [minus(b, a), minus(c, a), minus(d, a)], p = minus([x, y, z], a);
        const all = volume(...e), s = [volume(p, e[1], e[2]) / all, volume(e[0], p, e[2]) / all, volume(e[0], e[1], p) / all], rest = 1 - s[0] - s[1] - s[2];
        if (rest >= -1e-6 && s.every((w) => w >= -1e-6)) return { corners, weights: [rest, ...s] };
      }
      return null;
    };
  }

  function rotation(azimuth, elevation) {
    // rows are the directions to the right, up, and towards the viewer; z points up at elevation 0
    const ca = Math.cos(azimuth), sa = Math.sin(azimuth), ce = Math.cos(elevation), se = Math.sin(elevation);
    return [-sa, ca, 0, -se * ca, -se * sa, ce, ce * ca, ce * sa, se];
  }

  function firstHit(indices, position, x, y, turn, keep) {
    // of triangles, three corners each, the one nearest to the viewer under (x, y) of the screen; position: three numbers each
    const at = (i, row) => turn[3 * row] * position[3 * i] + turn[3 * row + 1] * position[3 * i + 1] + turn[3 * row + 2] * position[3 * i + 2];
    const count = position.length / 3, across = new Float64Array(count), up = new Float64Array(count);
    for (let i = 0; i < count; i++) { across[i] = at(i, 0); up[i] = at(i, 1); }
    let best = null;
    for (let n = 0, most = indices ? indices.length : count; n < most; n += 3) {
      const a = indices ? indices[n] : n, b = indices ? indices[n + 1] : n + 1, c = indices ? indices[n + 2] : n + 2;
      if ((across[a] < x && across[b] < x && across[c] < x) || (across[a] > x && across[b] > x && across[c] > x)) continue;
      if ((up[a] < y && up[b] < y && up[c] < y) || (up[a] > y && up[b] > y && up[c] > y)) continue;
      const weights = inTriangle(x, y, across[a], up[a], across[b], up[b], across[c], up[c]);
      if (!weights) continue;
      const corners = [a, b, c], depth = corners.reduce((sum, i, k) => sum + weights[k] * at(i, 2), 0);
      if (best && best.depth >= depth) continue;
      const place = [0, 1, 2].map((axis) => corners.reduce((sum, i, k) => sum + weights[k] * position[3 * i + axis], 0));
      if (keep(place)) best = { corners, weights, depth, at: place };
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
    const size = Math.max(Math.abs(low), Math.abs(high)), last = Math.floor(Math.log10(step) + 1e-9) - (Math.abs(step / power - 2.5) < 1e-9 ? 1 : 0);
    const label = (value) => {
      if (size >= 1e5 || size < 1e-3) {
        if (Math.abs(value) < 1e-12 * size) return "0";
        const [mantissa, exponent] = value.toExponential(Math.max(0, Math.min(8, Math.floor(Math.log10(Math.abs(value)) + 1e-9) - last))).split("e");
        return `${mantissa}e${Number(exponent)}`;
      }
      return (Math.abs(value) < 1e-12 * size ? 0 : value).toFixed(Math.min(Math.max(0, -last), 12));
    };
    return { values: out, step, label: (value) => label(value).replaceAll("-", "−") };
  }

  return { locator, solidLocator, rotation, turned, firstHit, ticks };
})();
