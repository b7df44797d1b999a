"use strict";
// Lines and surfaces of equal values.

const Contours = (() => {
  const NEAR = 0.005; // of the distance of two levels: values on the boundary so near to a level may be that level and rounding
  const NEAR_SPAN = 0.02; // the same, of the range of a field in space

  function lines(positions, indices, values, level, step, rim) {
    // ends of the pieces of a line in the plane, four numbers each; rim: for each corner whether it lies on the boundary
    const flat = rim && plateau(indices, 3, values, level, NEAR * step, rim), out = [], cut = (i, j) => {
      const w = (level - values[i]) / (values[j] - values[i]);
      out.push(positions[3 * i] + w * (positions[3 * j] - positions[3 * i]), positions[3 * i + 1] + w * (positions[3 * j + 1] - positions[3 * i + 1]));
    };
    for (let n = 0; n < indices.length; n += 3) {
      const a = indices[n], b = indices[n + 1], c = indices[n + 2], u = values[a], v = values[b], w = values[c];
      const one = u > level, two = v > level, three = w > level;
      if (one === two && two === three) continue;
      if (flat && beside(flat, level, values, [a, b, c])) continue;
      if (one !== two) cut(a, b);
      if (two !== three) cut(b, c);
      if (three !== one) cut(c, a);
    }
    return out;
  }

  const known = new WeakMap();
  function boundary(cells, size, rim) {
    // corners on the boundary, and cells with two of them or more: once for each mesh
    if (!known.has(rim)) {
      const corners = [], touching = [];
      rim.forEach((on, i) => { if (on) corners.push(i); });
      for (let c = 0; c < cells.length; c += size) { let on = 0; for (let k = 0; k < size; k++) on += rim[cells[c + k]]; if (on > 1) touching.push(c); }
      known.set(rim, { corners, touching });
    }
    return known.get(rim);
  }

  function plateau(cells, size, values, level, near, rim) {
    // corners on the boundary that have the level but for rounding, and so have all their neighbours on it; null for none
    const { corners, touching } = boundary(cells, size, rim), out = new Uint8Array(rim.length), has = (i) => Math.abs(values[i] - level) < near;
    let some = false;
    for (const i of corners) if (has(i)) { out[i] = 1; some = true; }
    if (!some) return null;
    for (const c of touching) {
      let all = true;
      for (let k = 0; k < size; k++) if (rim[cells[c + k]] && !has(cells[c + k])) all = false;
      if (!all) for (let k = 0; k < size; k++) out[cells[c + k]] = 0;
    }
    return out;
  }

  function beside(flat, level, values, corners) {
    // whether the level is crossed by rounding alone: corners that are not on a plateau lie on one side
    let above = 0, below = 0;
    for (const i of corners) if (!flat[i]) { if (values[i] > level) above += 1; else below += 1; }
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

  function extent(line) {
    // the larger of its width and its height
    const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    for (let i = 0; i < line.length; i++) { low[i % 2] = Math.min(low[i % 2], line[i]); high[i % 2] = Math.max(high[i % 2], line[i]); }
    return Math.max(high[0] - low[0], high[1] - low[1]);
  }

  function numbers(contours, say, covers) {
    // for each level [{level, list: lines in pixels}] a number on its longest line, where that rises least, the field is all around, and no other number is near
    const out = [];
    for (const one of contours) {
      const line = one.list.reduce((a, b) => (b.length > a.length ? b : a), []), text = say(one.level), wide = Pen.width(text, 10);
      if (extent(line) < 2 * wide + 20) continue;
      let best = null;
      for (let i = 4; i + 5 < line.length; i += 2) {
        const across = line[i + 4] - line[i - 4], up = line[i + 5] - line[i - 3], steep = Math.abs(up) / (Math.hypot(across, up) || 1);
        if (best && steep >= best.steep) continue;
        const free = out.every(({ at: [u, v], wide: w }) => Math.abs(u - line[i]) > (w + wide) / 2 + 8 || Math.abs(v - line[i + 1]) > 16);
        if (free && [-1, 1].every((a) => [-1, 1].every((b) => covers(line[i] + a * (wide / 2 + 3), line[i + 1] + 8 * b)))) best = { steep, at: [line[i], line[i + 1]] };
      }
      if (best) out.push({ text, at: best.at, wide, one });
    }
    return out;
  }

  function cut(points, tetrahedra, heights, rim = null, span = 0) {
    // triangles where heights are zero, each corner on an edge: at `ends[2i]` with weight 1 − w, at `ends[2i + 1]` with weight w;
    // rim: for each corner whether it lies on the boundary, where heights that are tiny beside the span are zero
    const ends = [], weights = [], positions = [], flat = rim && plateau(tetrahedra, 4, heights, 0, NEAR_SPAN * span, rim);
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
      if (flat && beside(flat, 0, heights, [a, b, c, d])) continue;
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

  return { lines, joined, numbers, cut, trace, along };
})();
