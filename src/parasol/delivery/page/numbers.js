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

  function lengths({ data, shape: [count, rows, d] }, c) {
    // of the vectors M c, for every one of the matrices M (rows, d)
    return Array.from({ length: count }, (_, f) => norm(times({ data: data.subarray(f * rows * d, (f + 1) * rows * d), shape: [rows, d] }, c)));
  }

  function wanted({ quantities }, mu) {
    // names, rows and norms of the quantities at mu, whose weights may be sums of parts times functions of parameters
    if (!quantities.mixing) return quantities;
    const { names, rows, norms, mixing } = quantities, thetas = mixing.thetas.map((tree) => evaluate(tree, mu));
    const mix = (weights) => ({ weights, owners: mixing.owners, count: names.length }), most = mix(thetas.map(Math.abs));
    return { names, rows: mixed(rows, mix(thetas)), norms: mixed(norms, most), sizes: mixed({ ...rows, data: rows.data.map(Math.abs) }, most), mix: mix(thetas) };
  }

  function mixed(parts, mix) {
    // arrays of parts, first axis, summed to those of quantities
    if (!mix) return parts;
    const [, ...rest] = parts.shape, size = rest.reduce((a, b) => a * b, 1), data = new Float64Array(mix.count * size);
    mix.owners.forEach((owner, p) => { for (let i = 0; i < size; i++) data[owner * size + i] += mix.weights[p] * parts.data[p * size + i]; });
    return { data, shape: [mix.count, ...rest] };
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
    certificate: (model, bound, inputs, mu, c) => Reduced.bound(model, inputs, mu, c),
    probable: (model, bound, inputs, mu, c) => Reduced.bound(model, inputs, mu, c),
    conformal(model, bound, inputs, mu, c) {
      // the level holds for functions as their distribution draws them
      const usual = model.functions.every((f) => norm(inputs.slice(f.input, f.input + f.modes.shape[0])) ** 2 <= f.largest_square);
      const expected = bound.difficulty ? Math.exp(run(bound.difficulty, mu)[0]) : null;
      const followed = bound.jackknife ? jackknife(bound, mu, c) : bound.quantile * (expected === null ? 1 : expected);
      const quantile = usual ? followed : Infinity;
      const value = quantile < 1 ? (norm(c) * quantile) / (1 - quantile) : Infinity;
      const estimate = expected === null ? null : { value: expected * norm(c), relative: expected };
      // what calibrated bounds of quantities are multiples of
      const scale = usual ? norm(c) * (expected === null ? 1 : expected) : Infinity;
      return { value, relative: quantile, rigorous: false, estimate, scale };
    },
    none: () => ({ value: Infinity, relative: Infinity, rigorous: false }),
  };

  function jackknife({ quantile, jackknife: { members, norms, least } }, mu, c) {
    // the largest distance of the answer from fits without one of the samples, as Jackknife.bounds
    let far = 0;
    const compare = (gap, of, floor) => {
      const below = Math.max(norm(of), floor), above = norm(gap);
      far = Math.max(far, above > 0 ? above / below : 0);
    };
    for (const member of members) {
      const other = run(member, mu), gap = Array.from(other, (value, i) => value - (i < c.length ? c[i] : 0));
      compare(gap, other, 0);
      for (const matrix of norms) {
        const times = (x) => Array.from({ length: x.length }, (_, i) => x.reduce((sum, value, j) => sum + matrix.data[i * x.length + j] * value, 0));
        compare(times(gap), times(Array.from(other)), (1 + quantile) * least);
      }
    }
    return quantile + (1 + quantile) * far;
  }

  function relative(value, size, rigorous) {
    if (Number.isNaN(value)) value = Infinity;
    const least = size - Math.min(value, size); // no more than the norm of the solution
    return { value, relative: least > 0 ? value / least : Infinity, rigorous };
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

    const coefficients = (mu, inputs = mu) => (model.map ? run(model.map, mu) : Reduced.coefficients(model, inputs, mu));

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
      const lost = c.reduce((sum, x, k) => sum + Math.abs(x) * lift.loss.data[k], 0), size = norm(c);
      if (model.bound.kind === "certificate" || model.bound.kind === "probable") {
        const estimate = found.estimate === null ? null : Math.hypot(found.estimate, lost);
        const about = estimate === null ? null : { value: estimate, relative: size > 0 ? estimate / size : Infinity };
        return { ...relative(found.value + lost, size, found.rigorous), unrounded: relative(found.value, size, false).relative, probable: found.probable, estimate: about, corrections: found.corrections };
      }
      const least = size - found.value; // no more than the norm of the solution
      return { ...found, lost, value: found.value + lost, relative: found.relative + (least > 0 ? lost / least : Infinity), unrounded: found.relative };
    }

    function quantities(c, time, error, mu) {
      if (model.scalars) return [...functionals(c, time, error, mu), ...scalars(mu, time, error)];
      return functionals(c, time, error, mu);
    }

    function scalars(mu, time, { scale }) {
      // quantities that are no functionals of the field have a map of their own; their bounds end where those of the field do
      const { map, quantities: found } = model.scalars, c = run(map, mu), [, steps, d] = found.rows.shape;
      return found.names.map((name, q) => {
        const at = q * steps + time, value = found.rows.data.subarray(at * d, (at + 1) * d).reduce((sum, x, k) => sum + x * c[k], 0);
        const bound = found.factors && Number.isFinite(scale) ? found.factors[q] * found.norms.data[at] * norm(c) : Infinity;
        return { name, value, bound, estimate: null };
      });
    }

    function functionals(c, time, error, mu) {
      if (!model.quantities) return [];
      const found = wanted(model, mu), [, steps, d] = found.rows.shape, rows = found.names.map((_, q) => found.rows.data.subarray((q * steps + time) * d, (q * steps + time + 1) * d));
      const factors = error.scale === undefined ? null : model.quantities.factors;
      return found.names.map((name, q) => {
        const value = rows[q].reduce((sum, x, k) => sum + x * c[k], 0), bound = found.norms.data[q * steps + time] * (factors ? factors[q] * error.scale : error.value);
        if (!error.corrections) return { name, value, bound, estimate: null };
        const { value: more, left, most } = error.corrections[q], all = bound + Math.abs(more);
        return { name, value: value + more, bound: error.rigorous ? all : Math.min(most, all), estimate: left };
      });
    }

    function discretisation(mu, c) {
      // how far the solver itself is from the equation's solution, as estimated; null: not known
      const found = model.discretisation;
      if (found.defects) {
        const [gaps, sizes] = [found.defects.changes, found.defects.sizes].map((parts) => lengths(parts, c)), most = Math.max(...sizes);
        return Math.max(...gaps.map((gap, f) => gap / (sizes[f] || most)));
      }
      return found.map ? Math.exp(run(found.map, mu)[0]) : found.constant;
    }

    function answer(inputs, { which = 0, time = 0 } = {}) {
      const mu = expand(inputs), c = coefficients(mu, inputs), error = bound(inputs, mu, c);
      return { mu, coefficients: c, values: field(c, which, time), bound: error, quantities: quantities(c, time, error, mu), discretisation: discretisation(mu, c) };
    }

    return { expand, coefficients, field, bound, quantities, discretisation, answer };
  }

  return { decode, makeModel, norm, evaluate, run, wanted, mixed };
})();
