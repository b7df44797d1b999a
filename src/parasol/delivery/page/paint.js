"use strict";
// Solids by WebGL2: values are interpolated across triangles, and only then turned into colours.

const Paint = (() => {
  // lightness rises evenly (Oklab) from end to end, or from both ends to the middle
  const MAPS = {
    sequential: ["#240344", "#281662", "#1f2c7f", "#04478a", "#03608b", "#007692", "#0b8c98", "#0fa39c", "#0abb98", "#4fd089", "#96dd83", "#cce888", "#f9f39b"],
    diverging: ["#023973", "#1d589e", "#497ab8", "#729bd0", "#9cbce4", "#c8dbf3", "#f5f5f5", "#f2cfca", "#e1a9a1", "#ca8379", "#b05d53", "#93352d", "#720306"],
  };
  // without a graphics card every number that is interpolated costs time: what is linear is reckoned at the corners
  const VERTEX = `
    in vec3 position; in float value; in vec3 normal; uniform mat4 view; uniform vec4 plane; uniform vec3 eye; uniform float lift; out vec3 at; out vec3 p;
    void main() {
      at = vec3(value, plane.w - dot(plane.xyz, position), dot(normal, normal) > 0.0 ? dot(normalize(normal), eye) : 1.0);
      p = position;
      gl_Position = view * vec4(position, 1.0);
      gl_Position.z -= lift;
    }`;
  // colours are those of the bar, not shaded; only what turns away from the viewer is darker, and surfaces of one value are lit
  const FRAGMENT = `
    precision highp float;
    in vec3 at; in vec3 p; out vec4 colour;
    uniform sampler2D map; uniform vec3 low, high, plain; uniform float lines, offset, lit, fade;
    void main() {
      if (at.y < 0.0) discard;
      #ifdef IMAGES
      if (any(lessThan(p, low)) || any(greaterThan(p, high))) discard;
      #endif
      float v = at.x, facing = abs(at.z);
      vec3 c = texelFetch(map, ivec2(int(clamp(v, 0.0, 1.0) * 1023.0 + 0.5), 0), 0).rgb;
      if (lines > 0.0) {
        float level = (v - offset) * lines, width = fwidth(level);
        float far = abs(fract(level - 0.5) - 0.5) / max(width, 1e-6);
        float within = smoothstep(0.001, 0.006, min(v, 1.0 - v)); // no lines where the field only just reaches an end of its range
        vec3 ink = vec3(dot(c, vec3(0.3, 0.59, 0.11)) < 0.353 ? 1.0 : 0.0); // light lines where the colours are dark
        c = mix(c, ink, 0.55 * within * (1.0 - smoothstep(0.4, 1.3, far)) * (1.0 - smoothstep(0.3, 0.6, width)));
      }
      c *= lit > 0.5 ? 0.6 + 0.4 * facing : 1.0 - 0.5 * (1.0 - smoothstep(0.0, 0.3, facing));
      colour = vec4(mix(c, plain, fade), 1.0);
    }`;

  function colours(name) {
    const stops = MAPS[name].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    return (t) => {
      const at = Math.min(1, Math.max(0, t)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at)), w = at - i;
      return stops[i].map((value, k) => Math.round(value + w * (stops[i + 1][k] - value)));
    };
  }

  const dark = ([r, g, b]) => 0.3 * r + 0.59 * g + 0.11 * b < 90;

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

  function painter(canvas, images) {
    // images: whether cells reach beyond the box, where nothing is shown; smooth edges are for graphics cards
    const gl = canvas.getContext("webgl2", { antialias: !software(), depth: true, alpha: true, premultipliedAlpha: false, powerPreference: "low-power" });
    if (!gl) return null;
    const head = `#version 300 es\n${images ? "#define IMAGES\n" : ""}`, { program: used, uniforms: u } = program(gl, head + VERTEX, head + FRAGMENT, ["position", "value", "normal"]);
    const textures = Object.fromEntries(Object.keys(MAPS).map((name) => [name, texture(gl, colours(name))]));

    function mesh(positions, indices, normals) {
      // positions (3 per corner), values set later; drawn by indices, or corner after corner
      const array = gl.createVertexArray(), made = { array, count: (indices || positions).length / (indices ? 1 : 3), indices, positions: gl.createBuffer(), values: gl.createBuffer() };
      gl.bindVertexArray(array);
      attribute(made.positions, positions, 0, 3);
      attribute(made.values, new Float32Array(positions.length / 3), 1, 1);
      if (normals) attribute((made.normals = gl.createBuffer()), normals, 2, 3);
      if (indices) {
        made.elements = gl.createBuffer();
        gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, made.elements);
        gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
      }
      gl.bindVertexArray(null);
      return made;
    }

    function setIndices(made, indices) {
      gl.bindVertexArray(made.array);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, made.elements);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.DYNAMIC_DRAW);
      gl.bindVertexArray(null);
      made.count = indices.length;
    }

    function attribute(buffer, data, place, size) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 0, 0);
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
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      gl.enable(gl.DEPTH_TEST);
    }

    function draw(made, look) {
      // look: view, map, the box from low to high and the plane that nothing is shown beyond, lines, offset,
      // cull (the side that is left out), lit, eye, fade towards a plain colour, lift towards the viewer, strokes
      gl.useProgram(used);
      gl.uniformMatrix4fv(u.view, false, look.view);
      gl.uniform3fv(u.low, look.low);
      gl.uniform3fv(u.high, look.high);
      gl.uniform4fv(u.plane, look.plane);
      gl.bindTexture(gl.TEXTURE_2D, textures[look.map]);
      gl.uniform1f(u.lift, look.lift || 0);
      gl.uniform1f(u.lines, look.lines || 0);
      gl.uniform1f(u.offset, look.offset || 0);
      gl.uniform1f(u.lit, look.lit ? 1 : 0);
      gl.uniform1f(u.fade, look.fade || 0);
      gl.uniform3fv(u.eye, look.eye);
      gl.uniform3fv(u.plain, look.plain || [0, 0, 0]);
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

    return { mesh, setIndices, setPositions, setValues, clear, draw, remove, finish };
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
    const made = gl.createTexture(), data = new Uint8Array(4 * 1024);
    for (let i = 0; i < 1024; i++) data.set([...colour(i / 1023), 255], 4 * i);
    gl.bindTexture(gl.TEXTURE_2D, made);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 1024, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, data);
    for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, filter, gl.NEAREST);
    for (const wrap of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, wrap, gl.CLAMP_TO_EDGE);
    return made;
  }

  return { painter, colours, dark, software };
})();
