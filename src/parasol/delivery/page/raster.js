"use strict";
// The plane pixel by pixel, without WebGL: without a graphics card WebGL takes many times as long, and with one nobody sees a difference.

const Raster = (() => {
  const COLOURS = 2048, OVERLAP = 0.004; // pixels by which neighbours overlap, so that rounding leaves none between them

  const tables = new Map();
  function table(name) {
    // the colours of a map as they lie in memory
    if (!tables.has(name)) {
      const colour = Paint.colours(name), bytes = new Uint8ClampedArray(4 * COLOURS);
      for (let i = 0; i < COLOURS; i++) bytes.set([...colour(i / (COLOURS - 1)), 255], 4 * i);
      tables.set(name, new Uint32Array(bytes.buffer));
    }
    return tables.get(name);
  }

  function makeRaster(canvas) {
    const g = canvas.getContext("2d"), p = new Float64Array(10);
    let image = null, memory = null, colours = null, width = 0, from = 0, factor = 0, clip = null;

    function begin(map, range, box) {
      // box: left, right, top, bottom in pixels of the canvas, beyond which nothing is shown
      if (!image || image.width !== canvas.width || image.height !== canvas.height) {
        image = g.createImageData(canvas.width, canvas.height);
        memory = new Uint32Array(image.data.buffer);
        width = canvas.width;
      } else memory.fill(0);
      colours = table(map);
      factor = (COLOURS - 1) / (range[1] - range[0]);
      from = range[0];
      clip = [Math.max(0, Math.ceil(box[0] - 0.5)), Math.min(canvas.width - 1, Math.floor(box[1] - 0.5)), Math.max(0, Math.ceil(box[2] - 0.5)), Math.min(canvas.height - 1, Math.floor(box[3] - 0.5))];
    }

    function polynomial(c, at) {
      // from ten control values (see smooth.js) to coefficients of 1, b, c, bb, bc, cc, bbb, bbc, bcc, ccc in numbers of colours
      const A = (c[at] - from) * factor, B = (c[at + 1] - from) * factor, C = (c[at + 2] - from) * factor, ab = (c[at + 3] - from) * factor, ba = (c[at + 4] - from) * factor;
      const bc = (c[at + 5] - from) * factor, cb = (c[at + 6] - from) * factor, ca = (c[at + 7] - from) * factor, ac = (c[at + 8] - from) * factor, inside = (c[at + 9] - from) * factor;
      p[0] = A + 0.5; // rounded by cutting off
      p[1] = 3 * (ab - A);
      p[2] = 3 * (ac - A);
      p[3] = 3 * (A - 2 * ab + ba);
      p[4] = 6 * (A - ab - ac + inside);
      p[5] = 3 * (A - 2 * ac + ca);
      p[6] = B - A + 3 * (ab - ba);
      p[7] = 3 * (2 * ab - A - ba + bc + ac - 2 * inside);
      p[8] = 3 * (2 * ac - A - ca + cb + ab - 2 * inside);
      p[9] = C - A + 3 * (ac - ca);
    }

    function flat(u, v, w) {
      p[0] = (u - from) * factor + 0.5;
      p[1] = (v - u) * factor;
      p[2] = (w - u) * factor;
    }

    function fill(ax, ay, bx, by, cx, cy, cubic) {
      // one triangle, its corners in pixels: along each row of pixels the polynomial is one of the step s
      const pixels = memory, palette = colours, area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay);
      if (!(Math.abs(area) > 1e-9)) return;
      const db = (cy - ay) / area, eb = -(cx - ax) / area, dc = -(by - ay) / area, ec = (bx - ax) / area, da = -db - dc, ea = -eb - ec; // by x and y
      const top = Math.max(clip[2], Math.ceil(Math.min(ay, by, cy) - 0.5 - OVERLAP)), bottom = Math.min(clip[3], Math.floor(Math.max(ay, by, cy) - 0.5 + OVERLAP));
      const least = Math.min(ax, bx, cx) - 0.5 - OVERLAP, most = Math.max(ax, bx, cx) - 0.5 + OVERLAP, last = COLOURS - 1;
      const roomA = OVERLAP * Math.sqrt(da * da + ea * ea), roomB = OVERLAP * Math.sqrt(db * db + eb * eb), roomC = OVERLAP * Math.sqrt(dc * dc + ec * ec);
      const q3 = cubic ? ((p[6] * db + p[7] * dc) * db + p[8] * dc * dc) * db + p[9] * dc * dc * dc : 0;
      for (let j = top; j <= bottom; j++) {
        // where the row enters and leaves: each weight is at least zero
        const y = j + 0.5 - ay, b0 = eb * y + db * (0.5 - ax), c0 = ec * y + dc * (0.5 - ax), a0 = 1 - b0 - c0;
        let left = least, right = most;
        if (da > 0) left = Math.max(left, (-roomA - a0) / da); else if (da < 0) right = Math.min(right, (-roomA - a0) / da); else if (a0 < -roomA) continue;
        if (db > 0) left = Math.max(left, (-roomB - b0) / db); else if (db < 0) right = Math.min(right, (-roomB - b0) / db); else if (b0 < -roomB) continue;
        if (dc > 0) left = Math.max(left, (-roomC - c0) / dc); else if (dc < 0) right = Math.min(right, (-roomC - c0) / dc); else if (c0 < -roomC) continue;
        const first = Math.max(clip[0], Math.ceil(left)), count = Math.min(clip[1], Math.floor(right)) - first + 1;
        if (count <= 0) continue;
        const b = b0 + db * first, c = c0 + dc * first, at = j * width + first, end = at + count;
        if (!cubic) {
          let value = p[0] + p[1] * b + p[2] * c;
          const step = p[1] * db + p[2] * dc;
          for (let i = at; i < end; i++, value += step) pixels[i] = palette[value <= 0 ? 0 : value >= last ? last : value | 0];
          continue;
        }
        const q0 = p[0] + b * (p[1] + b * (p[3] + b * p[6])) + c * (p[2] + c * (p[5] + c * p[9]) + b * (p[4] + b * p[7] + c * p[8]));
        const q1 = db * (p[1] + 2 * b * p[3] + 3 * b * b * p[6] + c * (p[4] + 2 * b * p[7] + c * p[8])) + dc * (p[2] + 2 * c * p[5] + 3 * c * c * p[9] + b * (p[4] + b * p[7] + 2 * c * p[8]));
        const q2 = db * db * (p[3] + 3 * b * p[6] + c * p[7]) + db * dc * (p[4] + 2 * b * p[7] + 2 * c * p[8]) + dc * dc * (p[5] + 3 * c * p[9] + b * p[8]);
        for (let i = at, s = 0; i < end; i++, s++) {
          const value = q0 + s * (q1 + s * (q2 + s * q3));
          pixels[i] = palette[value <= 0 ? 0 : value >= last ? last : value | 0];
        }
      }
    }

    function pieces(places, indices, values) {
      // flat triangles by their corners; places: x, y of each in pixels
      for (let n = 0; n < indices.length; n += 3) {
        const a = indices[n], b = indices[n + 1], c = indices[n + 2];
        flat(values[a], values[b], values[c]);
        fill(places[2 * a], places[2 * a + 1], places[2 * b], places[2 * b + 1], places[2 * c], places[2 * c + 1], false);
      }
    }

    function cubics(places, corners, controls, cells) {
      // cells with straight edges, by their corners and ten control values each
      for (let n = 0; n < cells.length; n++) {
        const a = corners[3 * n], b = corners[3 * n + 1], c = corners[3 * n + 2];
        polynomial(controls, 10 * cells[n]);
        fill(places[2 * a], places[2 * a + 1], places[2 * b], places[2 * b + 1], places[2 * c], places[2 * c + 1], true);
      }
    }

    const covers = (x, y) => memory !== null && x >= 0 && y >= 0 && x < width && y < image.height && memory[Math.floor(y) * width + Math.floor(x)] !== 0;

    return { begin, pieces, cubics, covers, end: () => g.putImageData(image, 0, 0), finish: () => { g.getImageData(0, 0, 1, 1); } };
  }

  return { makeRaster };
})();
