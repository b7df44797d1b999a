"use strict";
// Lines and surfaces of equal values.

const Contours = (() => {
  const NEAR = 0.005; // of the distance of two levels: values on the boundary so near to a level may be that level and rounding
  const NEAR_SPAN = 0.02; // the same, of the range of a field in space

  function lines(positions, indices, values, level, step, rim) {
    // ends of the pieces of a line in the plane, four numbers each; rim: for each corner whether it lies on the boundary
    const out = [], cut = (i, j) => {
      const w = (level - values[i]) / (values[j] - values[i]);
      out.push(positions[3 * i] + w * (positions[3 * j] - positions[3 * i]), positions[3 * i + 1] + w * (positions[3 * j + 1] - positions[3 * i + 1]));
    };
    for (let n = 0; n < indices.length; n += 3) {
      const a = indices[n], b = indices[n + 1], c = indices[n + 2], u = values[a], v = values[b], w = values[c];
      const one = u > level, two = v > level, three = w > level;
      if (one === two && two === three) continue;
      if (rim && beside([a, b, c], [u, v, w], level, NEAR * step, rim)) continue;
      if (one !== two) cut(a, b);
      if (two !== three) cut(b, c);
      if (three !== one) cut(c, a);
    }
    return out;
  }

  function beside(corners, values, level, near, rim) {
    // whether the level is crossed only by the rounding of values on the boundary that are that level: all others lie on one side
    let above = 0, below = 0;
    for (let k = 0; k < corners.length; k++) {
      if (rim[corners[k]] && Math.abs(values[k] - level) < near) continue;
      if (values[k] > level) above += 1; else below += 1;
    }
    return above === 0 || below === 0;
  }

  function joined(pieces) {
    // pieces of lines, four numbers each, put together to long ones
    const key = (i) => `${Math.round(2e3 * pieces[i])},${Math.round(2e3 * pieces[i + 1])}`, ends = new Map(), used = new Uint8Array(pieces.length / 4);
    const put = (name, end) => { const list = ends.get(name); if (list) list.push(end); else ends.set(name, [end]); };
    for (let i = 0; i < pieces.length; i += 4) { put(key(i), i); put(key(i + 2), i + 2); }
    const walk = (end, line) => {
      // from an end of a piece on, as far as it goes; ends are places in the list
      for (;;) {
        const next = ends.get(key(end)).find((one) => !used[one >> 2]);
        if (next === undefined) return line;
        used[next >> 2] = 1;
        end = next % 4 === 0 ? next + 2 : next - 2;
        line.push(pieces[end], pieces[end + 1]);
      }
    };
    const out = [];
    for (let i = 0; i < pieces.length; i += 4) {
      if (used[i >> 2]) continue;
      used[i >> 2] = 1;
      const forth = walk(i + 2, [pieces[i], pieces[i + 1], pieces[i + 2], pieces[i + 3]]), back = walk(i, []), line = [];
      for (let k = back.length - 2; k >= 0; k -= 2) line.push(back[k], back[k + 1]);
      out.push([...line, ...forth]);
    }
    return out;
  }

  function cut(points, tetrahedra, heights, rim = null, span = 0) {
    // triangles where heights are zero, each corner on an edge: at `ends[2i]` with weight 1 − w, at `ends[2i + 1]` with weight w;
    // rim: for each corner whether it lies on the boundary, where heights that are tiny beside the span are zero
    const ends = [], weights = [], positions = [];
    const corner = (i, j) => {
      const w = heights[i] / (heights[i] - heights[j]);
      ends.push(i, j);
      weights.push(w);
      for (let k = 0; k < 3; k++) positions.push(points[3 * i + k] + w * (points[3 * j + k] - points[3 * i + k]));
    };
    for (let t = 0; t < tetrahedra.length; t += 4) {
      const a = tetrahedra[t], b = tetrahedra[t + 1], c = tetrahedra[t + 2], d = tetrahedra[t + 3];
      const one = heights[a] <= 0, two = heights[b] <= 0, three = heights[c] <= 0, four = heights[d] <= 0;
      if (one === two && two === three && three === four) continue;
      if (rim && beside([a, b, c, d], [heights[a], heights[b], heights[c], heights[d]], 0, NEAR_SPAN * span, rim)) continue;
      const below = [], above = [];
      (one ? below : above).push(a);
      (two ? below : above).push(b);
      (three ? below : above).push(c);
      (four ? below : above).push(d);
      if (below.length === 2) {
        const [p, q] = below, [r, s] = above;
        for (const [i, j] of [[p, r], [p, s], [q, s], [p, r], [q, s], [q, r]]) corner(i, j);
      } else {
        const [single, others] = below.length === 1 ? [below[0], above] : [above[0], below];
        for (const other of others) corner(single, other);
      }
    }
    return { ends: Uint32Array.from(ends), weights: Float32Array.from(weights), positions: Float32Array.from(positions) };
  }

  function trace(positions, indices, heights) {
    // where a surface of triangles meets height zero: ends of the pieces, six numbers each
    const out = [], meet = (i, j) => { const w = heights[i] / (heights[i] - heights[j]); for (let k = 0; k < 3; k++) out.push(positions[3 * i + k] + w * (positions[3 * j + k] - positions[3 * i + k])); };
    for (let n = 0; n < indices.length; n += 3) {
      const a = indices[n], b = indices[n + 1], c = indices[n + 2], one = heights[a] <= 0, two = heights[b] <= 0, three = heights[c] <= 0;
      if (one === two && two === three) continue;
      if (one !== two) meet(a, b);
      if (two !== three) meet(b, c);
      if (three !== one) meet(c, a);
    }
    return Float32Array.from(out);
  }

  function along({ ends, weights }, values, size = 1) {
    // what a cut shows of values at the corners, `size` numbers each
    const out = new Float32Array(size * weights.length);
    for (let i = 0; i < weights.length; i++) for (let k = 0; k < size; k++) {
      const a = values[size * ends[2 * i] + k];
      out[size * i + k] = a + weights[i] * (values[size * ends[2 * i + 1] + k] - a);
    }
    return out;
  }

  return { lines, joined, cut, trace, along };
})();
