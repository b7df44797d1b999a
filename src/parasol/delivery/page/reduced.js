"use strict";
// The reduced model: coefficients by least squares where there is no map, and what is known about the errors of any.

const Reduced = (() => {
  // ---- small algebra ------------------------------------------------------------------------------------------------
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

  function factored(a, n) {
    // solves with a square matrix, by elimination with row exchanges; a is used up
    const rows = Array.from({ length: n }, (_, i) => i);
    for (let k = 0; k < n; k++) {
      let best = k;
      for (let i = k + 1; i < n; i++) if (Math.abs(a[rows[i] * n + k]) > Math.abs(a[rows[best] * n + k])) best = i;
      [rows[k], rows[best]] = [rows[best], rows[k]];
      for (let i = k + 1; i < n; i++) {
        const factor = (a[rows[i] * n + k] /= a[rows[k] * n + k]);
        if (factor !== 0) for (let j = k + 1; j < n; j++) a[rows[i] * n + j] -= factor * a[rows[k] * n + j];
      }
    }
    return (b) => {
      const x = new Float64Array(n);
      for (let i = 0; i < n; i++) {
        x[i] = b[rows[i]];
        for (let j = 0; j < i; j++) x[i] -= a[rows[i] * n + j] * x[j];
      }
      for (let i = n - 1; i >= 0; i--) {
        for (let j = i + 1; j < n; j++) x[i] -= a[rows[i] * n + j] * x[j];
        x[i] /= a[rows[i] * n + i];
      }
      return x;
    };
  }

  // ---- coefficients of the affine forms ---------------------------------------------------------------------------------
  function thetas(model, groups, inputs, mu) {
    // the coefficients of an affine form, and a function that weighs their sizes with what rounding may do
    const values = [], sizes = [];
    for (const group of groups) {
      const found = [];
      if (group.formulas) for (const tree of group.formulas) found.push(Numbers.evaluate(tree, mu));
      if (group.rows) {
        const { tree, columns, scalars, places } = group.rows, n = columns.shape[1];
        for (let r = 0; r < n; r++) {
          const variables = [];
          for (let i = 0; i < columns.shape[0]; i++) variables.push(columns.data[i * n + r]);
          for (const j of scalars) variables.push(mu[j]);
          variables.push(0); // the time
          found.push(Numbers.evaluate(tree, variables) * (places ? mu[places.data[r]] : 1));
        }
      }
      if (group.fitted) found.push(...Numbers.run(group.fitted, mu));
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

  // ---- which preconditioner, and what is known of its constant -------------------------------------------------------
  function constants(reduced, theta) {
    const bound = reduced.certificate;
    if (!bound) return { choice: nearest(reduced.nearest, theta), sigma: 1, rigorous: false, plain: 1 };
    if (bound.embeddings) return leastTheta(bound, theta);
    const [anchors, terms] = bound.thetas.shape, choices = bound.sigmas.shape[1];
    let best = { lower: -Infinity }, next = { part: Infinity };
    for (let j = 0; j < anchors; j++) {
      let choice = 0;
      for (let k = 1; k < choices; k++) if (bound.sigmas.data[j * choices + k] > bound.sigmas.data[j * choices + choice]) choice = k;
      const sigma = bound.sigmas.data[j * choices + choice], { middle, part } = change(bound, theta, j, terms);
      const lower = sigma * (1 - part), own = bound.own !== null && bound.own.data[j] === choice;
      if (lower > best.lower) best = { lower, choice, size: Math.abs(middle), left: 1 - part, plain: own ? 1 - part : 0 };
      if (part < next.part) next = { part, choice, sigma };
    }
    if (best.left >= bound.least) return { choice: best.choice, sigma: best.lower * best.size, rigorous: bound.exact, plain: best.plain };
    if (reduced.duals) return { choice: next.choice, sigma: 1, rigorous: false, plain: 1 }; // the estimate needs no constant
    const guess = (bound.safety * next.sigma) / (1 + next.part);
    const smallest = bound.safety * smallestSingularValue(reduced.residuals[next.choice], theta);
    return { choice: next.choice, sigma: Math.min(guess, smallest), rigorous: false, plain: 0 };
  }

  function change(bound, theta, j, terms) {
    // the matrix, seen from that of an anchor, is a multiple of the identity (`middle`) and a rest, at most a `part` of it
    const split = (multiple) => {
      let middle = multiple, spread = 0;
      for (let q = 0, at = j * terms; q < terms; q++, at++) {
        const gap = theta[q] - multiple * bound.thetas.data[at];
        if (bound.centres !== null) middle += gap * bound.centres.data[at];
        spread += Math.abs(gap) * bound.norms.data[at];
      }
      return { middle, spread };
    };
    let best = split(1);
    for (const q of bound.multiples) {
      const ratio = theta[q] / bound.thetas.data[j * terms + q], other = split(Number.isFinite(ratio) && ratio > 0 ? ratio : 1);
      if (Math.abs(other.middle) - other.spread > Math.abs(best.middle) - best.spread) best = other;
    }
    return { middle: best.middle, part: best.middle === 0 ? Infinity : best.spread / Math.abs(best.middle) };
  }

  function leastTheta({ thetas, embeddings }, theta) {
    const [references, terms] = thetas.shape;
    let best = { spread: Infinity, choice: 0, least: 0 };
    for (let k = 0; k < references; k++) {
      const ratios = theta.map((value, q) => value / thetas.data[k * terms + q]).filter((_, q) => thetas.data[k * terms + q] > 0);
      const least = Math.min(...ratios), spread = least > 0 ? Math.max(...ratios) / least : Infinity;
      if (spread < best.spread) best = { spread, choice: k, least };
    }
    return { choice: best.choice, sigma: best.least / embeddings.data[best.choice], rigorous: best.least > 0, plain: 1 };
  }

  function nearest({ squares, right }, theta) {
    // the preconditioner of which a multiple is nearest to the inverse, as the random vectors see it
    const n = right.shape[1];
    let best = 0, most = -Infinity;
    for (let k = 0; k < n; k++) {
      let square = 0, sum = 0, at = k;
      for (let q = 0; q < theta.length; q++) {
        sum += theta[q] * right.data[q * n + k];
        for (let p = q; p < theta.length; p++, at += n) square += theta[q] * theta[p] * squares.data[at];
      }
      const seen = square > 0 ? (sum * sum) / square : 0;
      if (seen > most) { most = seen; best = k; }
    }
    return best;
  }

  // ---- residuals in few rows -------------------------------------------------------------------------------------------
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

  function operatorOf(residual, theta) {
    // columns of the reduced operator, and its Gram matrix
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
    return { columns, gram, d };
  }

  function smallestSingularValue(residual, theta) {
    const { gram, d } = operatorOf(residual, theta);
    return Math.sqrt(Math.max(smallestEigenvalue(gram, d), 0));
  }

  // ---- answers and errors -----------------------------------------------------------------------------------------------
  function coefficients(model, inputs, mu) {
    // argmin ||P (f - A V c)||: normal equations, and one correction with the residual itself
    const theta = thetas(model, model.reduced.operators, inputs, mu).values, phi = thetas(model, model.reduced.loads, inputs, mu).values;
    const residual = model.reduced.residuals[constants(model.reduced, theta).choice];
    const { columns, gram, d } = operatorOf(residual, theta), solve = factored(gram, d);
    const project = (r) => columns.map((column) => column.reduce((sum, x, i) => sum + x * r[i], 0));
    const c = solve(project(residualOf(residual, theta, phi, new Float64Array(d))));
    const correction = solve(project(residualOf(residual, theta, phi, c)));
    return c.map((x, k) => x + correction[k]);
  }

  function bound(model, inputs, mu, c) {
    const { reduced } = model, theta = thetas(model, reduced.operators, inputs, mu).values;
    const { values: phi, noise: loadNoise } = thetas(model, reduced.loads, inputs, mu);
    const known = constants(reduced, theta), weighted = reduced.residuals[known.choice], size = Numbers.norm(c);
    const allowed = ({ load_noise, precision, noise }) => {
      let sum = loadNoise(load_noise) + precision * size;
      for (let k = 0, at = 0; k < c.length; k++) for (let q = 0; q < theta.length; q++) sum += Math.abs(c[k] * theta[q]) * noise.data[at++];
      return sum;
    };
    const allowance = allowed(weighted), normOf = (residual) => Numbers.norm(residualOf(residual, theta, phi, c)) + allowed(residual);
    const about = reduced.duals ? estimate(reduced.duals, theta, phi, c, model.quantities && Numbers.wanted(model, mu), reduced.residuals[0].precision) : null;
    const proven = known.rigorous && weighted.triangle !== null, probable = about !== null && !proven;
    const norm = () => { // a part counts in the larger norm that the constants are about, where they are about one
      const plain = reduced.strong.length ? known.plain : 1;
      return (plain > 0 ? plain * normOf(weighted) : 0) + (plain < 1 ? (1 - plain) * normOf(reduced.strong[known.choice]) : 0);
    };
    const value = probable ? about.factor * about.value + allowance : norm() / known.sigma;
    // what rounding leaves of a full solve is no error of the answer, and no estimate can see below it
    const seen = about === null ? null : Math.hypot(about.value, reduced.residuals[0].precision * size);
    return { value, rigorous: proven, probable, estimate: seen, corrections: about && about.corrections };
  }

  function estimate(duals, theta, phi, c, quantities, precision) {
    // sqrt of the mean of (z_i P (f - A V c))^2 over random vectors z_i, P being inverses combined so that P A is near 1
    const { a, missed } = inverse(duals, theta), z = new Float64Array(duals.blocks.shape[2]), terms = theta.length;
    z.set(phi);
    for (let k = 0; k < c.length; k++) for (let q = 0; q < terms; q++) z[phi.length + k * terms + q] = -c[k] * theta[q];
    const seen = functionals(duals.blocks, a, z), value = Numbers.norm(seen) / Math.sqrt(seen.length), factor = duals.factor / (1 - missed);
    const outputs = duals.outputs && { ...duals.outputs };
    for (const part of outputs ? ["blocks", "tests", "test_rows"] : []) outputs[part] = Numbers.mixed(outputs[part], quantities.mix);
    const unseen = outputs && unseenBy(outputs, quantities.rows.data, a, theta, phi.length, c.length);
    // for each quantity what the residual adds to it, what that leaves typically, and at most as far as one may guess
    const corrections = unseen && Array.from(functionals(outputs.blocks, a, z), (more, o) => {
      const sizes = (quantities.sizes || quantities.rows).data; // of parts, before they cancel
      const rounding = c.reduce((sum, x, k) => sum + Math.abs(x * sizes[o * c.length + k]), 0);
      const left = Math.hypot(unseen[o] * value, precision * rounding); // rounding as of a full solve
      return { value: more, left, most: outputs.slack * factor * left };
    });
    return { value, factor, corrections };
  }

  function inverse(duals, theta) {
    // the weights a of the inverses, and how far P A is from the identity
    const { normal, right, size, ridge } = duals, m = right.shape[1], terms = theta.length;
    const matrix = new Float64Array(m * m), wanted = new Float64Array(m);
    for (let q = 0, at = 0; q < terms; q++) {
      for (let j = 0; j < m; j++) wanted[j] += theta[q] * right.data[q * m + j];
      for (let p = q; p < terms; p++) for (let i = 0; i < m * m; i++) matrix[i] += theta[q] * theta[p] * normal.data[at++];
    }
    const scale = Float64Array.from(wanted, (_, j) => Math.sqrt(matrix[j * m + j]) || 1);
    for (let i = 0; i < m; i++) for (let j = 0; j < m; j++) matrix[i * m + j] = matrix[i * m + j] / (scale[i] * scale[j]) + (i === j ? ridge : 0);
    const a = factored(matrix, m)(wanted.map((x, j) => x / scale[j])).map((x, j) => x / scale[j]);
    const left = 1 - a.reduce((sum, x, j) => sum + x * wanted[j], 0) / size;
    return { a, missed: Math.sqrt(Math.min(1, Math.max(0, left))) };
  }

  function functionals({ data, shape: [count, m, columns] }, a, z) {
    const out = new Float64Array(count);
    for (let i = 0, at = 0; i < count; i++) for (let j = 0; j < m; j++) {
      let sum = 0;
      for (let l = 0; l < columns; l++) sum += data[at++] * z[l];
      out[i] += a[j] * sum;
    }
    return out;
  }

  function unseenBy(outputs, rows, a, theta, loads, d) {
    // for each quantity the typical part of an error that its correction misses, on the modes or on other functions
    const { blocks, tests, test_rows } = outputs, n = test_rows.shape[1];
    return Array.from({ length: blocks.shape[0] }, (_, o) => Math.max(
      gap(blocks, o, loads, rows.subarray(o * d, (o + 1) * d), a, theta), gap(tests, o, 0, test_rows.data.subarray(o * n, (o + 1) * n), a, theta)));
  }

  function gap({ data, shape: [, m, columns] }, o, start, wanted, a, theta) {
    // the quantity o of functions (`wanted`), less that of P A of them: the root of the mean square
    const n = wanted.length;
    let total = 0;
    for (let l = 0; l < n; l++) {
      let rest = wanted[l];
      for (let j = 0; j < m; j++) for (let q = 0; q < theta.length; q++) {
        rest -= a[j] * theta[q] * data[(o * m + j) * columns + start + l * theta.length + q];
      }
      total += rest * rest;
    }
    return Math.sqrt(total / n);
  }

  return { coefficients, bound };
})();
