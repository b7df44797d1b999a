"use strict";
// One field on one canvas, in the plane or in space: a picture that can be turned and cut, and what lies under a point.

const View = (() => {
  const LIP = 0.004; // by which the skin of a solid stands over its cut, so that no gap shows between them
  const MARGIN = { left: 20, right: 18, top: 38, bottom: 44 };
  const FIRST = { azimuth: -0.85, elevation: 0.42, zoom: 1 };
  const ARROWS = [18, 36]; // pixels between two of them, at least and at most
  const INK = "#111", CHALK = "#fff", SMALL = 70; // pixels from the middle to the rim: in smaller pictures contours have no numbers

  const make = (canvas, overlay, mesh, names, colours, camera = { ...FIRST }) =>
    (mesh.dimension === 1 ? Line.makeLine(canvas, overlay, mesh, names, colours) : makeView(canvas, overlay, mesh, names, colours, camera));

  function makeView(canvas, overlay, mesh, names, colours, camera) {
    const dimension = mesh.dimension, points = mesh.points.data, owner = mesh.owner.data, cells = mesh.cells.data, solid = dimension === 3;
    const [lower, upper] = mesh.bounds, middle = lower.map((x, i) => (x + upper[i]) / 2), half = Math.max(...lower.map((x, i) => upper[i] - x)) / 2 || 1;
    const corners = points.length / dimension, unit = new Float32Array(3 * corners); // centred, the longest side from −1 to 1
    for (let i = 0; i < corners; i++) for (let k = 0; k < dimension; k++) unit[3 * i + k] = (points[dimension * i + k] - middle[k]) / half;
    const pad = 1e-5, box = [0, 1, 2].map((k) => (k < dimension ? (upper[k] - lower[k]) / 2 / half : 1) + pad), whole = Math.hypot(...box.slice(0, dimension));
    let reach = 0.82 * whole;
    for (let i = 0; i < corners; i++) reach = Math.max(reach, 1.02 * Math.hypot(unit[3 * i], unit[3 * i + 1], unit[3 * i + 2]));
    const paint = solid ? Paint.painter(canvas, mesh.images) : null, raster = solid ? null : Raster.makeRaster(canvas), fine = fineMesh(), body = fine.outside || fine;
    // in the plane cells with straight edges are drawn as cubics, the others in small flat pieces
    const plain = solid || !mesh.smooth ? [] : Array.from(fine.bent.keys()).filter((t) => !fine.bent[t]), pieces = plain.length ? bentPieces() : body.indices;
    const ends = Uint32Array.from(plain.flatMap((t) => [0, 1, 2].map((k) => lattice(t, k))));
    const scene = paint ? { body: paint.mesh(body.positions, pieces, body.normals), section: null, edge: null, surface: null, creases: strokes(body.creases) } : null;
    let slice = { axis: -1, height: 0 }, section = null, surface = null, values = null, controls = null, inner = null, look = null, shape = null, vector = null, locate = null, deep = null;
    let size = { width: 1, height: 1, dense: 1 }, room = 0, stale = true;
    const corner = new Float64Array(corners);

    // ---- fields between the nodes -----------------------------------------------------------------------------------
    function fineMesh() {
      if (solid) return Smooth.solid(unit, Uint32Array.from(cells), Uint32Array.from(mesh.rim.data), mesh);
      const around = [...mesh.rim.data, ...mesh.interfaces.data];
      if (!mesh.smooth) return { positions: unit, indices: Uint32Array.from(cells), values: (u) => Float32Array.from(u), rim: pairs(around), onRim: flagged(around), parts: 1 };
      return Smooth.plane(unit, cells, around, mesh.curved);
    }

    function bentPieces() {
      const n = 3 * fine.parts, list = [];
      fine.bent.forEach((yes, t) => { if (yes) for (let i = n * t; i < n * (t + 1); i++) list.push(fine.indices[i]); });
      return Uint32Array.from(list);
    }

    function lattice(t, k) {
      // the fine corner at a corner of a cell
      const last = Math.round(Math.sqrt(fine.parts)), row = (last * (last + 1)) / 2;
      return t * fine.per + [0, row, row + last][k];
    }

    function flagged(around) { const out = new Uint8Array(corners); for (const i of around) out[i] = 1; return out; }

    function pairs(flat) { const out = []; for (let i = 0; i < flat.length; i += 2) out.push([flat[i], flat[i + 1]]); return out; }

    function strokes(lines) {
      const indices = lines.flatMap((line) => line.slice(1).flatMap((b, n) => [line[n], b]));
      return indices.length ? paint.mesh(body.positions, Uint32Array.from(indices), null) : null;
    }

    function finer(field) {
      for (let i = 0; i < corners; i++) corner[i] = field[owner[i]];
      return fine.values(corner);
    }

    // ---- what is shown ----------------------------------------------------------------------------------------------
    function resize(dense = Math.min(2, window.devicePixelRatio || 1)) {
      // to ask for the size makes the browser lay out the page: only where it may have changed
      if (!stale && dense === size.dense) return false;
      stale = false;
      const { clientWidth: width, clientHeight: height } = overlay;
      if (width === size.width && height === size.height && dense === size.dense) return false;
      if (width !== size.width) room = 0;
      size = { width, height, dense };
      for (const c of [canvas, overlay]) {
        c.width = Math.max(1, Math.round(width * dense));
        c.height = Math.max(1, Math.round(height * dense));
      }
      return true;
    }

    function setSlice(axis, fraction) {
      if (!solid) return;
      if (scene && scene.section) paint.remove(scene.section);
      if (scene && scene.edge) paint.remove(scene.edge);
      if (scene) scene.section = scene.edge = null;
      if (axis < 0) { slice = { axis, height: 0 }; section = null; keepSkin(); return; }
      const height = (2 * fraction - 1) * (box[axis] - pad) * 0.999 + 1e-7, inside = fine.inside.points;
      slice = { axis, height };
      section = Contours.cut(inside, fine.inside.cells, Float32Array.from({ length: inside.length / 3 }, (_, i) => inside[3 * i + axis] - height));
      if (!scene) return;
      const skin = body.positions;
      keepSkin();
      scene.section = paint.mesh(section.positions, null, null);
      scene.edge = paint.mesh(Contours.trace(skin, body.indices, Float32Array.from({ length: skin.length / 3 }, (_, i) => skin[3 * i + axis] - height)), null, null);
    }

    function keepSkin() {
      // triangles that lie wholly beyond the cut are not drawn, but where all of the skin is shown pale; moved ones the shader cuts
      const { axis, height } = slice, skin = body.positions, within = (n) => [0, 1, 2].some((k) => skin[3 * pieces[n - (n % 3) + k] + axis] < height + 2 * LIP);
      if (scene) paint.setIndices(scene.body, axis < 0 || shape || surface ? pieces : pieces.filter((_, n) => within(n)));
    }

    function setField(field, range, style) {
      // values at the nodes; the range they are coloured by; style: name, map, lines (their distance, 0 for none), mesh, level, bar
      const found = finer(field), scale = 1 / (range[1] - range[0]), colour = (list) => { const out = new Float32Array(list.length); for (let i = 0; i < out.length; i++) out[i] = (list[i] - range[0]) * scale; return out; };
      values = solid ? found.outside.slice() : found.slice();
      inner = solid ? found.inside.slice() : null;
      controls = plain.length ? fine.controls.slice() : null;
      look = { range, ...style };
      if (!paint) return;
      paint.setValues(scene.body, colour(values));
      if (section) paint.setValues(scene.section, colour(Contours.along(section, inner)));
      if (scene.surface) paint.remove(scene.surface);
      const before = surface;
      scene.surface = null;
      surface = look.level === null ? null : Contours.cut(fine.inside.points, fine.inside.cells, inner.map((x) => x - look.level), fine.inside.onRim, range[1] - range[0]);
      if (Boolean(before) !== Boolean(surface)) keepSkin();
      if (!surface || !surface.weights.length) return;
      scene.surface = paint.mesh(surface.positions, null, Contours.along(surface, found.slopes(), 3));
      paint.setValues(scene.surface, new Float32Array(surface.weights.length).fill((look.level - range[0]) * scale));
    }

    function setVector(parts, { factor, arrows, moved }) {
      // a vector field at the nodes: drawn as arrows, and the body moved by it times a factor; null: neither
      const all = parts ? parts.map((part) => { const found = finer(part); return solid ? { outside: found.outside.slice(), inside: found.inside.slice() } : { outside: found.slice() }; }) : [];
      vector = parts && { fields: all.map(({ outside }) => outside), arrows };
      const before = shape;
      shape = null;
      if (vector && moved) {
        shape = body.positions.slice();
        for (let i = 0; i < shape.length / 3; i++) for (let k = 0; k < dimension; k++) shape[3 * i + k] += (factor * vector.fields[k][i]) / half;
      }
      if (section && paint && (shape || before)) {
        const inside = fine.inside.points.slice();
        if (shape) for (let i = 0; i < inside.length / 3; i++) for (let k = 0; k < 3; k++) inside[3 * i + k] += (factor * all[k].inside[i]) / half;
        paint.setPositions(scene.section, Contours.along(section, inside, 3));
      }
      if (!before && !shape) return;
      locate = null;
      if (solid && Boolean(before) !== Boolean(shape)) keepSkin();
      if (paint) for (const part of [scene.body, scene.creases]) if (part) paint.setPositions(part, shape || body.positions);
    }

    const shown = () => shape || body.positions;

    function fits(width, height) {
      // pixels per unit in a picture of this size, the bar of colours beside it
      const w = width - 130, h = height - 80;
      return Math.max(1, solid ? Math.min(w, h) : Math.min(w / box[0], h / box[1]));
    }

    function frame() {
      // pixels per unit and the middle of the picture, in CSS pixels
      const right = look && look.bar ? (room = Math.max(room, Pen.barWidth(look.range))) + 22 : MARGIN.right;
      const spread = shape ? 1.2 : 1;
      if (solid) {
        const w = size.width - right, h = size.height;
        return { scale: (camera.zoom * Math.min(w - 70, h - 60)) / 2 / reach / spread, x: w / 2, y: h / 2 };
      }
      const h = size.height - MARGIN.top - MARGIN.bottom;
      let high = h, left = 0, w = 0, scale = 1;
      for (let n = 0; n < 3; n++) { // fewer ticks may have longer numbers
        left = Math.max(left, MARGIN.left + Pen.widest(Pen.ticksUp(lower[1], upper[1], high)));
        w = size.width - left - right;
        scale = Math.max(1, Math.min(w / 2 / box[0], h / 2 / box[1]) / spread);
        high = 2 * box[1] * scale;
      }
      return { scale, x: left + w / 2, y: MARGIN.top + h / 2 };
    }

    const turn = () => (solid ? Geometry.rotation(camera.azimuth, camera.elevation) : [1, 0, 0, 0, 1, 0, 0, 0, 1]);

    function matrix() {
      const { scale, x, y } = frame(), t = turn(), sx = (2 * scale) / size.width, sy = (2 * scale) / size.height, sz = -0.4 / reach;
      return Float32Array.from([
        sx * t[0], sy * t[3], sz * t[6], 0, sx * t[1], sy * t[4], sz * t[7], 0, sx * t[2], sy * t[5], sz * t[8], 0,
        (2 * x) / size.width - 1, 1 - (2 * y) / size.height, 0, 1,
      ]);
    }

    function draw() {
      if (look && raster) drawFlat();
      if (!look || !paint) return;
      const free = [0, 0, 0, 1], plane = [...free], span = look.range[1] - look.range[0], wide = shape || !mesh.images ? box.map((x) => 4 * x) : box;
      if (slice.axis >= 0) { plane[slice.axis] = 1; plane[3] = slice.height + LIP; }
      const base = { view: matrix(), map: look.map, low: wide.map((x) => -x), high: wide, plane, eye: turn().slice(6), cull: "back",
        lines: look.lines ? span / look.lines : 0, offset: look.lines ? -look.range[0] / span : 0 };
      paint.clear();
      const see = surface !== null, card = colours().back;
      paint.draw(scene.body, see ? { ...base, cull: "front", fade: 0.86, plain: card, plane: free, lines: 0 } : base);
      const ink = { ...base, strokes: true, lift: 0.008, fade: 1, plain: colours().front, plane: see ? free : plane };
      if (see) ink.lift = 0.03;
      if (scene.creases) paint.draw(scene.creases, ink);
      if (section) paint.draw(scene.section, { ...base, plane: free, cull: null });
      if (section && !shape) paint.draw(scene.edge, { ...ink, plane: free });
      if (scene.surface) paint.draw(scene.surface, { ...base, plane: slice.axis >= 0 ? plane : free, cull: null, lit: true, lines: 0 });
    }

    function drawFlat() {
      const { scale, x, y } = frame(), { dense } = size, place = shown(), at = new Float64Array((2 * place.length) / 3), wide = shape || !mesh.images ? [1e9, 1e9] : box;
      for (let i = 0, n = 0; i < at.length; i += 2, n += 3) { at[i] = dense * (x + scale * place[n]); at[i + 1] = dense * (y - scale * place[n + 1]); }
      raster.begin(look.map, look.range, [x - scale * wide[0], x + scale * wide[0], y - scale * wide[1], y + scale * wide[1]].map((v) => dense * v));
      raster.cubics(at, ends, controls, plain);
      raster.pieces(at, pieces, values);
      raster.end();
    }

    // ---- axes, edges, arrows and the marked point -------------------------------------------------------------------
    function onScreen(q) {
      // of a point in units
      const { scale, x, y } = frame(), p = Geometry.turned(turn(), q);
      return [x + scale * p[0], y - scale * p[1]];
    }

    const inUnits = (p) => [0, 1, 2].map((k) => (k < dimension ? (p[k] - middle[k]) / half : 0));

    function drawOver(marks = {}, pen = Pen.onCanvas(overlay, size.dense)) {
      // marks: point (a picked one), line (two points)
      if (!look) return pen;
      pen.clear(size.width, size.height);
      const style = colours();
      if (solid) Axes.box(pen, { lower, upper, names, turn: turn(), place: (p) => onScreen(inUnits(p)) }, style);
      else drawPlane(pen, style);
      if (vector && vector.arrows) drawArrows(pen);
      if (marks.line) Axes.probeLine(pen, marks.line.map((p) => onScreen(inUnits(p))));
      if (marks.point) Pen.mark(pen, ...onScreen(inUnits(seen(marks.point))));
      if (look.bar) {
        const high = Math.min(size.height - MARGIN.top - MARGIN.bottom, 460), top = MARGIN.top + (size.height - MARGIN.top - MARGIN.bottom - high) / 2;
        Pen.bar(pen, { left: size.width - room - 4, right: size.width, top, bottom: top + high }, look.range, look.name, Paint.colours(look.map), style);
      }
      return pen;
    }

    function drawPlane(pen, style) {
      const { scale, x, y } = frame(), place = shown(), line = (list) => list.flatMap((i) => [x + scale * place[3 * i], y - scale * place[3 * i + 1]]);
      const within = (i) => [0, 1].every((k) => Math.abs(body.positions[3 * i + k]) <= box[k] * 1.0001);
      if (look.lines) {
        const from = Math.ceil(look.range[0] / look.lines + 0.01), to = Math.floor(look.range[1] / look.lines - 0.01), all = [];
        const colour = Paint.colours(look.map);
        for (let k = from; k <= to; k++) {
          const level = k * look.lines, found = Contours.joined(Contours.lines(place, body.indices, values, level, look.lines, fine.onRim));
          const tone = colour((level - look.range[0]) / (look.range[1] - look.range[0]));
          all.push({ level, colour: tone, dark: Paint.dark(tone), list: found.map((flat) => flat.map((v, i) => (i % 2 ? y - scale * v : x + scale * v))) });
        }
        // light lines where the colours are dark
        for (const dark of [true, false]) pen.lines(all.filter((one) => one.dark === dark).flatMap(({ list }) => list), { colour: dark ? CHALK : INK, width: look.mesh ? 1.5 : 1.1, alpha: 0.65 });
        const covers = (u, v) => raster.covers(size.dense * u, size.dense * v);
        if (scale * Math.min(box[0], box[1]) >= SMALL) for (const { text, at, one } of Contours.numbers(all, look.say, covers)) {
          pen.text(text, ...at, { colour: one.dark ? CHALK : INK, size: 10, halo: `rgb(${one.colour.join(",")})` });
        }
      }
      if (look.mesh) {
        const flat = [];
        for (let t = 0; t < cells.length; t += 3) for (let k = 0; k < 3; k++) {
          const a = cells[t + k], b = cells[t + ((k + 1) % 3)];
          if (a < b && within2(a) && within2(b)) flat.push(...cornerAt(a, t, k), ...cornerAt(b, t, (k + 1) % 3));
        }
        pen.pieces(flat, { colour: INK, width: 0.6, alpha: 0.45 });
      }
      const inside = (lists) => lists.filter((list) => within(list[0]) && within(list[list.length - 1])).map(line);
      // between materials a light line would be lost on a light field
      const between = inside(fine.rim.slice(fine.rim.length - mesh.interfaces.data.length / 2));
      if (between.length) pen.lines(between, { colour: style.card, width: 4, alpha: 0.45 });
      pen.lines(inside(fine.rim), { colour: style.text, width: 1.5 });
      const [left, bottom] = onScreen(inUnits(lower)), [right, top] = onScreen(inUnits(upper)), gap = shape ? 14 : 7;
      const across = { low: lower[0], high: upper[0], to: (v) => x + (scale * (v - middle[0])) / half }, up = { low: lower[1], high: upper[1], to: (v) => y - (scale * (v - middle[1])) / half };
      Pen.axes(pen, { left: left - gap, right, top, bottom: bottom + gap }, across, up, names, style, false);
    }

    const within2 = (i) => [0, 1].every((k) => Math.abs(unit[3 * i + k]) <= box[k] * 1.0001);

    function cornerAt(i, t, k) {
      // where a corner of a cell is shown
      const { scale, x, y } = frame(), place = shown(), n = mesh.smooth ? lattice(t / 3, k) : i;
      return [x + scale * place[3 * n], y - scale * place[3 * n + 1]];
    }

    function drawArrows(pen) {
      const t = turn(), feet = [], place = shown(), gap = Math.max(ARROWS[0], Math.min(ARROWS[1], (frame().scale * 2 * Math.min(...box.slice(0, dimension))) / 5));
      if (solid) {
        const taken = new Set(), { normals } = body;
        for (let i = 0; i < place.length / 3; i++) {
          const p = Array.from(place.subarray(3 * i, 3 * i + 3)), n = normals.subarray(3 * i, 3 * i + 3), s = onScreen(p), key = s.map((v) => Math.floor(v / gap)).join();
          if (taken.has(key) || n[0] * t[6] + n[1] * t[7] + n[2] * t[8] < 0.1 || (slice.axis >= 0 && p[slice.axis] > slice.height)) continue;
          taken.add(key);
          feet.push({ at: s, parts: [[i, 1]] });
        }
      } else {
        for (let px = gap / 2; px < size.width; px += gap) for (let py = gap / 2; py < size.height; py += gap) {
          const found = pick(px, py);
          if (found) feet.push({ at: [px, py], parts: found.parts });
        }
      }
      let largest = 0;
      for (let i = 0; i < vector.fields[0].length; i++) largest = Math.max(largest, Math.hypot(...vector.fields.map((f) => f[i])));
      const drawn = feet.map(({ at, parts }) => {
        const w = [0, 1, 2].map((k) => (vector.fields[k] ? parts.reduce((sum, [i, s]) => sum + s * vector.fields[k][i], 0) : 0)), q = Geometry.turned(t, w);
        return { at, way: [(0.95 * gap * q[0]) / (largest || 1), (-0.95 * gap * q[1]) / (largest || 1)] };
      });
      Axes.arrows(pen, drawn);
      arrowsDrawn = drawn.filter(({ way }) => Math.hypot(...way) >= Axes.SHORTEST).length;
    }
    let arrowsDrawn = 0;

    // ---- what lies under a point ------------------------------------------------------------------------------------
    function seen({ at, parts }) {
      // where a point of the body is shown
      return shape ? at.map((_, k) => middle[k] + half * parts.reduce((sum, [i, w]) => sum + w * shape[3 * i + k], 0)) : at;
    }

    function pick(px, py) {
      // {at: coordinates, parts: [fine corner, weight] pairs, inside} under a point of the picture, or null
      const { scale, x, y } = frame(), u = (px - x) / scale, v = (y - py) / scale;
      return solid ? hit(u, v) : flat(u, v);
    }

    const nearPoint = (...p) => (solid ? within3 : flat)(...inUnits(p));

    function within3(u, v, w) {
      deep = deep || Geometry.solidLocator(fine.inside.points, fine.inside.cells);
      const found = deep(u, v, w);
      return found && { at: [u, v, w].map((x, k) => middle[k] + half * x), parts: found.corners.map((i, k) => [i, found.weights[k]]), inside: true };
    }

    function flat(u, v) {
      // cells may reach beyond a seam, where nothing is shown
      if (!shape && [u, v].some((x, k) => Math.abs(x) > box[k])) return null;
      if (!locate) {
        const place = shown(), two = new Float64Array((2 * place.length) / 3);
        for (let i = 0; i < two.length / 2; i++) { two[2 * i] = place[3 * i]; two[2 * i + 1] = place[3 * i + 1]; }
        locate = Geometry.locator(two, body.indices);
      }
      const found = locate(u, v);
      if (!found) return null;
      const parts = found.corners.map((i, k) => [i, found.weights[k]]), from = body.positions;
      return { at: [0, 1].map((k) => middle[k] + half * parts.reduce((sum, [i, w]) => sum + w * from[3 * i + k], 0)), parts, inside: false };
    }

    function hit(u, v) {
      const t = turn(), keep = (p) => slice.axis < 0 || p[slice.axis] <= slice.height, none = () => true;
      const candidates = [
        surface === null ? { found: Geometry.firstHit(body.indices, shown(), u, v, t, keep), cut: null } : null,
        section && !shape ? { found: Geometry.firstHit(null, section.positions, u, v, t, none), cut: section } : null,
        surface ? { found: Geometry.firstHit(null, surface.positions, u, v, t, keep), cut: surface } : null,
      ].filter((one) => one && one.found).sort((a, b) => b.found.depth - a.found.depth);
      if (!candidates.length) return null;
      const { found, cut } = candidates[0];
      const parts = cut
        ? found.weights.flatMap((w, k) => { const i = found.corners[k], s = cut.weights[i]; return [[cut.ends[2 * i], w * (1 - s)], [cut.ends[2 * i + 1], w * s]]; })
        : found.weights.map((w, k) => [found.corners[k], w]);
      const from = cut ? fine.inside.points : body.positions;
      return { at: [0, 1, 2].map((k) => middle[k] + half * parts.reduce((sum, [i, w]) => sum + w * from[3 * i + k], 0)), parts, inside: Boolean(cut) };
    }

    function valueAt({ parts, inside }) {
      const from = inside ? inner : values;
      return parts.reduce((sum, [i, w]) => sum + w * from[i], 0);
    }

    function sample(field, { parts, inside }) {
      // the value that another field has there
      const found = finer(field), from = solid ? found[inside ? "inside" : "outside"] : found;
      return parts.reduce((sum, [i, w]) => sum + w * from[i], 0);
    }

    function places(parts, inside) {
      // coordinates of fine corners, for tests
      const from = inside ? fine.inside.points : body.positions;
      return parts.map(([i]) => Array.from({ length: dimension }, (_, k) => middle[k] + half * from[3 * i + k]));
    }

    // how many triangles of the skin are sent to be drawn, of which ones, and where its cut is, for tests
    const sent = () => ({ count: scene.body.count / 3, corners: Array.from(pieces), heights: Array.from(body.positions).filter((_, i) => i % 3 === slice.axis), limit: slice.height, lip: LIP });

    return { camera, resize, sent, spoil() { stale = true; }, setSlice, setVector, seen, setField, fits, draw, drawOver, pick, valueAt, sample, nearPoint, places, finish: () => (raster || paint) && (raster || paint).finish(),
      reset() { Object.assign(camera, FIRST); }, onScreen: (p) => onScreen(inUnits(p)), arrows: () => arrowsDrawn,
      barRoom: () => (look ? Math.max(room, Pen.barWidth(look.range)) + 22 - MARGIN.right : 0), dimension, works: paint !== null || raster !== null, bounds: [lower, upper], size: () => size };
  }

  return { make };
})();
