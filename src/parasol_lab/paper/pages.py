"""The report of an experiment: tables with the paper's numbers beside ours, figures, and what to make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from parasol.report import Facts, draw_nodes, draw_spectrum
from parasol_lab.paper.helmholtz import SHOWN as SHOWN_HELMHOLTZ
from parasol_lab.paper.numbers import Stated
from parasol_lab.paper.panels import draw_budget, draw_cuts, draw_efficiency, draw_in_time, draw_on_sphere, draw_solvers
from parasol_lab.paper.report import Figure, Section, Table
from parasol_lab.paper.run import RICH, Outcome, Run
from parasol_lab.paper.sine_gordon import SHOWN as SHOWN_SINE_GORDON
from parasol_lab.paper.words import (
    conclusion,
    not_reproduced,
    readings_table,
    settings_rows,
    theory_words,
    with_scatter,
)

PAGE = "explore.html"
_EXPLORE = f"[Move the parameters yourself]({PAGE}): the surrogate computes in the page, with its bound."
_ROUNDING = 1e-12  # modes are orthonormal to 1e-13 or so: below, V Vᵀ u is not the best approximation
_MEANING = {
    "paper": "the paper's scheme, samples and training, read as simply as possible",
    "best": "as many samples as the paper, our training",
    "few": "our way, with as few full solves as the accuracy needs",
}


def sections_of(run: Run, found: Outcome, results: Facts) -> list[Section]:
    """All sections, their figures drawn."""
    run.progress("figures")
    run.figure("nodes").parent.mkdir(parents=True, exist_ok=True)
    return [
        Section("In short", (conclusion(run, results), _solvers(run.stated, results), _EXPLORE)),
        Section("The problem and its nodes", tuple(_nodes(run, found, results))),
        Section("How many modes", tuple(_spectrum(run, found, results))),
        Section("One solution, every solver", tuple(_shown(run, found))),
        Section("Where the error comes from", tuple(_budget(run, results))),
        Section("Error against the number of full solves", tuple(_growth(run, results))),
        Section("The hypotheses of the theory", tuple(_theory(run, results))),
        *([Section("What the paper leaves open", (readings_table(run, results),))] if results.get("readings") else []),
        Section("What could not be reproduced", tuple(not_reproduced(run, results))),
        Section("Settings", (_settings(run, results),)),
    ]


def preset_words(preset: str) -> str:
    """What a preset means."""
    return _MEANING[preset]


# ---- numbers as texts -----------------------------------------------------------------------------------------------
def _number(value, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}g}"


def _seconds(value) -> str:
    """
    >>> _seconds(0.00976), _seconds(32.5), _seconds(900.0), _seconds(None)
    ('9.76 ms', '32.5 s', '15.0 min', '–')
    """
    if value is None:
        return "–"
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 60:.1f} min"


def _solvers(stated: Stated, results: Facts) -> Table:
    """Every solver: error, seconds to answer, seconds to fit, full solves; the paper's beside ours."""
    rows, emphasis, notes = [], [], []
    for name, facts in results["solvers"].items():
        paper = stated.solvers.get(name, {})
        if "skipped" in facts:
            theirs = (paper.get("inference_seconds"), paper.get("fit_seconds"))
            told = (_seconds(seconds) for seconds in theirs)
            rows.append((name, "not run", _number(paper.get("error")), "–", next(told), "–", next(told), "–"))
            notes.append(f" {name} was not run: {facts['skipped']}.")
            continue
        if facts.get("epochs", stated.epochs) != stated.epochs:
            notes.append(f" {name} was trained for {facts['epochs']} epochs.")
        if name in ("POD-DNN", "reduced model", RICH, "linear map"):
            emphasis.append(len(rows))
        if facts.get("at_once", 1) > 1:
            notes.append(f" {facts['at_once']} networks of {name} were trained at once and share their seconds.")
        rows.append(
            (
                name,
                "the truth here" if facts["error"] is None else with_scatter(facts),
                _number(paper.get("error")),
                _seconds(facts["inference_seconds"]),
                _seconds(paper.get("inference_seconds")),
                _seconds(facts.get("fit_seconds")),
                _seconds(paper.get("fit_seconds")),
                "–" if facts.get("pde_solves") is None else str(facts["pde_solves"]),
            )
        )
    headers = ("solver", "error", "paper", "answers", "paper", "fit", "paper", "full solves")
    n = next(f["n_queries"] for f in results["solvers"].values() if "n_queries" in f)
    caption = (
        f"Mean relative l2 error against RBF-FD over {n} test parameters (± its standard deviation over seeds), seconds to answer all of them "
        f"(ours: {results['machine']['cpus']} CPU cores), seconds to fit, full solves that built it. "
        f"The paper: {stated.pde_solves} full solves, Intel i7-11800H.{''.join(notes)}"
    )
    if any(facts.get("fitted_earlier") for facts in results["solvers"].values()):
        caption += " Maps fitted in an earlier run were read again; their seconds are those of that run."
    told = [i for i in range(len(headers)) if i == 0 or any(row[i] != "–" for row in rows)]  # the paper has not all
    kept = tuple(tuple(row[i] for i in told) for row in rows)
    return Table(tuple(headers[i] for i in told), kept, caption, tuple(emphasis))


# ---- sections -------------------------------------------------------------------------------------------------------
def _nodes(run: Run, found: Outcome, results: Facts) -> Iterator[str | Figure]:
    nodes = found.model.nodes
    times = found.model.problem.times
    in_time = "" if times is None else f" At {len(times)} stored times a solution has {found.basis.n_values} values."
    yield (
        f"{nodes.n_nodes} nodes, {nodes.n_interior} inside and {nodes.n_boundary} on the boundary; stencils: "
        f"{results['scheme']}.{in_time}"
    )
    if nodes.dimension == 3:
        path = draw_on_sphere(nodes, found.truth.mus[:3], run.figure("nodes"))
        yield Figure(path, "The nodes, and three samples of f on the sphere.", "nodes of the ball and three globes")
    else:
        path = draw_nodes(nodes, run.figure("nodes"))
        yield Figure(path, "The nodes, coloured by how even they are.", "nodes of the domain with a histogram")


def _spectrum(run: Run, found: Outcome, results: Facts) -> Iterator[str | Figure | Table]:
    tolerance = run.stated.tolerance
    path = run.figure("spectrum")
    draw_spectrum(found.spectra, path, tolerance=tolerance)
    left = results["projection_error"]
    meaning = "no map into this basis can err less" if left > _ROUNDING else "that is rounding, the modes' own included"
    yield (
        f"{found.basis.n_modes} modes are used here; the paper's tolerance {tolerance:g} gave it {run.stated.n_modes}. On the "
        f"test set they leave {left:.2g} of a solution: {meaning}."
    )
    yield Figure(path, "Singular values and energy discarded; the dots mark the number of modes.", "two falling curves")
    if "truncation" in results:
        rows = [tuple(str(row[k]) for k in ("degree", "n_modes", "harmonics")) for row in results["truncation"]]
        caption = "The degree at which the series of f is cut decides the number of modes; the paper does not state it."
        yield Table(("degree", f"modes at {tolerance:g}", "terms of f"), tuple(rows), caption)


def _shown(run: Run, found: Outcome) -> Iterator[str | Figure]:
    path = run.figure("solution")
    shown = {"helmholtz": SHOWN_HELMHOLTZ, "sine-gordon": SHOWN_SINE_GORDON}
    mu: Any = shown.get(run.problem, found.truth.mus[0])
    reference: Any = found.model.solve(mu)
    values = {name: ask(mu[None])[0] for name, ask in found.predictors.items()}
    if run.problem == "helmholtz":
        yield "The paper's sample, μ = (0.927, 1.697)."
        yield Figure(draw_solvers(reference, values, path), "Solution and absolute error.", "maps of every solver")
    elif run.problem == "sine-gordon":
        yield "The paper's sample, μ = (0.097, −0.432)."
        path = draw_in_time(reference, values["POD-DNN"], path)
        yield Figure(path, "Full solution, POD-DNN and absolute error.", "maps at five moments")
    else:
        yield "The first function f of the test set."
        path = draw_cuts(reference, {"POD-DNN": values["POD-DNN"]}, path)
        yield Figure(path, "Three cuts: RBF-FD, POD-DNN and absolute error.", "cuts through the ball")


def _budget(run: Run, results: Facts) -> Iterator[str | Figure | Table]:
    budget = results["budget"]
    parts = ("discretisation", "projection", "map")
    rows = [
        (name, *[_number(shares[part]) for part in parts], _number(shares["error"])) for name, shares in budget.items()
    ]
    found = results["discretisation"]
    yield (
        f"The full solver itself is off by {found['error']:.2g} (against {found['reference']}): errors against it that are "
        "smaller say how well it is imitated, not how well the equation is solved. A surrogate of a finer solver costs the "
        "same to ask."
    )
    shown = {
        name: {part: shares[part] if shares[part] else None for part in parts}
        for name, shares in budget.items()
        if shares["map"] or shares["projection"]
    }
    path = draw_budget(shown, run.figure("budget"))
    yield Figure(path, "Discretisation, projection on the basis, and the map.", "bars on a logarithmic axis")
    yield Table(("solver", *parts, "error against RBF-FD"), tuple(rows), "Mean relative errors, and their parts.")


def _growth(run: Run, results: Facts) -> Iterator[str | Figure | Table]:
    series: dict[str, tuple[list[float], list[float]]] = {}
    scatter = {(p["series"], p["n_solves"]): with_scatter(p) for p in results["growth"]}
    for point in results["growth"]:
        counts, errors = series.setdefault(point["series"], ([], []))
        counts.append(point["n_solves"])
        errors.append(point["error"])
    stated = run.stated
    series["the paper's POD-DNN"] = ([stated.pde_solves], [float(stated.solvers["POD-DNN"]["error"] or np.nan)])
    path = draw_efficiency(
        series, run.figure("efficiency"), floors={f"{results['n_modes']} modes": results["projection_error"]}
    )
    yield "Full solves are what costs. The same number of them, spent in different ways:"
    yield Figure(path, "Error on the test set against all full solves spent.", "falling curves, one per method")
    rows = [
        (name, str(int(n)), scatter.get((name, n), _number(e)))
        for name, (ns, es) in series.items()
        for n, e in zip(ns, es, strict=True)
    ]
    caption = "All full solves counted: basis, training, validation."
    if RICH in results["solvers"]:
        caption += f" The points with the most solves are those of “{RICH}” above."
    yield Table(("method", "full solves", "error"), tuple(rows), caption)


def _theory(run: Run, results: Facts) -> Iterator[str | Table]:
    found = results["hypotheses"]
    kinds = {"raw": "rows as they are", "preconditioned": "multiplied with an inverse", "step": "one step in time"}
    rows = []
    for key, label in kinds.items():
        if key in found:
            names = ("alpha", "beta", "gamma", "alpha_over_beta", "epsilon_1", "epsilon_2", "epsilon_3")
            rows.append((label, *[_number(found[key].get(name)) for name in names]))
    yield from theory_words(run, results)
    yield Table(
        ("", "α", "β", "γ", "α/β", "ε₁", "ε₂", "ε₃"),
        tuple(rows),
        f"Over {found['n_parameters_tried']} parameters. ε₁, ε₂, ε₃: how exactly the theorem's networks have to represent "
        "B and f for an accuracy of 0.01.",
    )


def _settings(run: Run, results: Facts) -> Table:
    return Table(
        ("", "this run", "the paper"),
        tuple(settings_rows(run, results)),
        f"Preset {run.preset}: {preset_words(run.preset)}.",
    )
