"use strict";
// Drawing with lines and letters, on a canvas or into an SVG: axes whose labels never meet, and a bar of colours.

const Pen = (() => {
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", SMALL = 12, NAME = 13;
  const STRIPES = 96, BAR = 14;
  const named = document.createElement("div");
  named.innerHTML = "<svg></svg>"; // its name for the SVG language is written into files
  const SPACE = named.firstChild.namespaceURI;
  const ruler = typeof document === "undefined" ? null : document.createElement("canvas").getContext("2d");

  const widths = new Map();
  function width(text, size = SMALL, slanted = false) {
    const key = `${size}${slanted ? "/" : ""} ${text}`;
    if (!widths.has(key)) {
      if (widths.size > 5000) widths.clear();
      ruler.font = `${slanted ? "italic " : ""}${size}px ${FONT}`;
      widths.set(key, ruler.measureText(text).width);
    }
    return widths.get(key);
  }

  // ---- two kinds of pens that draw the same -------------------------------------------------------------------------
  // lines: flat lists [x, y, x, y, ...] of one line each; pieces: [x, y, x, y] for each piece
  function onCanvas(canvas, dense, origin = [0, 0]) {
    const g = canvas.getContext("2d"), labels = [];
    let font = ""; // to set one makes the browser read it, even the same again
    g.setTransform(dense, 0, 0, dense, dense * origin[0], dense * origin[1]);
    const stroke = ({ colour, width: thick = 1, dash = [], alpha = 1 }) => {
      g.globalAlpha = alpha;
      g.strokeStyle = colour;
      g.lineWidth = thick;
      g.lineCap = g.lineJoin = "round";
      g.setLineDash(dash);
      g.stroke();
      g.globalAlpha = 1;
    };
    const trace = (line) => { for (let i = 0; i < line.length; i += 2) (i ? g.lineTo : g.moveTo).call(g, line[i], line[i + 1]); };
    return {
      labels,
      clear(w, h) { g.clearRect(0, 0, w, h); labels.length = 0; },
      lines(list, style) { g.beginPath(); list.forEach(trace); stroke(style); },
      pieces(flat, style) { g.beginPath(); for (let i = 0; i < flat.length; i += 4) { g.moveTo(flat[i], flat[i + 1]); g.lineTo(flat[i + 2], flat[i + 3]); } stroke(style); },
      area(line, colour, alpha = 1) { g.beginPath(); trace(line); g.closePath(); g.globalAlpha = alpha; g.fillStyle = colour; g.fill(); g.globalAlpha = 1; },
      ring(x, y, r, style) { g.beginPath(); g.arc(x, y, r, 0, 2 * Math.PI); stroke(style); },
      dot(x, y, r, colour) { g.beginPath(); g.arc(x, y, r, 0, 2 * Math.PI); g.fillStyle = colour; g.fill(); },
      box(x, y, w, h, colour) { g.fillStyle = colour; g.fillRect(x, y, w, h); },
      text(text, x, y, { colour, align = "center", size = SMALL, slanted = false, halo = "" }) {
        const next = `${slanted ? "italic " : ""}${size}px ${FONT}`;
        if (next !== font) { g.font = font = next; g.textBaseline = "middle"; }
        g.fillStyle = colour;
        g.textAlign = align;
        if (halo) { g.strokeStyle = halo; g.lineWidth = 3; g.setLineDash([]); g.strokeText(text, x, y); }
        g.fillText(text, x, y);
        const long = width(text, size, slanted), left = align === "left" ? x : align === "right" ? x - long : x - long / 2;
        if (text) labels.push({ text, left, right: left + long, top: y - size / 2, bottom: y + size / 2 });
      },
    };
  }

  function onPaper() {
    // the same as parts of an SVG
    const parts = [], n = (x) => String(Math.round(100 * x) / 100), safe = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
    const style = ({ colour, width: thick = 1, dash = [], alpha = 1 }) => `fill="none" stroke="${colour}" stroke-width="${n(thick)}" stroke-linecap="round" stroke-linejoin="round"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}${alpha < 1 ? ` opacity="${alpha}"` : ""}`;
    const path = (line) => { let d = ""; for (let i = 0; i < line.length; i += 2) d += `${i ? "L" : "M"}${n(line[i])} ${n(line[i + 1])}`; return d; };
    return {
      parts, labels: [], clear() {},
      lines(list, how) { parts.push(`<path d="${list.map(path).join("")}" ${style(how)}/>`); },
      pieces(flat, how) { let d = ""; for (let i = 0; i < flat.length; i += 4) d += path(flat.slice(i, i + 4)); if (d) parts.push(`<path d="${d}" ${style(how)}/>`); },
      area(line, colour, alpha = 1) { parts.push(`<path d="${path(line)}Z" fill="${colour}" fill-opacity="${alpha}"/>`); },
      ring(x, y, r, how) { parts.push(`<circle cx="${n(x)}" cy="${n(y)}" r="${r}" ${style(how)}/>`); },
      dot(x, y, r, colour) { parts.push(`<circle cx="${n(x)}" cy="${n(y)}" r="${r}" fill="${colour}"/>`); },
      box(x, y, w, h, colour) { parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${colour}"/>`); },
      text(text, x, y, { colour, align = "center", size = SMALL, slanted = false, halo = "" }) {
        const anchor = { left: "start", right: "end", center: "middle" }[align];
        parts.push(`<text x="${n(x)}" y="${n(y)}" dy="0.35em" font-size="${size}" fill="${colour}" text-anchor="${anchor}"${slanted ? ' font-style="italic"' : ""}${halo ? ` stroke="${halo}" stroke-width="3" paint-order="stroke"` : ""}>${safe(text)}</text>`);
      },
    };
  }

  function sheet(parts, w, h, background) {
    return `<svg xmlns="${SPACE}" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="${FONT}"><rect width="${w}" height="${h}" fill="${background}"/>${parts.join("")}</svg>`;
  }

  // ---- axes ---------------------------------------------------------------------------------------------------------
  function ticksAcross(low, high, pixels) {
    // as many as have room beside each other
    for (let most = Math.max(2, Math.floor(pixels / 45)); ; most--) {
      const found = Geometry.ticks(low, high, most), room = (pixels * found.step) / (high - low);
      if (most <= 1 || Math.max(...found.values.map((v) => width(found.label(v)))) + 10 <= room) return found;
    }
  }

  function ticksUp(low, high, pixels) {
    // more than one, where two have room
    const first = Math.max(1, Math.min(10, Math.floor(pixels / 34))), few = Geometry.ticks(low, high, first);
    if (few.values.length > 1) return few;
    const more = [1, 2, 3].map((n) => Geometry.ticks(low, high, first + n)).find(({ values }) => values.length > 1);
    return more && (pixels * more.step) / (high - low) >= 15 ? more : few;
  }
  const widest = (ticks) => Math.max(0, ...ticks.values.map((v) => width(ticks.label(v))));

  function axes(pen, area, across, up, names, colours, grid) {
    // area: left, right, top, bottom of the plot in pixels; across, up: {low, high, to(value) in pixels}, across perhaps with ticks
    const xs = across.ticks || ticksAcross(across.low, across.high, Math.abs(across.to(across.high) - across.to(across.low)));
    const ys = ticksUp(up.low, up.high, Math.abs(up.to(up.high) - up.to(up.low)));
    const { left, bottom, right, top } = area, style = { colour: colours.text, width: 1 };
    if (grid) {
      const gentle = { colour: colours.line, width: 1 };
      pen.lines(xs.values.map((v) => [across.to(v), top, across.to(v), bottom]), gentle);
      pen.lines(ys.values.map((v) => [left, up.to(v), right, up.to(v)]), gentle);
    }
    pen.lines([[across.to(across.low), bottom, across.to(across.high), bottom], [left, up.to(up.low), left, up.to(up.high)]], style);
    pen.lines([...xs.values.map((v) => [across.to(v), bottom, across.to(v), bottom + 4]), ...ys.values.map((v) => [left, up.to(v), left - 4, up.to(v)])], style);
    for (const v of xs.values) pen.text(xs.label(v), across.to(v), bottom + 13, { colour: colours.text });
    for (const v of ys.values) pen.text(ys.label(v), left - 8, up.to(v), { colour: colours.text, align: "right" });
    pen.text(names[0], (across.to(across.low) + across.to(across.high)) / 2, bottom + 30, { colour: colours.text, size: NAME, slanted: true });
    const over = { colour: colours.text, size: NAME, slanted: true }, high = Math.min(up.to(up.low), up.to(up.high)) - 15;
    if (width(names[1], NAME, true) / 2 > left - 4) pen.text(names[1], 4, high, { ...over, align: "left" });
    else pen.text(names[1], left, high, over);
  }

  // ---- colours ------------------------------------------------------------------------------------------------------
  function barWidth(range) { return BAR + 12 + widest(ticksUp(...range, 300)) + 4; }

  function bar(pen, { left, right, top, bottom }, range, name, colour, colours) {
    const high = bottom - top, ticks = ticksUp(...range, high);
    for (let i = 0; i < STRIPES; i++) pen.box(left, top, BAR, high - (i * high) / STRIPES, `rgb(${colour((i + 0.5) / STRIPES).join(",")})`);
    pen.lines([[left, top, left + BAR, top, left + BAR, bottom, left, bottom, left, top]], { colour: colours.text, width: 1 });
    for (const v of ticks.values) {
      const y = bottom - ((v - range[0]) / (range[1] - range[0])) * high;
      pen.lines([[left + BAR, y, left + BAR + 4, y]], { colour: colours.text });
      pen.text(ticks.label(v), left + BAR + 8, y, { colour: colours.text, align: "left" });
    }
    pen.text(name, Math.max(4, Math.min(left, right - width(name, NAME, true) - 4)), top - 15, { colour: colours.text, size: NAME, slanted: true, align: "left" });
  }

  function mark(pen, x, y) {
    for (const [colour, thick] of [["#fff", 4], ["#000", 1.5]]) pen.ring(x, y, 6, { colour, width: thick });
  }

  return { onCanvas, onPaper, sheet, axes, bar, barWidth, mark, width, widest, ticksUp, ticksAcross };
})();
