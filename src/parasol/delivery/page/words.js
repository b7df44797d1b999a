"use strict";
// Numbers and findings in words.

const Words = (() => {
  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

  const MEANING = "All three are relative to the size of the whole field: 1 % means that the error, summed over the field, is a hundredth of it. "
    + "The bound and the estimate (▲ ●) are about the distance of this answer from a full solve at the same parameters; the last (◆) is how far a full solve is from the exact solution, and no surrogate can be nearer than that.";

  function number(x, digits = 4) {
    if (x === 0) return "0";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : x < 0 ? "−∞" : "not a number";
    const size = Math.abs(x);
    if (size >= 1e-3 && size < 1e5) return String(Number(x.toPrecision(digits))).replace("-", "−");
    const [mantissa, power] = x.toExponential(digits - 1).split("e");
    const raised = Array.from(String(Number(power)), (letter) => RAISED[letter]).join("");
    return `${String(Number(mantissa)).replace("-", "−")} × 10${raised}`;
  }

  // lines are not broken inside of numbers
  const whole = (text) => text.replaceAll(" × ", "\u00a0×\u00a0").replaceAll(" %", "\u00a0%");

  function settings(model, inputs, digits) {
    // parameters and their values as words, those of functions left out
    return model.parameters.map((p, j) => [p.name, p.choices ? p.words[p.choices.indexOf(inputs[j])] : number(inputs[j], digits)]);
  }

  const listed = (pairs) => pairs.map(([name, value]) => `${name} = ${value}`).join(", ");

  function short(x, most) {
    // as in a program, for narrow places: five digits, or as many as `most` letters have room for
    const form = (digits) => (x !== 0 && (Math.abs(x) >= 1e5 || Math.abs(x) < 1e-4) ? String(Number(x.toPrecision(digits)).toExponential()).replace("e+", "e") : String(Number(x.toPrecision(digits))));
    return [5, 4, 3, 2].map(form).find((text) => text.length <= most) || form(2);
  }

  function errorWords(bound, program, probability) {
    // {kind (a class), big, words, note}: what is known about the error of this answer
    const of = "of the whole field, against the solver that the surrogate was learned from";
    if (program.kind === "certificate" || program.kind === "probable") {
      const note = `Relative error ${of}. ${program.reason}`.trim(), most = number(bound.relative, 2);
      if (!Number.isFinite(bound.relative)) return { kind: "unknown", big: "no useful bound here", words: "the bound exceeds the field itself", note };
      if (bound.rigorous) return { kind: "proven", big: `≤ ${most}`, words: "proven for these parameters", note };
      if (bound.probable) return { kind: "likely", big: `≤ ${most}`, words: `probable: it holds with probability ${number(probability, 4)} for these parameters`, note };
      return { kind: "guessed", big: `≲ ${most}`, words: "estimated: no proof reaches these parameters", note };
    }
    if (program.kind === "conformal" && !Number.isFinite(bound.relative)) {
      return { kind: "unknown", big: "no bound here", words: "this function is unlike those that the bound was calibrated with", note: "" };
    }
    if (program.kind === "conformal" && program.level === null) {
      return { kind: "guessed", big: `≲ ${number(bound.relative, 2)}`, words: "estimated from samples that were not drawn at random", note: `Relative error ${of}. ${program.meaning} ${program.reason}` };
    }
    if (program.kind === "conformal") {
      const percent = number(100 * program.level, 3);
      return { kind: "likely", big: `≤ ${number(bound.relative, 2)}`, words: `calibrated: it holds for ${percent} of 100 new parameters`, note: `Relative error ${of}. ${program.meaning} ${program.reason}` };
    }
    const measured = Object.entries(program.measured).map(([name, value]) => `${name} ${number(value, 2)}`).join(", ");
    const note = `${program.reason} ${measured ? `Measured when it was made: ${measured}.` : ""}`.trim();
    return { kind: "unknown", big: "no bound", words: "nothing is known about the error of this answer", note };
  }

  function estimateWords(bound) {
    // the error itself, where it is estimated: one sentence
    return bound.estimate && Number.isFinite(bound.estimate.relative) ? `The relative error itself is estimated at ${number(bound.estimate.relative, 2)}.` : "";
  }

  function roundingWords(bound) {
    // where the page's bound reads otherwise than Python's
    if (!Number.isFinite(bound.relative) || !Number.isFinite(bound.unrounded) || number(bound.relative, 2) === number(bound.unrounded, 2)) return "";
    return `This page keeps fields in single precision, which is counted in its bound; in Python the bound is ${number(bound.unrounded, 2)}.`;
  }

  function python(model, inputs, time) {
    const short = (x) => Number(x.toPrecision(12)), list = (values) => `[${Array.from(values, short).join(", ")}]`;
    const names = model.parameters.map((p) => p.name);
    // at the end of a range all digits count: rounded, the number would lie outside
    const scalars = `[${model.parameters.map((p, j) => (short(inputs[j]) < p.low || short(inputs[j]) > p.high ? inputs[j] : short(inputs[j]))).join(", ")}]`;
    const lines = ["import parasol as ps"];
    if (model.functions.length) lines.push("import numpy as np");
    lines.push("", `surrogate = ps.load(${JSON.stringify(model.file)})${model.saved ? "" : "  # where ps.save put it"}`);
    if (model.functions.length) {
      lines.push("layout = surrogate.layout", `mu = [np.array(${scalars})]`);
      model.functions.forEach((f, i) => {
        const values = list(inputs.slice(f.input, f.input + f.modes.shape[0]));
        const nodes = f.on === "boundary" ? "layout.points[layout.n_interior:]" : "layout.points";
        lines.push(`${f.name} = np.array(${values})  # coordinates of its modes`);
        lines.push(f.given ? `mu.append(${f.name} @ modes)  # the modes of the samples this page was made with`
          : `mu.append(${f.name} @ surrogate.parameters.functions[${i}].distribution.modes(${nodes}))`);
      });
      lines.push("answer = surrogate(np.concatenate(mu))");
    } else lines.push(`answer = surrogate(${scalars})  # ${names.join(", ")}`);
    lines.push("print(answer.values.min(), answer.values.max())");
    if (model.bound.kind !== "none") lines.push("print(answer.bound)");
    if (model.reduced && model.reduced.duals) lines.push("print(answer.estimate)");
    if (!model.steady) lines.push(`# shown is ${model.about.time} = ${model.lift.times[time]}, stored time number ${time}`);
    return lines.join("\n");
  }

  return { number, whole, short, settings, listed, errorWords, estimateWords, roundingWords, python, MEANING };
})();
