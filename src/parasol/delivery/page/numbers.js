"use strict";
// The mathematics of the page: parameters to coefficients, coefficients to fields, and what is known about the errors.
// Numbers are double precision throughout; matrices are flat arrays, row after row.

const Numbers = (() => {
  const TYPES = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u2: Uint16Array };

  function decode(texts) {
    // every {"array": i, ...} of the model becomes {data, shape}
    const read = (ref) => {
      const raw = atob(texts[ref.array]);
      const bytes = new Uint8Array(raw.length);
      for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
      return { data: new TYPES[ref.type](bytes.buffer), shape: ref.shape };
    };
    const walk = (tree) => {
      if (Array.isArray(tree)) return tree.map(walk);
      if (tree === null || typeof tree !== "object") return tree;
      if ("array" in tree) return read(tree);
      return Object.fromEntries(Object.entries(tree).map(([key, item]) => [key, walk(item)]));
    };
    return walk;
  }

  // ---- formulas: trees that were checked where the page was made; nothing is ever compiled from text ---------------
  const OPERATIONS = {
    add: (a, b) => a + b, subtract: (a, b) => a - b, multiply: (a, b) => a * b, divide: (a, b) => a / b,
    float_power: Math.pow, negative: (a) => -a, sin: Math.sin, cos: Math.cos, tan: Math.tan, arcsin: Math.asin,
    arccos: Math.acos, arctan: Math.atan, arctan2: Math.atan2, sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh,
    exp: Math.exp, log: Math.log, sqrt: Math.sqrt, sign: Math.sign, absolute: Math.abs, maximum: Math.max,
    minimum: Math.min, floor: Math.floor, ceil: Math.ceil, heaviside: (x, half) => (x < 0 ? 0 : x > 0 ? 1 : half),
    less: (a, b) => a < b, less_equal: (a, b) => a <= b, greater: (a, b) => a > b, greater_equal: (a, b) => a >= b,
    logical_and: (a, b) => a && b, logical_or: (a, b) => a || b, where: (is, a, b) => (is ? a : b),
  };

  function evaluate(tree, variables) {
    if (typeof tree === "number") return tree;
    if (tree[0] === "x") return variables[tree[1]];
    const arguments_ = tree.slice(1).map((part) => evaluate(part, variables));
    return OPERATIONS[tree[0]](...arguments_);
  }

  // ---- small algebra ------------------------------------------------------------------------------------------------
  function times(matrix, vector, bias) {
    if (matrix.indptr) return timesSparse(matrix, vector, bias);
    const [rows, columns] = matrix.shape, m = matrix.data, out = new Float64Array(rows);
    for (let i = 0, at = 0; i < rows; i++) {
      let sum = bias ? bias.data[i] : 0;
      for (let j = 0; j < columns; j++) sum += m[at++] * vector[j];
      out[i] = sum;
    }
    return out;
  }

  function timesSparse(matrix, vector, bias) {
    const rows = matrix.shape[0], { indptr, indices, data } = matrix, out = new Float64Array(rows);
    for (let i = 0; i < rows; i++) {
      let sum = bias ? bias.data[i] : 0;
      for (let k = indptr.data[i]; k < indptr.data[i + 1]; k++) sum += data.data[k] * vector[indices.data[k]];
      out[i] = sum;
    }
    return out;
  }

  function norm(vector) {
    let sum = 0;
    for (const x of vector) sum += x * x;
    return Math.sqrt(sum);
  }

  function smallestEigenvalue(a, n) {
    // of a symmetric matrix, by Jacobi's rotations; a is used up
    for (let sweep = 0; sweep < 30; sweep++) {
      let off = 0, size = 0;
      for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) (i === j ? (size += a[i * n + j] ** 2) : (off += a[i * n + j] ** 2));
      if (off <= 1e-30 * size) break;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) {
        const apq = a[p * n + q];
        if (apq === 0) continue;
        const theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
        const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1), s = t * c;
        for (let k = 0; k < n; k++) {
          const x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x - s * y;
          a[k * n + q] = s * x + c * y;
        }
        for (let k = 0; k < n; k++) {
          const x = a[p * n + k], y = a[q * n + k];
          a[p * n + k] = c * x - s * y;
          a[q * n + k] = s * x + c * y;
        }
      }
    }
    let least = Infinity;
    for (let i = 0; i < n; i++) least = Math.min(least, a[i * n + i]);
    return least;
  }

  // ---- maps from parameters to coefficients --------------------------------------------------------------------------
  const sigmoid = (x) => 0.5 * (1 + Math.tanh(0.5 * x));
  const ACTIVATIONS = {
    relu: (x) => (x > 0 ? x : 0),
    tanh: Math.tanh,
    silu: (x) => x * sigmoid(x),
    gelu: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))),
  };
  const KERNELS = {
    "gaussian": (s) => Math.exp(-0.5 * s),
    "inverse multiquadric": (s) => 1 / Math.sqrt(1 + s),
    "matern52": (s) => { const r = Math.sqrt(5 * s); return (1 + r + (r * r) / 3) * Math.exp(-r); },
    "matern32": (s) => { const r = Math.sqrt(3 * s); return (1 + r) * Math.exp(-r); },
  };

  // one entry for each operation of surrogate/operations.py
  const PROGRAM = {
    Log(op, x) {
      const out = Float64Array.from(x);
      for (const j of op.columns.data) out[j] = Math.log(x[j]);
      return out;
    },
    Scale(op, x) {
      const { scale, shift, offset } = op;
      return Float64Array.from(x, (value, i) => (value - (shift ? shift.data[i] : 0)) * scale.data[i] + (offset ? offset.data[i] : 0));
    },
    Affine: (op, x) => times(op.weights, x, op.bias),
    Activation: (op, x) => Float64Array.from(x, ACTIVATIONS[op.name]),
    Chebyshev(op, x) {
      const [terms, p] = op.indices.shape, degrees = op.indices.data, out = new Float64Array(terms).fill(1);
      for (let i = 0; i < p; i++) {
        const ladder = [1, x[i]];
        for (let k = 0; k < terms; k++) {
          const degree = degrees[k * p + i];
          for (let n = ladder.length; n <= degree; n++) ladder.push(2 * x[i] * ladder[n - 1] - ladder[n - 2]);
          out[k] *= ladder[degree];
        }
      }
      return out;
    },
    Radial(op, x) {
      const [n, p] = op.centres.shape, kernel = KERNELS[op.name], out = new Float64Array(n);
      for (let k = 0; k < n; k++) {
        let s = 0;
        for (let i = 0; i < p; i++) s += ((x[i] - op.centres.data[k * p + i]) / op.lengths.data[i]) ** 2;
        out[k] = kernel(s);
      }
      return out;
    },
    Sum(op, x) {
      const [out, ...others] = op.branches.map((branch) => run(branch, Float64Array.from(x)));
      for (const other of others) other.forEach((value, i) => { out[i] += value; });
      return out;
    },
  };

  function run(operations, x) {
    for (const op of operations) x = PROGRAM[op.kind](op, x);
    return x;
  }

  // ---- what is known about the errors -------------------------------------------------------------------------------
  const BOUNDS = {
    certificate(model, bound, inputs, mu, c) {
      const theta = thetas(model, bound.operators, inputs, mu).values;
      const { values: phi, noise: loadNoise } = thetas(model, bound.loads, inputs, mu);
      const known = constants(bound, theta), weighted = bound.residuals[known.choice], residual = residualOf(weighted, theta, phi, c);
      let allowance = loadNoise(weighted.load_noise) + weighted.precision * norm(c);
      const terms = theta.length, noise = weighted.noise.data;
      for (let k = 0; k < c.length; k++) for (let q = 0; q < terms; q++) {
        allowance += Math.abs(c[k] * theta[q]) * noise[k * terms + q];
      }
      return relative((norm(residual) + allowance) / known.sigma, norm(c), known.rigorous);
    },
    conformal(model, bound, inputs, mu, c) {
      // the level holds for functions as their distribution draws them
      const usual = model.functions.every((f) => norm(inputs.slice(f.input, f.input + f.modes.shape[0])) ** 2 <= f.largest_square);
      const quantile = usual ? bound.quantile : Infinity;
      const value = quantile < 1 ? (norm(c) * quantile) / (1 - quantile) : Infinity;
      return { value, relative: quantile, rigorous: false };
    },
    none: () => ({ value: Infinity, relative: Infinity, rigorous: false }),
  };

  function relative(value, size, rigorous) {
    if (Number.isNaN(value)) value = Infinity;
    const least = size - Math.min(value, size); // no more than the norm of the solution
    return { value, relative: least > 0 ? value / least : Infinity, rigorous };
  }

  function thetas(model, groups, inputs, mu) {
    // the coefficients of an affine form, and a function that weighs their sizes with what rounding may do
    const values = [], sizes = [];
    for (const group of groups) {
      const found = [];
      if (group.formulas) for (const tree of group.formulas) found.push(evaluate(tree, mu));
      if (group.rows) {
        const { tree, columns, scalars, places } = group.rows, n = columns.shape[1];
        for (let r = 0; r < n; r++) {
          const variables = [];
          for (let i = 0; i < columns.shape[0]; i++) variables.push(columns.data[i * n + r]);
          for (const j of scalars) variables.push(mu[j]);
          variables.push(0); // the time
          found.push(evaluate(tree, variables) * (places ? mu[places.data[r]] : 1));
        }
      }
      if (group.span) {
        // a load that is a function drawn from few modes: its coordinates stand for its many values
        const f = model.functions[group.span.function];
        values.push(...inputs.slice(f.input, f.input + f.modes.shape[0]));
        sizes.push(Array.from(group.span.places.data, (j, i) => Math.abs(group.span.factors.data[i] * mu[j])));
        continue;
      }
      values.push(...found);
      sizes.push(found.map(Math.abs));
    }
    const noise = (weights) => {
      let sum = 0, at = 0;
      for (const size of sizes) for (const x of size) sum += x * weights.data[at++];
      return sum;
    };
    return { values, noise };
  }

  function constants(bound, theta) {
    const [anchors, terms] = bound.thetas.shape, choices = bound.sigmas.shape[1];
    let best = { lower: -Infinity }, nearest = { distance: Infinity };
    for (let j = 0; j < anchors; j++) {
      let choice = 0, distance = 0;
      for (let k = 1; k < choices; k++) if (bound.sigmas.data[j * choices + k] > bound.sigmas.data[j * choices + choice]) choice = k;
      const sigma = bound.sigmas.data[j * choices + choice];
      for (let q = 0; q < terms; q++) distance += Math.abs(theta[q] - bound.thetas.data[j * terms + q]) * bound.norms.data[j * terms + q];
      const lower = sigma * (1 - distance);
      if (lower > best.lower) best = { lower, choice, sigma };
      if (distance < nearest.distance) nearest = { distance, choice, sigma };
    }
    if (best.lower >= bound.least * best.sigma) return { choice: best.choice, sigma: best.lower, rigorous: bound.exact };
    const guess = (bound.safety * nearest.sigma) / (1 + nearest.distance);
    const smallest = bound.safety * smallestSingularValue(bound.residuals[nearest.choice], theta);
    return { choice: nearest.choice, sigma: Math.min(guess, smallest), rigorous: false };
  }

  function column(residual, j) {
    // columns of an upper triangle, one after the other, without the zeros below
    const rows = residual.n_rows, whole = Math.min(j, rows);
    const start = (whole * (whole + 1)) / 2 + (j - whole) * rows;
    return [start, Math.min(j + 1, rows)];
  }

  function addColumn(residual, j, factor, out) {
    const [start, length] = column(residual, j), triangle = residual.triangle.data;
    for (let i = 0; i < length; i++) out[i] += factor * triangle[start + i];
  }

  function residualOf(residual, theta, phi, c) {
    const out = new Float64Array(residual.n_rows), terms = theta.length;
    phi.forEach((value, j) => addColumn(residual, j, value, out));
    for (let k = 0; k < c.length; k++) for (let q = 0; q < terms; q++) {
      addColumn(residual, phi.length + k * terms + q, -c[k] * theta[q], out);
    }
    return out;
  }

  function smallestSingularValue(residual, theta) {
    const d = residual.noise.data.length / theta.length, columns = [];
    for (let k = 0; k < d; k++) {
      const out = new Float64Array(residual.n_rows);
      theta.forEach((value, q) => addColumn(residual, residual.n_loads + k * theta.length + q, value, out));
      columns.push(out);
    }
    const gram = new Float64Array(d * d);
    for (let i = 0; i < d; i++) for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let r = 0; r < residual.n_rows; r++) sum += columns[i][r] * columns[j][r];
      gram[i * d + j] = gram[j * d + i] = sum;
    }
    return Math.sqrt(Math.max(smallestEigenvalue(gram, d), 0));
  }

  // ---- the model ----------------------------------------------------------------------------------------------------
  function makeModel(model) {
    const { lift } = model, n = lift.n_nodes, fields = lift.names.length;

    function expand(inputs) {
      // scalars as they are, functions from the coordinates of their modes
      const mu = new Float64Array(model.n_mu);
      model.parameters.forEach((p, j) => { mu[j] = inputs[j]; });
      for (const f of model.functions) {
        const [modes, points] = f.modes.shape;
        for (let k = 0; k < modes; k++) {
          const x = inputs[f.input + k];
          if (x) for (let i = 0; i < points; i++) mu[f.place + i] += x * f.modes.data[k * points + i];
        }
      }
      return mu;
    }

    const coefficients = (mu) => run(model.map, mu);

    function field(c, which, time, out = new Float32Array(n)) {
      const combine = (matrix, start, weights) => {
        const d = weights.length;
        for (let i = 0, at = start * d; i < n; i++) {
          let sum = 0;
          for (let k = 0; k < d; k++) sum += matrix[at++] * weights[k];
          out[i] = sum;
        }
        return out;
      };
      if (lift.modes) return combine(lift.modes.data, (time * fields + which) * n, c);
      const [, r, d] = lift.evolution.shape, part = lift.evolution.data.subarray(time * r * d, (time + 1) * r * d);
      return combine(lift.space.data, which * n, times({ data: part, shape: [r, d] }, c));
    }

    function bound(inputs, mu, c) {
      const found = BOUNDS[model.bound.kind](model, model.bound, inputs, mu, c);
      // what single precision, and leaving out what cannot be seen, has changed in the modes
      const lost = c.reduce((sum, x, k) => sum + Math.abs(x) * lift.loss.data[k], 0);
      if (model.bound.kind === "certificate") return relative(found.value + lost, norm(c), found.rigorous);
      const least = norm(c) - found.value; // no more than the norm of the solution
      return { ...found, value: found.value + lost, relative: found.relative + (least > 0 ? lost / least : Infinity) };
    }

    function quantities(c, time, error) {
      const found = model.quantities;
      if (!found) return [];
      const [, steps, d] = found.rows.shape;
      return found.names.map((name, q) => {
        let value = 0;
        for (let k = 0; k < d; k++) value += found.rows.data[(q * steps + time) * d + k] * c[k];
        return { name, value, bound: found.norms.data[q * steps + time] * error };
      });
    }

    function discretisation(mu) {
      // how far the solver itself is from the equation's solution, as estimated; null: not known
      const found = model.discretisation;
      return found.map ? Math.exp(run(found.map, mu)[0]) : found.constant;
    }

    function answer(inputs, { which = 0, time = 0 } = {}) {
      const mu = expand(inputs), c = coefficients(mu), error = bound(inputs, mu, c);
      return { mu, coefficients: c, values: field(c, which, time), bound: error, quantities: quantities(c, time, error.value), discretisation: discretisation(mu) };
    }

    return { expand, coefficients, field, bound, quantities, discretisation, answer };
  }

  return { decode, makeModel, norm };
})();
