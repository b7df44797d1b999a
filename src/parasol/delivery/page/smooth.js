"use strict";
// Fields between the nodes: gradients at the nodes by least squares, cubics in the cells, and boundaries without facets.

const Smooth = (() => {
  const CORNER = 0.64, CREASE = 0.8; // cosines of the angles from which on a boundary has a corner, an edge in space, and no bend
  const RIDGE = 1e-10, ENOUGH = 1.5; // neighbours for each unknown of a local fit
  const MOST_TRIANGLES = 36000, FEWER = 7000, MOST_TETRAHEDRA = 160000; // fewer where there is no graphics card

  // ---- gradients ----------------------------------------------------------------------------------------------------
  function rings(count, cells, size) {
    // the neighbours of each corner
    const out = Array.from({ length: count }, () => []);
    for (let c = 0; c < cells.length; c += size) {
      for (let i = 0; i < size; i++) for (let j = 0; j < size; j++) if (i !== j && !out[cells[c + i]].includes(cells[c + j])) out[cells[c + i]].push(cells[c + j]);
    }
    return out;
  }

  function solve(matrix, n, rights) {
    // Gaussian elimination of a symmetric positive matrix; the rights become the solutions, null where it is singular
    const least = RIDGE * matrix.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    for (let k = 0; k < n; k++) matrix[k * n + k] += least;
    for (let k = 0; k < n; k++) {
      if (!(matrix[k * n + k] > 0.5 * least)) return null;
      for (let i = k + 1; i < n; i++) {
        const factor = matrix[i * n + k] / matrix[k * n + k];
        if (!factor) continue;
        for (let j = k; j < n; j++) matrix[i * n + j] -= factor * matrix[k * n + j];
        for (const b of rights) b[i] -= factor * b[k];
      }
    }
    for (const b of rights) for (let i = n - 1; i >= 0; i--) {
      for (let j = i + 1; j < n; j++) b[i] -= matrix[i * n + j] * b[j];
      b[i] /= matrix[i * n + i];
    }
    return rights;
  }

  function makeFit(points, dimension) {
    // (corner i, its neighbours) => weights of the differences u_j - u_i in each component of the gradient, in one list, or null
    const all = (dimension * (dimension + 3)) / 2, rows = [], near = [];
    const pairs = [];
    for (let a = 0; a < dimension; a++) for (let b = a; b < dimension; b++) pairs.push([a, b]);
    return (i, around) => {
      let length = 0;
      around.forEach((j, n) => {
        const x = points[3 * j] - points[3 * i], y = points[3 * j + 1] - points[3 * i + 1], z = points[3 * j + 2] - points[3 * i + 2];
        const row = rows[n] || (rows[n] = new Float64Array(all));
        row[0] = x;
        if (dimension > 1) row[1] = y;
        if (dimension > 2) row[2] = z;
        near[n] = Math.sqrt(x * x + y * y + z * z);
        length += near[n];
      });
      length = length / around.length || 1;
      for (let n = 0; n < around.length; n++) {
        // the monomials of first and second degree, and a weight that falls with the square of the distance
        const row = rows[n];
        for (let k = 0; k < dimension; k++) row[k] /= length;
        for (let m = 0; m < pairs.length; m++) row[dimension + m] = row[pairs[m][0]] * row[pairs[m][1]];
        near[n] = (length / (near[n] || length)) ** 2;
      }
      for (const size of around.length >= all ? [all, dimension] : [dimension]) {
        if (around.length < size) return null;
        const matrix = new Float64Array(size * size);
        for (let n = 0; n < around.length; n++) for (let a = 0; a < size; a++) { const w = near[n] * rows[n][a]; for (let b = 0; b < size; b++) matrix[a * size + b] += w * rows[n][b]; }
        const rights = solve(matrix, size, Array.from({ length: dimension }, (_, k) => { const b = new Float64Array(size); b[k] = 1; return b; }));
        if (!rights) continue;
        const out = [];
        for (let n = 0; n < around.length; n++) for (const b of rights) { let sum = 0; for (let a = 0; a < size; a++) sum += b[a] * rows[n][a]; out.push((near[n] * sum) / length); }
        return out;
      }
      return null;
    };
  }

  function gradients(points, dimension, cells) {
    // (values at the corners) => their gradients, three numbers for each corner
    const count = points.length / 3, near = rings(count, cells, dimension + 1), few = (ENOUGH * dimension * (dimension + 3)) / 2, fit = makeFit(points, dimension);
    const starts = new Uint32Array(count + 1), places = [], weights = [];
    for (let i = 0; i < count; i++) {
      const around = near[i].slice();
      if (around.length < few) for (const j of near[i]) for (const k of near[j]) if (k !== i && !around.includes(k)) around.push(k);
      const found = around.length ? fit(i, around) : null;
      if (found) { for (const j of around) places.push(j); for (const w of found) weights.push(w); }
      starts[i + 1] = places.length;
    }
    const at = Uint32Array.from(places), by = Float64Array.from(weights), out = new Float64Array(3 * count);
    return (values) => {
      for (let i = 0; i < count; i++) {
        let x = 0, y = 0, z = 0;
        for (let n = starts[i], w = n * dimension; n < starts[i + 1]; n++, w += dimension) {
          const more = values[at[n]] - values[i];
          x += by[w] * more;
          if (dimension > 1) y += by[w + 1] * more;
          if (dimension > 2) z += by[w + 2] * more;
        }
        out[3 * i] = x;
        out[3 * i + 1] = y;
        out[3 * i + 2] = z;
      }
      return out;
    };
  }

  // ---- cubics on a triangle -----------------------------------------------------------------------------------------
  // control values: the corners a b c, two on each edge (ab ba bc cb ca ac), one inside; exact for quadratics
  const EDGES = [[0, 1], [1, 0], [1, 2], [2, 1], [2, 0], [0, 2]];

  function lattice(level) {
    // weights of the ten control values at the points of a triangle cut into level² parts, and these parts
    const points = [], parts = [], place = (i, j) => (i * (i + 1)) / 2 + j;
    for (let i = 0; i <= level; i++) for (let j = 0; j <= i; j++) {
      const a = 1 - i / level, c = j / level, b = i / level - c;
      points.push([a * a * a, b * b * b, c * c * c, 3 * a * a * b, 3 * a * b * b, 3 * b * b * c, 3 * b * c * c, 3 * c * c * a, 3 * c * a * a, 6 * a * b * c]);
      if (i < level) parts.push(place(i, j), place(i + 1, j), place(i + 1, j + 1));
      if (i < level && j < i) parts.push(place(i, j), place(i + 1, j + 1), place(i, j + 1));
    }
    return { weights: Float64Array.from(points.flat()), parts, count: points.length };
  }

  function inner(c) {
    const edges = (c[3] + c[4] + c[5] + c[6] + c[7] + c[8]) / 6, corners = (c[0] + c[1] + c[2]) / 3;
    return edges + (edges - corners) / 2;
  }

  function patches(points, triangles, offsets, level) {
    // every triangle cut into level² flat ones; offsets: from a corner to the control points of its edges, 18 for each triangle
    const count = triangles.length / 3, { weights, parts, count: per } = lattice(level), c = new Float64Array(10);
    const indices = new Uint32Array(count * parts.length), positions = new Float32Array(3 * count * per);
    const spread = (t, out, stride, k) => {
      c[9] = inner(c);
      for (let n = 0, w = 0; n < per; n++) {
        let sum = 0;
        for (let m = 0; m < 10; m++) sum += weights[w++] * c[m];
        out[stride * (t * per + n) + k] = sum;
      }
    };
    for (let t = 0; t < count; t++) {
      parts.forEach((p, n) => { indices[t * parts.length + n] = t * per + p; });
      for (let k = 0; k < 3; k++) {
        for (let n = 0; n < 3; n++) c[n] = points[3 * triangles[3 * t + n] + k];
        for (let e = 0; e < 6; e++) c[3 + e] = c[EDGES[e][0]] + offsets[18 * t + 3 * e + k];
        spread(t, positions, 3, k);
      }
    }
    const controls = new Float32Array(10 * count);
    function values(u, g, out = new Float32Array(count * per)) {
      // at the points of all lattices; the control values are left in `controls`
      for (let t = 0; t < count; t++) {
        const a = triangles[3 * t], b = triangles[3 * t + 1], d = triangles[3 * t + 2];
        c[0] = u[a]; c[1] = u[b]; c[2] = u[d];
        for (let e = 0, o = 18 * t; e < 6; e++, o += 3) {
          const i = 3 * triangles[3 * t + EDGES[e][0]];
          c[3 + e] = c[EDGES[e][0]] + g[i] * offsets[o] + g[i + 1] * offsets[o + 1] + g[i + 2] * offsets[o + 2];
        }
        spread(t, out, 1, 0);
        controls.set(c, 10 * t);
      }
      return out;
    }
    // which points of the lattice lie on the edge from corner i to the next one
    const side = Array.from({ length: level + 1 }, (_, n) => [(n * (n + 1)) / 2, (level * (level + 1)) / 2 + n, ((level - n) * (level - n + 1)) / 2 + level - n]);
    const edge = (t, i) => side.map((places) => t * per + places[i]);
    return { positions, indices, values, controls, edge, per, level };
  }

  const straight = (points, a, b, out, at) => { for (let k = 0; k < 3; k++) out[at + k] = (points[3 * b + k] - points[3 * a + k]) / 3; };

  // ---- in the plane -------------------------------------------------------------------------------------------------
  function plane(points, cells, rim, curved) {
    // {positions, indices, values(u): at the fine corners, rim: lines of fine corners, onRim: for each whether it is on one}
    const count = cells.length / 3, level = Math.max(1, Math.min(6, Math.floor(Math.sqrt(MOST_TRIANGLES / count))));
    const offsets = new Float64Array(18 * count), sides = new Map(), key = (a, b) => `${Math.min(a, b)},${Math.max(a, b)}`;
    const bent = new Uint8Array(count), bends = curved ? tangents(points, rim) : new Map();
    for (let e = 0; e < rim.length; e += 2) sides.set(key(rim[e], rim[e + 1]), null);
    for (let t = 0; t < count; t++) for (let e = 0; e < 6; e++) {
      const a = cells[3 * t + EDGES[e][0]], b = cells[3 * t + EDGES[e][1]], name = key(a, b), at = 18 * t + 3 * e;
      straight(points, a, b, offsets, at);
      if (!sides.has(name)) continue;
      if (e % 2 === 0) sides.set(name, [t, e / 2]);
      const bend = bends.get(a);
      if (!bend) continue;
      const length = Math.hypot(offsets[at], offsets[at + 1]), along = bend[0] * offsets[at] + bend[1] * offsets[at + 1] > 0 ? length : -length;
      bent[t] = 1;
      offsets[at] = along * bend[0];
      offsets[at + 1] = along * bend[1];
    }
    const fine = patches(points, cells, offsets, level), slope = gradients(points, 2, cells);
    const values = (u) => {
      const g = slope(u);
      for (const [i, [x, y, before, after, h, k]] of bends) {
        // along the boundary the values there know best, above all where they are given
        const s = ((u[i] - u[before]) * k / h + (u[after] - u[i]) * h / k) / (h + k), more = s - (g[3 * i] * x + g[3 * i + 1] * y);
        g[3 * i] += more * x;
        g[3 * i + 1] += more * y;
      }
      return fine.values(u, g);
    };
    const lines = Array.from(sides.values()).filter(Boolean).map(([t, i]) => fine.edge(t, i)), onRim = new Uint8Array(fine.positions.length / 3);
    for (const line of lines) for (const i of line) onRim[i] = 1;
    return { positions: fine.positions, indices: fine.indices, values, rim: lines, onRim, parts: level * level, bent, controls: fine.controls, per: fine.per, edge: fine.edge };
  }

  function tangents(points, rim) {
    // at corners of the boundary where it bends smoothly: its direction, its neighbours and their distances
    const near = new Map(), out = new Map();
    for (let e = 0; e < rim.length; e += 2) for (const [a, b] of [[rim[e], rim[e + 1]], [rim[e + 1], rim[e]]]) near.set(a, [...(near.get(a) || []), b]);
    for (const [i, others] of near) {
      if (others.length !== 2) continue;
      const [before, after] = others, d = (a, b) => [points[3 * b] - points[3 * a], points[3 * b + 1] - points[3 * a + 1]];
      const p = d(before, i), q = d(i, after), h = Math.hypot(...p), k = Math.hypot(...q);
      if ((p[0] * q[0] + p[1] * q[1]) / (h * k) < CORNER) continue;
      const t = [(p[0] * k) / h + (q[0] * h) / k, (p[1] * k) / h + (q[1] * h) / k], size = Math.hypot(...t);
      out.set(i, [t[0] / size, t[1] / size, before, after, h, k]);
    }
    return out;
  }

  // ---- in space -----------------------------------------------------------------------------------------------------
  function cross(a, b) { return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]; }
  function unit(a) { const size = Math.hypot(...a); return size > 0 ? a.map((x) => x / size) : [0, 0, 0]; }
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

  function normals(points, rim) {
    // for each corner of each triangle of the skin the normal, over edges that are no creases
    const at = (i) => [points[3 * i], points[3 * i + 1], points[3 * i + 2]], minus = (a, b) => a.map((x, k) => x - b[k]);
    const count = rim.length / 3, across = [], around = new Map();
    for (let t = 0; t < count; t++) {
      const [a, b, c] = [0, 1, 2].map((k) => at(rim[3 * t + k]));
      across.push(cross(minus(b, a), minus(c, a)));
      for (let k = 0; k < 3; k++) around.set(rim[3 * t + k], [...(around.get(rim[3 * t + k]) || []), t]);
    }
    const flat = across.map(unit);
    return Array.from({ length: 3 * count }, (_, n) => {
      const t = Math.floor(n / 3), sum = [0, 0, 0];
      for (const s of around.get(rim[n])) if (dot(flat[s], flat[t]) > CREASE) for (let k = 0; k < 3; k++) sum[k] += flat[s][k];
      return unit(sum);
    });
  }

  function skin(points, rim, curved) {
    // offsets of the skin's edges, bent as the normals say, and the same on both sides of an edge
    const count = rim.length / 3, offsets = new Float64Array(18 * count), facing = normals(points, rim), seen = new Map(), bent = new Map();
    for (let t = 0; t < count; t++) for (let e = 0; e < 6; e++) {
      const key = `${rim[3 * t + EDGES[e][0]]},${rim[3 * t + EDGES[e][1]]}`;
      seen.set(key, [...(seen.get(key) || []), 3 * t + EDGES[e][0]]);
    }
    const creases = [];
    for (let t = 0; t < count; t++) for (let e = 0; e < 6; e++) {
      const a = rim[3 * t + EDGES[e][0]], b = rim[3 * t + EDGES[e][1]], at = 18 * t + 3 * e, [n, m] = seen.get(`${a},${b}`).map((i) => facing[i]);
      straight(points, a, b, offsets, at);
      const sharp = m && dot(n, m) < CREASE;
      if (sharp && a < b && e % 2 === 0) creases.push([t, e / 2]);
      if (!curved || !m) continue;
      const way = [offsets[at], offsets[at + 1], offsets[at + 2]];
      let to;
      if (dot(n, m) > 0.9999) to = way.map((x, k) => x - n[k] * dot(way, n));
      else { const along = unit(cross(n, m)), s = dot(way, along); to = Math.abs(s) > 0.5 * Math.hypot(...way) ? along.map((x) => x * s) : way; }
      for (let k = 0; k < 3; k++) offsets[at + k] = to[k];
      bent.set(`${a},${b}`, to);
    }
    return { offsets, facing, bent, creases };
  }

  function solid(points, cells, rim, { curved, smooth }) {
    // the skin in fine triangles, the inside in fine tetrahedra, both with values(u); not smooth: as the cells are
    const { offsets, facing, bent, creases } = skin(points, rim, curved), level = smooth ? Math.max(1, Math.min(4, Math.floor(Math.sqrt((Paint.software() ? FEWER : MOST_TRIANGLES) / (rim.length / 3))))) : 1;
    const outside = patches(points, rim, offsets, level), slope = gradients(points, 3, cells);
    const shading = new Float32Array(outside.positions.length);
    for (let t = 0, { per } = outside; t < rim.length / 3; t++) for (let i = 0, n = 0; i <= level; i++) for (let j = 0; j <= i; j++, n++) {
      const w = [1 - i / level, (i - j) / level, j / level];
      for (let k = 0; k < 3; k++) shading[3 * (t * per + n) + k] = w[0] * facing[3 * t][k] + w[1] * facing[3 * t + 1][k] + w[2] * facing[3 * t + 2][k];
    }
    const inside = smooth && 8 * (cells.length / 4) <= MOST_TETRAHEDRA ? halved(points, cells, bent, rim) : { points, cells, onRim: flags(points.length / 3, new Set(rim)), values: (u) => Float32Array.from(u), slopes: (g) => g };
    return {
      outside: { positions: outside.positions, indices: outside.indices, normals: shading, creases: creases.map(([t, i]) => outside.edge(t, i)) }, inside,
      values(u) { const g = slope(u); return { outside: outside.values(u, g), inside: inside.values(u, g), slopes: () => inside.slopes(g) }; },
    };
  }

  const flags = (count, set) => Uint8Array.from({ length: count }, (_, i) => (set.has(i) ? 1 : 0));

  function halved(points, cells, bent, rim) {
    // every edge cut in two, where the cubic along it is in its middle
    const count = points.length / 3, middles = new Map(), ends = [], offsets = [], more = [];
    const middle = (a, b) => {
      if (a > b) [a, b] = [b, a];
      const key = a * count + b;
      if (middles.has(key)) return middles.get(key);
      const plain = [0, 1, 2].map((k) => (points[3 * b + k] - points[3 * a + k]) / 3), one = bent.get(`${a},${b}`) || plain, other = bent.get(`${b},${a}`) || plain.map((x) => -x);
      for (let k = 0; k < 3; k++) more.push((points[3 * a + k] + points[3 * b + k]) / 2 + 0.375 * (one[k] + other[k]));
      ends.push(a, b);
      offsets.push(...one, ...other);
      const at = count + middles.size;
      middles.set(key, at);
      return at;
    };
    const fine = new Uint32Array(8 * cells.length);
    for (let t = 0, n = 0; t < cells.length; t += 4) {
      const [a, b, c, d] = cells.subarray(t, t + 4), ab = middle(a, b), ac = middle(a, c), ad = middle(a, d), bc = middle(b, c), bd = middle(b, d), cd = middle(c, d);
      for (const four of [[a, ab, ac, ad], [b, ab, bc, bd], [c, ac, bc, cd], [d, ad, bd, cd], [ab, cd, ac, ad], [ab, cd, ad, bd], [ab, cd, bd, bc], [ab, cd, bc, ac]]) { fine.set(four, n); n += 4; }
    }
    const by = Float64Array.from(offsets), at = Uint32Array.from(ends), all = new Float32Array(3 * (count + middles.size));
    all.set(points);
    all.set(more, 3 * count);
    const out = new Float32Array(all.length / 3);
    function values(u, g) {
      for (let i = 0; i < count; i++) out[i] = u[i];
      for (let e = 0, n = count; n < out.length; e++, n++) {
        const a = at[2 * e], b = at[2 * e + 1];
        let sum = 0;
        for (let k = 0; k < 3; k++) sum += g[3 * a + k] * by[6 * e + k] + g[3 * b + k] * by[6 * e + 3 + k];
        out[n] = (u[a] + u[b]) / 2 + 0.375 * sum;
      }
      return out;
    }
    function slopes(g) {
      const all_ = new Float32Array(all.length);
      all_.set(g);
      for (let e = 0; e < at.length / 2; e++) for (let k = 0; k < 3; k++) all_[3 * (count + e) + k] = (g[3 * at[2 * e] + k] + g[3 * at[2 * e + 1] + k]) / 2;
      return all_;
    }
    const onRim = new Uint8Array(out.length);
    onRim.set(flags(count, new Set(rim)));
    for (let t = 0; t < rim.length; t += 3) for (const [i, j] of [[0, 1], [1, 2], [0, 2]]) {
      const a = Math.min(rim[t + i], rim[t + j]), b = Math.max(rim[t + i], rim[t + j]);
      onRim[middles.get(a * count + b)] = 1; // of edges on the boundary, not of those from one side of it to another
    }
    return { points: all, cells: fine, onRim, values, slopes };
  }

  return { gradients, plane, solid };
})();
