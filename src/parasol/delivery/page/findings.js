"use strict";
// What is known about the errors: three kinds of them, in words and on one scale.

const Findings = (() => {
  const { $, make } = Parts;
  const DECADES = 10;

  function makeFindings(model) {
    const duals = model.reduced && model.reduced.duals, probability = duals ? duals.probability : null;
    const mark = { bound: "▲", estimate: "●", solver: "◆" };
    const row = (sign) => { const big = make("span", { class: "big" }), said = make("span"), box = make("div", { class: "found" }, make("span", { "aria-hidden": "true" }, sign), make("p", {}, big, " ", said)); return { box, big, said }; };
    const rows = { bound: row(mark.bound), estimate: row(mark.estimate), solver: row(mark.solver) };
    const scale = make("div", { class: "scale", "aria-hidden": "true" }), rounding = make("p", { class: "note" }), more = make("p", { class: "note" });
    $("error").replaceChildren(make("h2", {}, "How wrong can it be?"), scale, rows.bound.box, rows.estimate.box, rows.solver.box, rounding,
      make("details", {}, make("summary", {}, "What these numbers mean"), make("p", { class: "note" }, Words.MEANING), more));
    const signs = Object.fromEntries(Object.keys(mark).map((kind) => [kind, make("i", {}, mark[kind])]));
    scale.append(...Object.values(signs));
    for (const power of [0, 2, 4, 6, 8, 10]) {
      const at = make("span", {}, power === 0 ? "100 %" : power === 2 ? "1 %" : Words.number(10 ** -power, 1).replace("1 × ", ""));
      at.style.left = `${100 * (1 - power / DECADES)}%`;
      scale.append(at);
    }

    function place(kind, value, style) {
      const sign = signs[kind], known = value !== null && Number.isFinite(value) && value > 0;
      sign.hidden = !known;
      if (known) sign.style.left = `${100 * Math.min(1, Math.max(0, 1 + Math.log10(value) / DECADES))}%`;
      sign.className = style;
    }

    function tell(answer) {
      const found = Words.errorWords(answer.bound, model.bound, probability), { bound } = answer;
      rows.bound.box.className = `found ${found.kind}`;
      rows.bound.big.textContent = found.big;
      rows.bound.said.textContent = found.kind === "unknown" ? found.words : Words.whole(`bound on the error, ${found.words}`);
      const estimate = bound.estimate && Number.isFinite(bound.estimate.relative) ? bound.estimate.relative : null;
      rows.estimate.box.hidden = estimate === null;
      rows.estimate.box.className = `found ${found.kind}`;
      rows.estimate.big.textContent = estimate === null ? "" : `≈ ${Words.number(estimate, 2)}`;
      rows.estimate.said.textContent = "estimate of the error itself";
      rows.solver.box.className = "found solver";
      rows.solver.box.hidden = answer.discretisation === null;
      rows.solver.big.textContent = answer.discretisation === null ? "" : `≈ ${Words.number(answer.discretisation, 2)}`;
      rows.solver.said.textContent = "how far a full solve is from the equation's solution, by an estimate";
      place("bound", bound.relative, found.kind);
      place("estimate", estimate, found.kind);
      place("solver", answer.discretisation, "solver");
      scale.hidden = Object.values(signs).every((sign) => sign.hidden);
      rounding.textContent = Words.whole(Words.roundingWords(bound));
      rounding.hidden = !rounding.textContent;
      more.textContent = Words.whole(found.note);
      more.hidden = !found.note;
      return found;
    }

    return { tell };
  }

  return { makeFindings };
})();
