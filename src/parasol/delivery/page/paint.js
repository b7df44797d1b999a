"use strict";
// WebGL2: values are interpolated across triangles, and only then turned into colours.

const Paint = (() => {
  // lightness rises evenly (Oklab) from end to end, or from both ends to the middle
  const MAPS = {
    sequential: ["#240344", "#281662", "#1f2c7f", "#04478a", "#03608b", "#007692", "#0b8c98", "#0fa39c", "#0abb98", "#4fd089", "#96dd83", "#cce888", "#f9f39b"],
    diverging: ["#023973", "#1d589e", "#497ab8", "#729bd0", "#9cbce4", "#c8dbf3", "#f5f5f5", "#f2cfca", "#e1a9a1", "#ca8379", "#b05d53", "#93352d", "#720306"],
  };
  const VERTEX = `#version 300 es
    in vec3 position; in float value; in vec3 normal; uniform mat4 view; uniform float lift; out float v; out vec3 p, n;
    void main() { v = value; p = position; n = normal; gl_Position = view * vec4(position, 1.0); gl_Position.z -= lift; }`;
  // colours are those of the bar, not shaded; only what turns away from the viewer is darker, and surfaces of one value are lit
  const FRAGMENT = `
    precision highp float;
    in float v; in vec3 p, n; out vec4 colour;
    uniform sampler2D map; uniform vec3 low, high, eye, plain; uniform vec4 plane; uniform float lines, offset, lit, fade;
    void main() {
      #ifdef CLIPPED
      if (any(lessThan(p, low)) || any(greaterThan(p, high)) || dot(plane.xyz, p) > plane.w) discard;
      #endif
      vec3 c = texture(map, vec2(clamp(v, 0.0, 1.0), 0.5)).rgb;
      #ifdef SOLID
      if (lines > 0.0) {
        float level = (v - offset) * lines, width = fwidth(level);
        float far = abs(fract(level - 0.5) - 0.5) / max(width, 1e-6);
        float within = smoothstep(0.001, 0.006, min(v, 1.0 - v)); // no lines where the field only just reaches an end of its range
        c *= 1.0 - 0.55 * within * (1.0 - smoothstep(0.4, 1.3, far)) * (1.0 - smoothstep(0.3, 0.6, width));
      }
      float facing = dot(n, n) > 0.0 ? abs(dot(normalize(n), eye)) : 1.0;
      c *= lit > 0.5 ? 0.6 + 0.4 * facing : 1.0 - 0.5 * (1.0 - smoothstep(0.0, 0.3, facing));
      c = mix(c, plain, fade);
      #endif
      colour = vec4(c, 1.0);
    }`;

  // cubics on triangles, by their ten control values (see smooth.js): few triangles, and smooth to the last pixel
  const PATCH_VERTEX = `#version 300 es
    in vec3 position; in vec4 one, two; in vec2 three; uniform mat4 view; flat out vec4 f, g; flat out vec2 h; out vec3 w, p;
    void main() { int k = gl_VertexID % 3; w = vec3(k == 0, k == 1, k == 2); f = one; g = two; h = three; p = position; gl_Position = view * vec4(position, 1.0); }`;
  const PATCH_FRAGMENT = `
    precision highp float;
    flat in vec4 f, g; flat in vec2 h; in vec3 w, p; out vec4 colour; uniform sampler2D map; uniform vec3 low, high;
    void main() {
      #ifdef CLIPPED
      if (any(lessThan(p, low)) || any(greaterThan(p, high))) discard;
      #endif
      float a = w.x, b = w.y, c = w.z;
      float v = a * (a * (f.x * a + 3.0 * f.w * b) + 3.0 * g.x * b * b) + b * (b * (f.y * b + 3.0 * g.y * c) + 3.0 * g.z * c * c)
        + c * (c * (f.z * c + 3.0 * g.w * a) + 3.0 * h.x * a * a) + 6.0 * h.y * a * b * c;
      colour = vec4(texture(map, vec2(clamp(v, 0.0, 1.0), 0.5)).rgb, 1.0);
    }`;

  function colours(name) {
    const stops = MAPS[name].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    return (t) => {
      const at = Math.min(1, Math.max(0, t)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at)), w = at - i;
      return stops[i].map((value, k) => Math.round(value + w * (stops[i + 1][k] - value)));
    };
  }

  let known = null;
  function software() {
    // whether there is no graphics card behind WebGL
    if (known === null) known = look();
    return known;
  }

  function look() {
    const gl = document.createElement("canvas").getContext("webgl2"), names = gl && gl.getExtension("WEBGL_debug_renderer_info");
    return !names || /swiftshader|llvmpipe|software|basic render/i.test(gl.getParameter(names.UNMASKED_RENDERER_WEBGL));
  }

  function painter(canvas, { solid, clipped }) {
    // what is not needed is left out: without a graphics card every bit of it counts, smooth edges above all
    const gl = canvas.getContext("webgl2", { antialias: solid && !software(), depth: solid, alpha: true, premultipliedAlpha: false, powerPreference: "low-power" });
    if (!gl) return null;
    const names = ["position", "value", "normal"], defines = `#version 300 es\n${solid ? "#define SOLID\n" : ""}${clipped ? "#define CLIPPED\n" : ""}`;
    const cubic = solid ? null : program(gl, PATCH_VERTEX, defines + PATCH_FRAGMENT, ["position", "one", "two", "three"]);
    const { program: used, uniforms: u } = program(gl, VERTEX, defines + FRAGMENT, names);
    const textures = Object.fromEntries(Object.keys(MAPS).map((name) => [name, texture(gl, colours(name))]));

    function mesh(positions, indices, normals, like = null) {
      // positions (3 per corner), values set later; drawn by indices, or corner after corner; like: a mesh to share them with
      const array = gl.createVertexArray(), made = { array, count: (indices || positions).length / (indices ? 1 : 3), indices };
      gl.bindVertexArray(array);
      made.positions = like ? like.positions : gl.createBuffer();
      made.values = like ? like.values : gl.createBuffer();
      attribute(made.positions, like ? null : positions, 0, 3);
      attribute(made.values, like ? null : new Float32Array(positions.length / 3), 1, 1);
      if (normals) attribute((made.normals = gl.createBuffer()), normals, 2, 3);
      if (indices) {
        made.elements = gl.createBuffer();
        gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, made.elements);
        gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
      }
      gl.bindVertexArray(null);
      return made;
    }

    function attribute(buffer, data, place, size) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      if (data) gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 0, 0);
    }

    function patches(positions) {
      // triangles corner after corner, with ten control values each, the same at its corners
      const made = { array: gl.createVertexArray(), count: positions.length / 3, positions: gl.createBuffer(), values: gl.createBuffer(), cubic: true };
      gl.bindVertexArray(made.array);
      attribute(made.positions, positions, 0, 3);
      gl.bindBuffer(gl.ARRAY_BUFFER, made.values);
      gl.bufferData(gl.ARRAY_BUFFER, 40 * made.count, gl.DYNAMIC_DRAW);
      [[1, 4, 0], [2, 4, 16], [3, 2, 32]].forEach(([place, size, start]) => { gl.enableVertexAttribArray(place); gl.vertexAttribPointer(place, size, gl.FLOAT, false, 40, start); });
      gl.bindVertexArray(null);
      return made;
    }

    function drawPatches(made, look) {
      const { program: mine, uniforms: v } = cubic;
      gl.useProgram(mine);
      gl.uniformMatrix4fv(v.view, false, look.view);
      gl.uniform3fv(v.low, look.low);
      gl.uniform3fv(v.high, look.high);
      gl.bindTexture(gl.TEXTURE_2D, textures[look.map]);
      gl.disable(gl.CULL_FACE);
      gl.bindVertexArray(made.array);
      gl.drawArrays(gl.TRIANGLES, 0, made.count);
      gl.bindVertexArray(null);
    }

    function setPositions(made, positions) {
      gl.bindBuffer(gl.ARRAY_BUFFER, made.positions);
      gl.bufferSubData(gl.ARRAY_BUFFER, 0, positions);
    }

    function setValues(made, values) {
      gl.bindBuffer(gl.ARRAY_BUFFER, made.values);
      gl.bufferSubData(gl.ARRAY_BUFFER, 0, values);
    }

    function clear() {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT | (solid ? gl.DEPTH_BUFFER_BIT : 0));
      if (solid) gl.enable(gl.DEPTH_TEST);
    }

    function draw(made, look) {
      // look: view, map, the box from low to high and the plane that nothing is shown beyond, lines, offset, and in space
      // cull (the side that is left out), lit, eye, fade towards a plain colour, lift towards the viewer, strokes
      gl.useProgram(used);
      gl.uniformMatrix4fv(u.view, false, look.view);
      gl.uniform3fv(u.low, look.low);
      gl.uniform3fv(u.high, look.high);
      gl.uniform4fv(u.plane, look.plane);
      gl.bindTexture(gl.TEXTURE_2D, textures[look.map]);
      gl.uniform1f(u.lift, look.lift || 0);
      if (solid) {
        gl.uniform1f(u.lines, look.lines || 0);
        gl.uniform1f(u.offset, look.offset || 0);
        gl.uniform1f(u.lit, look.lit ? 1 : 0);
        gl.uniform1f(u.fade, look.fade || 0);
        gl.uniform3fv(u.eye, look.eye);
        gl.uniform3fv(u.plain, look.plain || [0, 0, 0]);
      }
      (look.cull ? gl.enable : gl.disable).call(gl, gl.CULL_FACE);
      if (look.cull) gl.cullFace(look.cull === "front" ? gl.FRONT : gl.BACK);
      gl.bindVertexArray(made.array);
      const what = look.strokes ? gl.LINES : gl.TRIANGLES;
      if (made.indices) gl.drawElements(what, made.count, gl.UNSIGNED_INT, 0);
      else gl.drawArrays(what, 0, made.count);
      gl.bindVertexArray(null);
    }

    function remove(made) {
      gl.deleteVertexArray(made.array);
      for (const buffer of [made.positions, made.values, made.normals, made.elements]) if (buffer) gl.deleteBuffer(buffer);
    }

    function finish() {
      // waits until everything is drawn: for measurements
      gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    }

    return { mesh, patches, drawPatches, setPositions, setValues, clear, draw, remove, finish };
  }

  function program(gl, vertex, fragment, attributes) {
    const made = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    }
    attributes.forEach((name, place) => gl.bindAttribLocation(made, place, name));
    gl.linkProgram(made);
    const names = ["view", "map", "low", "high", "plane", "lines", "offset", "lit", "fade", "eye", "plain", "lift"];
    return { program: made, uniforms: Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(made, name)])) };
  }

  function texture(gl, colour) {
    const made = gl.createTexture(), data = new Uint8Array(4 * 256);
    for (let i = 0; i < 256; i++) data.set([...colour(i / 255), 255], 4 * i);
    gl.bindTexture(gl.TEXTURE_2D, made);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, data);
    for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, filter, gl.LINEAR);
    for (const wrap of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, wrap, gl.CLAMP_TO_EDGE);
    return made;
  }

  return { painter, colours, software };
})();
