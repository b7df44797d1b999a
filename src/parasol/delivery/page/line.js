"use strict";
// A field on a line, as a curve: grid, axes, the band of its bound, other curves beside it.

const Line = (() => {
  const MARGIN = { right: 22, top: 36, bottom: 46 }, PER_CELL = 8, PAD = 0.04, MOST_BAND = 0.5; // of the range of the field: so much room has the band of its bound

  function makeLine(canvas, overlay, mesh, names, colours) {
    const points = mesh.points.data, owner = mesh.owner.data, cells = mesh.cells.data, [[lower], [upper]] = mesh.bounds;
    const half = (upper - lower) / 2 || 1, unit = new Float64Array(3 * points.length);
    points.forEach((x, i) => { unit[3 * i] = x / half; });
    const slope = mesh.smooth ? Smooth.gradients(unit, 1, cells) : null, corner = new Float64Array(points.length), parts = mesh.smooth ? PER_CELL : 1;
    let size = { width: 1, height: 1, dense: 1 }, look = null, values = null, room = 0, stale = true;
    canvas.hidden = true;

    function finer(field) {
      // [x, value] pairs along the line
      for (let i = 0; i < corner.length; i++) corner[i] = field[owner[i]];
      const g = slope ? slope(corner) : null, out = [];
      for (let c = 0; c < cells.length; c += 2) {
        const a = cells[c], b = cells[c + 1], h = (points[b] - points[a]) / half;
        for (let n = 0; n <= parts; n++) {
          const w = n / parts, v = 1 - w, cubic = g ? (corner[a] + (g[3 * a] * h) / 3) * 3 * v * v * w + (corner[b] - (g[3 * b] * h) / 3) * 3 * v * w * w : 0;
          out.push(points[a] + w * (points[b] - points[a]), g ? corner[a] * v * v * v + cubic + corner[b] * w * w * w : corner[a] * v + corner[b] * w);
        }
      }
      return out;
    }

    function resize(dense = Math.min(2, window.devicePixelRatio || 1)) {
      if (!stale && dense === size.dense) return false;
      stale = false;
      const { clientWidth: width, clientHeight: height } = overlay;
      if (width === size.width && height === size.height && dense === size.dense) return false;
      size = { width, height, dense };
      overlay.width = Math.max(1, Math.round(width * dense));
      overlay.height = Math.max(1, Math.round(height * dense));
      return true;
    }

    function setField(field, range, style) {
      // style: name, others ([{values, dash, name}]), band (how far values may be off; 0 for none)
      values = finer(field);
      look = { range, others: [], band: 0, ...style };
    }

    function area() {
      const span = look.range[1] - look.range[0], gap = PAD * span + Math.min(look.band || 0, MOST_BAND * span), low = look.range[0] - gap, high = look.range[1] + gap;
      room = Math.max(room, Pen.widest(Pen.ticksUp(low, high, size.height - 90)));
      const left = room + 20, right = size.width - MARGIN.right, top = MARGIN.top, bottom = size.height - MARGIN.bottom;
      const x = (v) => left + ((v - lower) / (upper - lower || 1)) * (right - left), y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
      return { left, right, top, bottom, low, high, x, y, back: (px) => lower + ((px - left) / (right - left)) * (upper - lower) };
    }

    function drawOver(marks = {}, pen = Pen.onCanvas(overlay, size.dense)) {
      if (!look) return pen;
      const style = colours(), { left, right, top, bottom, low, high, x, y } = area();
      pen.clear(size.width, size.height);
      Pen.axes(pen, { left, right, top, bottom }, { low: lower, high: upper, to: x }, { low, high, to: y }, [names[0], look.name], style, true);
      const line = (flat, shift = 0) => { const out = []; for (let i = 0; i < flat.length; i += 2) out.push(x(flat[i]), Math.max(top, Math.min(bottom, y(flat[i + 1] + shift)))); return out; };
      if (look.band > 0 && Number.isFinite(look.band)) {
        const above = line(values, look.band), below = line(values, -look.band), back = [];
        for (let i = below.length - 2; i >= 0; i -= 2) back.push(below[i], below[i + 1]);
        pen.area([...above, ...back], style.accent, 0.16);
      }
      look.others.forEach((other) => pen.lines([line(finer(other.values))], { colour: style.second, width: 2, dash: other.dash || [] }));
      pen.lines([line(values)], { colour: style.accent, width: 2.2 });
      if (look.others.length) legend(pen, right, style);
      if (marks.point) Pen.mark(pen, x(marks.point.at[0]), y(valueAt(marks.point)));
      return pen;
    }

    function legend(pen, right, style) {
      // above the plot, from the right
      let x = right;
      for (const { name, colour, dash } of [...look.others.map((other) => ({ name: other.name, colour: style.second, dash: other.dash })), { name: look.label || look.name, colour: style.accent }]) {
        pen.text(name, x, 14, { colour: style.text, align: "right" });
        x -= Pen.width(name) + 30;
        pen.lines([[x, 14, x + 22, 14]], { colour, width: 2.2, dash: dash || [] });
        x -= 16;
      }
    }

    function nearPoint(x) {
      if (!look || !(x >= lower - 1e-9 * half && x <= upper + 1e-9 * half)) return null;
      for (let i = 0; i + 3 < values.length; i += 2) {
        const a = values[i], b = values[i + 2];
        if (b > a && x >= a && x <= b) { const w = (x - a) / (b - a); return { at: [x], parts: [[i / 2, 1 - w], [i / 2 + 1, w]], inside: false }; }
      }
      return null;
    }

    const valueAt = ({ parts: list }) => list.reduce((sum, [i, w]) => sum + w * values[2 * i + 1], 0);
    const nothing = () => {};
    return { camera: {}, resize, spoil() { stale = true; }, setField, setSlice: nothing, setVector: nothing, reset: nothing, draw: nothing, finish: nothing, drawOver, nearPoint, valueAt,
      pick: (px) => (look ? nearPoint(area().back(px)) : null), seen: ({ at }) => at, arrows: () => 0, barRoom: () => 0, fits: () => 1, onScreen: ([v], u = 0) => [area().x(v), area().y(u)],
      dimension: 1, works: true, bounds: mesh.bounds, size: () => size };
  }

  return { makeLine };
})();
