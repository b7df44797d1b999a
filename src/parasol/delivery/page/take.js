"use strict";
// To take away: pictures, an animation, numbers, a link, the same in Python.

const Take = (() => {
  const { $, make, button } = Parts;
  const PRINT = 2400, SWEEP = 60, RATE = 25; // pixels across, frames of a parameter's sweep, frames in a second

  function makeTake(app) {
    const { model, state } = app, slug = (text) => text.trim().toLowerCase().replace(/[^\p{L}\p{N}.=-]+/gu, "-").replace(/^-|-$/g, "") || "field";

    function settings() {
      // parameters (and the time) as words, those of functions left out
      const scalars = Words.settings(model, state.inputs);
      return model.steady ? scalars : [...scalars, [model.about.time, Words.number(model.lift.times[state.time])]];
    }

    function fileName(suffix) {
      const plain = (text) => String(text).replace(/ × 10/g, "e").replace(/[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]/g, (c) => "-0123456789"["⁻⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)]).replace("−", "-");
      return `${[model.title, (suffix === "csv" ? app.shown.chosen().name : app.shownName()).replaceAll("|", ""), ...settings().map(([name, value]) => `${name}=${plain(value)}`)].map(slug).join("_").slice(0, 120)}.${suffix}`;
    }

    function save(name, blob) {
      const link = make("a", { href: URL.createObjectURL(blob), download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    }

    // ---- pictures -----------------------------------------------------------------------------------------------------
    function drawn(dense, pens) {
      // every view on the sheet at `dense` pixels for one of the screen; calls pens with each view's pieces
      const views = app.views(), total = extent(views);
      Parts.onPaper(() => {
        for (const one of views) {
          one.view.resize(dense);
          one.view.draw(); // in this very task, while the drawing is still there
          pens({ ...one, ...one.view.size() });
        }
      });
      for (const { view } of views) { view.resize(); view.draw(); }
      app.redraw();
      return total;
    }

    // what the views fill as they stand on the page, and a line of words below
    const extent = (views) => ({ width: Math.max(...views.map(({ view, left }) => left + view.size().width)), height: Math.max(...views.map(({ view, top }) => top + view.size().height)) + 34 });

    const title = () => [model.title, ...settings().map(([name, value]) => `${name} = ${value}`)].join("   ");

    function picture(dense = Math.min(2, window.devicePixelRatio || 1)) {
      const sheet = make("canvas"), style = Parts.onPaper(Parts.theme), { width, height } = extent(app.views());
      sheet.width = Math.round(width * dense);
      sheet.height = Math.round(height * dense);
      const g = sheet.getContext("2d");
      g.fillStyle = style.card;
      g.fillRect(0, 0, sheet.width, sheet.height);
      drawn(dense, ({ view, field, marks, caption, left, top }) => {
        g.resetTransform(); // the pen of the view before has left its own
        if (view.dimension > 1) g.drawImage(field, Math.round(left * dense), Math.round(top * dense));
        const pen = Pen.onCanvas(sheet, dense, [left, top]);
        view.drawOver(marks, { ...pen, clear() {} });
        if (caption) pen.text(caption, view.size().width / 2, 10, { colour: style.quiet });
      });
      Pen.onCanvas(sheet, dense).text(title(), 12, height - 16, { colour: style.text, align: "left", size: 13 });
      return sheet;
    }

    function paper() {
      // an SVG: the colours as a picture in it, lines and letters as such
      const parts = [], style = Parts.onPaper(Parts.theme), dense = scaleTo(PRINT);
      const { width, height } = drawn(dense, ({ view, field, marks, caption, left, top, width: w, height: h }) => {
        const pen = Pen.onPaper();
        if (view.dimension > 1) pen.parts.push(`<image width="${w}" height="${h}" href=${JSON.stringify(field.toDataURL("image/png"))}/>`);
        view.drawOver(marks, pen);
        if (caption) pen.text(caption, w / 2, 10, { colour: style.quiet });
        parts.push(`<g transform="translate(${left} ${top})">${pen.parts.join("")}</g>`);
      });
      const pen = Pen.onPaper();
      pen.text(title(), 12, height - 16, { colour: style.text, align: "left", size: 13 });
      return Pen.sheet([...parts, ...pen.parts], width, height, style.card);
    }

    const scaleTo = (pixels) => Math.max(1, pixels / extent(app.views()).width);
    const savePicture = () => picture(scaleTo(PRINT)).toBlob((blob) => save(fileName("png"), blob));

    // ---- an animation: through the times, or through a parameter ------------------------------------------------------
    async function animation() {
      const first = picture(), dense = first.width / extent(app.views()).width;
      const stage = make("canvas", { width: 2 * Math.floor(first.width / 2), height: 2 * Math.floor(first.height / 2) }), g = stage.getContext("2d");
      if (typeof MediaRecorder === "undefined" || !stage.captureStream) return null;
      const kind = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm", "video/mp4"].find((type) => MediaRecorder.isTypeSupported(type));
      if (!kind) return null;
      const stream = stage.captureStream(), recorder = new MediaRecorder(stream, { mimeType: kind, videoBitsPerSecond: 6e6 }), pieces = [];
      recorder.ondataavailable = (event) => pieces.push(event.data);
      const done = new Promise((resolve) => { recorder.onstop = resolve; });
      const before = { time: state.time, inputs: state.inputs.slice(), locked: state.locked };
      if (model.steady) state.locked = sweepRange();
      recorder.start();
      const frames = model.steady ? SWEEP : model.lift.times.length;
      for (let n = 0; n < frames; n++) {
        if (model.steady) state.inputs[app.sweep.along()] = app.sweep.at(n / (frames - 1)); else state.time = n;
        app.repaint();
        g.drawImage(picture(dense), 0, 0);
        await new Promise((resolve) => setTimeout(resolve, model.steady ? 1000 / RATE : Math.max(1000 / RATE, Math.min(200, 5000 / frames))));
      }
      recorder.stop();
      await done;
      stream.getTracks().forEach((track) => track.stop());
      Object.assign(state, before);
      app.update();
      app.repaint();
      return new Blob(pieces, { type: kind.split(";")[0] });
    }

    function sweepRange() {
      // colours that hold for all frames
      let found = [Infinity, -Infinity];
      for (let n = 0; n <= 12; n++) {
        const inputs = state.inputs.slice();
        inputs[app.sweep.along()] = app.sweep.at(n / 12);
        found = app.shown.ends(app.shown.of(app.maths.coefficients(app.maths.expand(inputs), inputs), state.time), found);
      }
      return state.locked || app.shown.nice(found, false);
    }

    // ---- numbers ------------------------------------------------------------------------------------------------------
    function table() {
      const { names, n_nodes: n } = model.lift, d = model.mesh.dimension, { data } = model.mesh.points, owner = model.mesh.owner.data;
      const fields = names.map((_, which) => app.maths.field(app.answer().coefficients, which, state.time));
      const constants = model.parameters.map((p, j) => [p.name, p.choices ? p.words[p.choices.indexOf(state.inputs[j])] : state.inputs[j]]);
      if (!model.steady) constants.push([model.about.time, model.lift.times[state.time]]);
      const quoted = (text) => (/[",\n]/.test(String(text)) ? `"${String(text).replaceAll('"', '""')}"` : text), tail = constants.map(([, value]) => quoted(value));
      const place = new Uint32Array(n);
      for (let i = owner.length - 1; i >= 0; i--) if (owner[i] < n) place[owner[i]] = i; // the node itself comes before its images
      const rows = [[...app.coordinates, ...names, ...constants.map(([name]) => name)].map(quoted).join(",")];
      for (let i = 0; i < n; i++) rows.push([...data.subarray(d * place[i], d * place[i] + d), ...fields.map((field) => field[i]), ...tail].join(","));
      return rows.join("\n") + "\n";
    }

    async function copy(id, text, label) {
      const done = (said) => { $(id).textContent = said; setTimeout(() => { $(id).textContent = label; }, 1500); };
      try {
        await navigator.clipboard.writeText(text);
        done("Copied");
      } catch {
        if (id === "link") $("python").textContent = text; // not allowed here: at least it can be seen, and is selected
        getSelection().selectAllChildren($("python"));
        done("Selected: copy it");
      }
    }

    async function record() {
      $("film").disabled = true;
      $("film").textContent = "Recording …";
      const blob = await animation();
      $("film").disabled = false;
      $("film").textContent = "Animation";
      if (blob) save(fileName(blob.type.endsWith("mp4") ? "mp4" : "webm"), blob);
      else app.complain("This browser cannot record an animation. Save pictures instead.");
    }

    function build() {
      const text = (id, tip, label, click) => button(label, id, click, { title: tip });
      $("away").replaceChildren(make("h2", {}, "Take away"), make("div", { class: "buttons" },
        text("png", `${PRINT} pixels across, for print`, "PNG", savePicture),
        text("svg", "Lines and letters as such, for papers", "SVG", () => save(fileName("svg"), new Blob([paper()], { type: "image/svg+xml" }))),
        text("film", model.steady ? "Through the parameter of the curve" : "Through all times", "Animation", record),
        text("csv", "The values at the nodes, with the parameters", "CSV", () => save(fileName("csv"), new Blob([table()], { type: "text/csv" }))),
        text("link", "This page with these parameters and this view", "Copy link", () => { app.link.write(); copy("link", location.href, "Copy link"); }),
        text("copy", "The same answer in Python", "Copy as Python", () => copy("copy", $("python").textContent, "Copy as Python"))),
      make("pre", { id: "python", tabindex: "0", "aria-label": "The same in Python" }));
      if (model.steady && model.parameters.every((p) => p.choices)) $("film").hidden = true;
    }

    return { build, picture, paper, table, animation, fileName };
  }

  return { makeTake };
})();
