"use strict";
// One field on one canvas: a plane, a solid that can be turned and cut, or a curve; and what lies under a point.

const View = (() => {
  const LIP = 0.004; // by which the skin of a solid stands over its cut, so that no gap shows between them
  const MARGIN = { left: 46, right: 10, top: 10, bottom: 30 };

  function makeView(canvas, overlay, mesh, names, theme) {
    const dimension = mesh.dimension, points = mesh.points.data, owner = mesh.owner.data, cells = mesh.cells.data;
    const [lower, upper] = mesh.bounds, middle = lower.map((x, i) => (x + upper[i]) / 2);
    const half = Math.max(...lower.map((x, i) => upper[i] - x)) / 2 || 1;
    const corners = points.length / dimension, unit = new Float32Array(3 * corners); // centred, the longest side from −1 to 1
    let reach = 0;
    for (let i = 0; i < corners; i++) {
      for (let k = 0; k < dimension; k++) unit[3 * i + k] = (points[dimension * i + k] - middle[k]) / half;
      reach = Math.max(reach, Math.hypot(unit[3 * i], unit[3 * i + 1], unit[3 * i + 2]));
    }
    const pad = 1e-5, box = [0, 1, 2].map((k) => (k < dimension ? (upper[k] - lower[k]) / 2 / half : 1) + pad);
    const paint = dimension > 1 ? Paint.painter(canvas, { solid: dimension === 3, clipped: dimension === 3 || corners > mesh.n_nodes }) : null;
    const locate = dimension === 2 ? Geometry.locator(points, cells) : null;
    const scene = paint ? { body: paint.mesh(unit, Uint32Array.from(dimension === 2 ? cells : mesh.rim.data)), section: null } : null;
    const camera = { azimuth: -0.85, elevation: 0.42, zoom: 1 };
    let shape = unit, mover = null; // where the corners are shown, and what finds them there
    let slice = { axis: -1, height: 0 }, section = null, values = null, look = null, size = { width: 1, height: 1, dense: 1 };

    // ---- what is shown ----------------------------------------------------------------------------------------------
    function resize() {
      const dense = Math.min(2, window.devicePixelRatio || 1), { clientWidth: width, clientHeight: height } = canvas;
      if (width === size.width && height === size.height && dense === size.dense) return false;
      size = { width, height, dense };
      for (const c of [canvas, overlay]) {
        c.width = Math.max(1, Math.round(width * dense));
        c.height = Math.max(1, Math.round(height * dense));
      }
      return true;
    }

    function setSlice(axis, fraction) {
      if (dimension !== 3) return;
      if (axis < 0) { slice = { axis, height: 0 }; section = null; return; }
      const height = (2 * fraction - 1) * (box[axis] - pad) * 0.999 + 1e-7;
      slice = { axis, height };
      section = Geometry.cut(unit, cells, axis, height);
      if (paint) {
        if (scene.section) paint.remove(scene.section);
        scene.section = paint.mesh(section.positions, null);
      }
    }

    function setField(field, range, style) {
      // values at the nodes; the range they are coloured by; style: map, lines (their distance, 0 for none)
      values = field;
      look = { range, ...style };
      if (!paint) return;
      const scale = 1 / (range[1] - range[0]), shown = new Float32Array(corners);
      for (let i = 0; i < corners; i++) shown[i] = (field[owner[i]] - range[0]) * scale;
      paint.setValues(scene.body, shown);
      if (!section) return;
      const { ends, weights } = section, cutValues = new Float32Array(weights.length);
      for (let i = 0; i < weights.length; i++) cutValues[i] = shown[ends[2 * i]] + weights[i] * (shown[ends[2 * i + 1]] - shown[ends[2 * i]]);
      paint.setValues(scene.section, cutValues);
    }

    function setShape(parts, factor) {
      // the plane moved by a vector field at the nodes times a factor; null: as it is
      if (dimension !== 2 || corners > mesh.n_nodes || (!parts && shape === unit)) return;
      shape = parts ? unit.slice() : unit;
      for (let i = 0; parts && i < corners; i++) for (let k = 0; k < 2; k++) shape[3 * i + k] += (factor * parts[k][owner[i]]) / half;
      mover = null;
      if (paint) paint.setPositions(scene.body, shape);
    }

    function seen({ at, parts }) {
      // where a point of the body is shown
      return shape === unit ? at : [0, 1].map((k) => middle[k] + half * parts.reduce((sum, [i, w]) => sum + w * shape[3 * i + k], 0));
    }

    function moved(x, y) {
      // the point of the body that is shown at (x, y)
      const now = (_, j) => middle[j % 2] + half * shape[3 * (j >> 1) + (j % 2)];
      mover = mover || Geometry.locator(Float64Array.from({ length: 2 * corners }, now), cells);
      const found = mover(x, y), parts = found && found.corners.map((i, k) => [i, found.weights[k]]);
      return found && { at: [0, 1].map((k) => parts.reduce((sum, [i, w]) => sum + w * points[2 * i + k], 0)), parts };
    }

    function frame() {
      // pixels per unit and the middle of the picture, in CSS pixels
      if (dimension === 3) return { scale: (camera.zoom * Math.min(size.width, size.height)) / 2 / (reach * 1.04), x: size.width / 2, y: size.height / 2 };
      const width = size.width - MARGIN.left - MARGIN.right, height = size.height - MARGIN.top - MARGIN.bottom;
      return { scale: Math.min(width / 2 / box[0], height / 2 / box[1]) / (shape === unit ? 1 : 1.2), x: MARGIN.left + width / 2, y: MARGIN.top + height / 2 };
    }

    function turn() {
      return dimension === 3 ? Geometry.rotation(camera.azimuth, camera.elevation) : [1, 0, 0, 0, 1, 0, 0, 0, 1];
    }

    function matrix() {
      const { scale, x, y } = frame(), t = turn(), sx = (2 * scale) / size.width, sy = (2 * scale) / size.height, sz = -0.4 / reach;
      return Float32Array.from([
        sx * t[0], sy * t[3], sz * t[6], 0, sx * t[1], sy * t[4], sz * t[7], 0, sx * t[2], sy * t[5], sz * t[8], 0,
        (2 * x) / size.width - 1, 1 - (2 * y) / size.height, 0, 1,
      ]);
    }

    function draw() {
      if (!look) return;
      if (!paint) return dimension === 1 ? drawCurve() : undefined;
      const plane = [0, 0, 0, 1], span = look.range[1] - look.range[0], high = box, low = box.map((x) => -x);
      if (slice.axis >= 0) { plane[slice.axis] = 1; plane[3] = slice.height + LIP; }
      const base = { view: matrix(), map: look.map, low, high, plane, solid: dimension === 3, shade: dimension === 3 ? 0.18 : 0,
        lines: look.lines ? span / look.lines : 0, offset: look.lines ? -look.range[0] / span : 0 };
      paint.clear();
      paint.draw(scene.body, base);
      if (section) paint.draw(scene.section, { ...base, plane: [0, 0, 0, 1], shade: 0, solid: false });
    }

    // ---- axes and the marked point ----------------------------------------------------------------------------------
    function onScreen(p) {
      const { scale, x, y } = frame(), q = Geometry.turned(turn(), [0, 1, 2].map((k) => (k < dimension ? (p[k] - middle[k]) / half : 0)));
      return [x + scale * q[0], y - scale * q[1]];
    }

    function drawOver(probe) {
      if (dimension === 1) return drawCurve(probe);
      const g = pen();
      if (dimension === 2) drawOutline(g);
      if (dimension === 2) drawAxes(g, (v) => onScreen([v, lower[1]])[0], (v) => onScreen([lower[0], v])[1], [lower[0], upper[0]], [lower[1], upper[1]], names);
      else drawDirections(g);
      if (probe) drawMark(g, ...onScreen(probe));
    }

    function drawDirections(g) {
      // in the corner: where the axes point
      const t = turn(), x = 40, y = size.height - 40;
      for (let k = 0; k < 3; k++) {
        const right = 26 * t[k], up = 26 * t[3 + k];
        g.beginPath();
        g.moveTo(x, y);
        g.lineTo(x + right, y - up);
        g.stroke();
        g.fillText(names[k], x + 1.35 * right, y - 1.35 * up);
      }
    }

    function drawOutline(g) {
      // over the edge of the triangles, which is as rough as pixels are
      const rim = mesh.rim.data, { scale, x, y } = frame(), inside = (i) => [0, 1].every((k) => Math.abs(unit[3 * i + k]) <= box[k]);
      g.lineWidth = 1.6;
      g.lineCap = "round";
      g.beginPath();
      for (let e = 0; e < rim.length; e += 2) {
        const a = rim[e], b = rim[e + 1];
        if (!inside(a) || !inside(b)) continue;
        g.moveTo(x + scale * shape[3 * a], y - scale * shape[3 * a + 1]);
        g.lineTo(x + scale * shape[3 * b], y - scale * shape[3 * b + 1]);
      }
      g.stroke();
      g.lineWidth = 1;
    }

    function pen() {
      const g = overlay.getContext("2d");
      g.setTransform(size.dense, 0, 0, size.dense, 0, 0);
      g.clearRect(0, 0, size.width, size.height);
      g.font = "12px system-ui, sans-serif";
      g.fillStyle = g.strokeStyle = theme().text;
      g.textAlign = "center";
      g.textBaseline = "middle";
      g.lineWidth = 1;
      return g;
    }

    function drawAxes(g, x, y, xs, ys, labels) {
      const bottom = Math.round(y(ys[0])) + 5.5, left = Math.round(x(xs[0])) - 5.5;
      const across = Geometry.ticks(...xs, Math.max(3, (x(xs[1]) - x(xs[0])) / 70)), up = Geometry.ticks(...ys, Math.max(3, (y(ys[0]) - y(ys[1])) / 55));
      g.beginPath();
      for (const v of across.values) { g.moveTo(x(v), bottom); g.lineTo(x(v), bottom + 4); g.fillText(across.label(v), x(v), bottom + 13); }
      g.textAlign = "right";
      for (const v of up.values) { g.moveTo(left, y(v)); g.lineTo(left - 4, y(v)); g.fillText(up.label(v), left - 7, y(v)); }
      g.stroke();
      g.textAlign = "center";
      g.font = "italic 13px system-ui, sans-serif";
      g.fillText(labels[0], (x(xs[0]) + x(xs[1])) / 2 + 22, bottom + 13);
      g.fillText(labels[1] || "", left - 20, (y(ys[0]) + y(ys[1])) / 2 + 18);
    }

    function drawMark(g, x, y) {
      for (const [colour, width] of [["#fff", 4], ["#000", 1.5]]) {
        g.strokeStyle = colour;
        g.lineWidth = width;
        g.beginPath();
        g.arc(x, y, 6, 0, 2 * Math.PI);
        g.stroke();
      }
    }

    function curveFrame() {
      const [low, high] = look.range, left = MARGIN.left + 14, bottom = size.height - MARGIN.bottom - 8;
      const x = (v) => left + ((v - lower[0]) / (upper[0] - lower[0] || 1)) * (size.width - left - 14);
      return { low, high, x, y: (v) => bottom - ((v - low) / (high - low)) * (bottom - 16), back: (px) => lower[0] + ((px - left) / (size.width - left - 14)) * (upper[0] - lower[0]) };
    }

    function drawCurve(probe) {
      const g = pen(), { low, high, x, y } = curveFrame();
      drawAxes(g, x, y, [lower[0], upper[0]], [low, high], [names[0], ""]);
      g.strokeStyle = theme().accent;
      g.lineWidth = 2;
      g.beginPath();
      for (let c = 0; c < cells.length; c += 2) {
        g.moveTo(x(points[cells[c]]), y(values[owner[cells[c]]]));
        g.lineTo(x(points[cells[c + 1]]), y(values[owner[cells[c + 1]]]));
      }
      g.stroke();
      const found = probe && nearPoint(probe[0]);
      if (found) drawMark(g, x(probe[0]), y(valueAt(found.parts)));
    }

    // ---- what lies under a point ------------------------------------------------------------------------------------
    function pick(px, py) {
      // {at: coordinates, parts: [node, weight] pairs} under a point of the picture, or null
      if (dimension === 1) return look ? nearPoint(curveFrame().back(px)) : null;
      const { scale, x, y } = frame(), u = (px - x) / scale, v = (y - py) / scale;
      if (dimension === 3) return hit(u, v);
      return (shape === unit ? nearPoint : moved)(middle[0] + u * half, middle[1] + v * half);
    }

    function nearPoint(x, y) {
      if (x < lower[0] - 1e-9 * half || x > upper[0] + 1e-9 * half) return null;
      if (dimension === 1) {
        for (let c = 0; c < cells.length; c += 2) {
          const a = points[cells[c]], b = points[cells[c + 1]];
          if (x < a || x > b) continue;
          const w = (x - a) / (b - a || 1);
          return { at: [x], parts: [[owner[cells[c]], 1 - w], [owner[cells[c + 1]], w]] };
        }
        return null;
      }
      if (y < lower[1] - 1e-9 * half || y > upper[1] + 1e-9 * half) return null;
      const found = locate(x, y);
      return found && { at: [x, y], parts: found.corners.map((i, k) => [owner[i], found.weights[k]]) };
    }

    function hit(u, v) {
      const t = turn(), rim = mesh.rim.data, at = (i) => [unit[3 * i], unit[3 * i + 1], unit[3 * i + 2]];
      const outside = Geometry.firstHit(rim.length / 3, (n, k) => at(rim[3 * n + k]), u, v, t, (p) => slice.axis < 0 || p[slice.axis] <= slice.height);
      const inside = section && Geometry.firstHit(section.weights.length / 3, (n, k) => Array.from(section.positions.subarray(9 * n + 3 * k, 9 * n + 3 * k + 3)), u, v, t, () => true);
      const best = inside && (!outside || inside.depth > outside.depth) ? inside : outside;
      if (!best) return null;
      const parts = best === inside
        ? best.weights.flatMap((w, k) => {
          const i = 3 * best.triangle + k, s = section.weights[i];
          return [[owner[section.ends[2 * i]], w * (1 - s)], [owner[section.ends[2 * i + 1]], w * s]];
        })
        : best.weights.map((w, k) => [owner[rim[3 * best.triangle + k]], w]);
      return { at: best.at.map((q, k) => middle[k] + half * q), parts };
    }

    function valueAt(parts) {
      return parts.reduce((sum, [node, weight]) => sum + weight * values[node], 0);
    }

    return { camera, resize, setSlice, setShape, seen, setField, draw, drawOver, pick, valueAt, nearPoint, finish: () => paint && paint.finish(),
      dimension, works: dimension === 1 || paint !== null, bounds: [lower, upper] };
  }

  return { makeView };
})();
