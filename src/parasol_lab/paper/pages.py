"""The report of an experiment: the problem, tables with the paper's numbers beside ours, figures, and what to make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from parasol.report import (
    EMBEDDED_CHARACTERS,
    IN_REPORTS,
    Block,
    Cell,
    Embedded,
    Facts,
    Figure,
    Scattered,
    Section,
    Statement,
    Table,
    draw_nodes,
    draw_spectrum,
    panels,
    plot_solution,
    save_figure,
    statement,
    symbol,
    written_alike,
)
from parasol_lab.paper.curves import draw_budget, draw_efficiency
from parasol_lab.paper.helmholtz import SHOWN as SHOWN_HELMHOLTZ
from parasol_lab.paper.numbers import Stated
from parasol_lab.paper.panels import draw_cuts, draw_in_time, draw_on_sphere, draw_solvers
from parasol_lab.paper.run import RICH, Outcome, Run
from parasol_lab.paper.settings import scheme_words, settings_rows
from parasol_lab.paper.sine_gordon import SHOWN as SHOWN_SINE_GORDON
from parasol_lab.paper.words import (
    conclusion,
    not_reproduced,
    readings_table,
    scattered,
    theory_words,
)

PAGE = "explore.html"
_ROUNDING = 1e-12  # modes are orthonormal to 1e-13 or so: below, V Vᵀ u is not the best approximation
_MOMENT = 5.0  # at which a solution in time is shown at the top
_MEANING = {
    "paper": "the paper's scheme, samples and training, read as simply as possible",
    "best": "as many samples as the paper, trained as parasol does",
    "few": "parasol as it is meant to be used: as few full solves as the accuracy needs",
}


def top_of(run: Run, outcome: Outcome) -> list[Block]:
    """What stands above everything: the problem in mathematics, and what a solution looks like."""
    run.figure("nodes").parent.mkdir(parents=True, exist_ok=True)
    figure, mu_words = _one_solution(run, outcome)
    caption = f"A solution by RBF-FD on {outcome.model.nodes.n_nodes} nodes, {mu_words}."
    return [
        Statement(tuple(statement(outcome.model.problem))),
        kept(run, figure, "problem", caption, "a solution", columns=3),
    ]


def sections_of(run: Run, outcome: Outcome, results: Facts, page: str) -> list[Section]:
    """All sections, their figures drawn; `page` is the explorer, which travels with the report where it is small enough."""
    run.progress("figures")
    return [
        Section("In short", (conclusion(run, results), _solvers(run.stated, results), _explorer(page, results))),
        Section("The nodes", tuple(_nodes(run, outcome, results))),
        Section("How many modes", tuple(_spectrum(run, outcome, results))),
        Section("One solution", tuple(_shown(run, outcome))),
        Section("Where the error comes from", tuple(_budget(run, results))),
        Section("Error against the number of full solves", tuple(_growth(run, results))),
        Section("The hypotheses of the theory", tuple(_theory(run, results))),
        *([Section("What the paper leaves open", (readings_table(run, results),))] if results.get("readings") else []),
        Section("What could not be reproduced", tuple(not_reproduced(run, results))),
        Section("Settings", (_settings(run, results),)),
    ]


def kept(run: Run, figure: Any, name: str, caption: str, alt: str, columns: int = 2) -> Figure:
    """A figure written as PNG beside the report, and its panels for the report."""
    save_figure(figure, run.figure(name))
    return Figure(panels(figure), caption, alt, columns)


def _explorer(page: str, results: Facts) -> Block:
    if len(page) <= EMBEDDED_CHARACTERS:
        bound = ", with its bound" if results.get("certificate") else ""
        return Embedded(f"Move the parameters yourself: the surrogate computes here{bound}", page)
    return (
        f"With {1e-6 * len(page):.0f} MB the page on which one moves the parameters oneself is too large for this file: it was "
        f"written as `{PAGE}` beside it, and `parasol explore model.parasol --out {PAGE}` writes it again."
    )


def preset_words(preset: str) -> str:
    """What a preset means."""
    return _MEANING[preset]


# ---- the solvers ----------------------------------------------------------------------------------------------------
def _solvers(stated: Stated, results: Facts) -> Table:
    """Every solver: error, time to answer, time to fit, full solves; the paper's beside ours."""
    rows: list[tuple[Cell, ...]] = []
    emphasis, notes = [], []
    trained: dict[str, list[str]] = {}
    for name, facts in results["solvers"].items():
        paper = stated.solvers.get(name, {})
        theirs = (paper.get("error"), _times(paper.get("inference_seconds"), 1e3), paper.get("fit_seconds"))
        if "skipped" in facts:
            rows.append((name, "not run", theirs[0], None, theirs[1], None, theirs[2], None))
            notes.append(f" {name} was not run: {facts['skipped']}.")
            continue
        if name in ("POD-DNN", "reduced model", RICH, "linear map"):
            emphasis.append(len(rows))
        if facts.get("epochs", stated.epochs) != stated.epochs:
            trained.setdefault(f"for {facts['epochs']} epochs", []).append(name)
        if facts.get("at_once", 1) > 1:
            trained.setdefault(f"as {facts['at_once']} networks at once, which share their seconds", []).append(name)
        error: Cell = "the truth here" if facts["error"] is None else scattered(facts)
        ours = (_times(facts["inference_seconds"], 1e3), facts.get("fit_seconds"))
        rows.append((name, error, theirs[0], ours[0], theirs[1], ours[1], theirs[2], facts.get("pde_solves")))
    notes += [f" Trained {how}: {'; '.join(names)}." for how, names in trained.items()]
    headers = ("solver", "error", "paper", "answers, ms", "paper, ms", "fit, s", "paper, s", "full solves")
    n = next(f["n_queries"] for f in results["solvers"].values() if "n_queries" in f)
    caption = (
        f"Mean relative $l_2$ error against RBF-FD over {n} test parameters (± its standard deviation over seeds), time to answer all of them "
        f"(here: {results['machine']['cpus']} CPU cores), time to fit, full solves that built it. "
        f"The paper: {stated.pde_solves} full solves, Intel i7-11800H.{''.join(notes)}"
    )
    if any(facts.get("fitted_earlier") for facts in results["solvers"].values()):
        caption += " Maps fitted in an earlier run were read again; their seconds are those of that run."
    columns = [
        i for i in range(len(headers)) if i == 0 or any(row[i] is not None for row in rows)
    ]  # the paper has not all
    alike = [tuple(columns.index(i) for i in pair if i in columns) for pair in ((1, 2), (3, 4), (5, 6))]
    cells = tuple(tuple(row[i] for i in columns) for row in rows)
    return Table(
        tuple(headers[i] for i in columns), cells, caption, tuple(emphasis), tuple(pair for pair in alike if pair)
    )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


# ---- sections -------------------------------------------------------------------------------------------------------
def _nodes(run: Run, outcome: Outcome, results: Facts) -> Iterator[Block]:
    nodes = outcome.model.nodes
    times = outcome.model.problem.times
    in_time = (
        ""
        if times is None
        else f" At {len(times)} stored times a solution has {written_alike([outcome.basis.n_values])[0]} values."
    )
    yield (
        f"{nodes.n_nodes} nodes, {nodes.n_interior} inside and {nodes.n_boundary} on the boundary; stencils: "
        f"{scheme_words(results['scheme'])}.{in_time}"
    )
    if nodes.dimension == 3:
        figure = draw_on_sphere(nodes, outcome.truth.mus[:3])
        text = "The nodes, and three samples of $f$ on the sphere."
        yield kept(run, figure, "nodes", text, "nodes of the ball and three globes", columns=2)
    else:
        text = "The nodes, coloured by how even they are, and how many are how even."
        yield kept(run, draw_nodes(nodes), "nodes", text, "nodes of the domain with a histogram")


def _spectrum(run: Run, outcome: Outcome, results: Facts) -> Iterator[Block]:
    tolerance = run.stated.tolerance
    left = results["projection_error"]
    meaning = "no map into this basis can err less" if left > _ROUNDING else "that is rounding, the modes' own included"
    yield (
        f"{outcome.basis.n_modes} modes are used here; the paper's tolerance {tolerance:g} gave it {run.stated.n_modes}. On the "
        f"test set they leave {left:.2g} of a solution: {meaning}."
    )
    text = (
        "Singular values $s_d$ over the first, and what $d$ modes leave of the snapshots, the root of "
        "$Σ_{i>d} s_i^2$ over $Σ_i s_i^2$; dots mark the numbers of modes used, open ones where nothing is left but rounding."
    )
    figure = draw_spectrum(outcome.spectra, tolerance=tolerance)
    yield kept(run, figure, "spectrum", text, "two falling curves")
    if "truncation" in results:
        rows = [tuple(row[k] for k in ("degree", "n_modes", "harmonics")) for row in results["truncation"]]
        labelled = tuple((f"{degree}", modes, terms) for degree, modes, terms in rows)
        caption = (
            "The degree at which the series of $f$ is cut decides the number of modes; the paper does not state it."
        )
        yield Table(("degree", f"modes at {tolerance:g}", "terms of f"), labelled, caption)


def _sample(run: Run, outcome: Outcome) -> tuple[Any, str]:
    """The parameter that is shown, the paper's where it shows one, and its words."""
    shown = {"helmholtz": SHOWN_HELMHOLTZ, "sine-gordon": SHOWN_SINE_GORDON}
    if run.problem not in shown:
        return outcome.truth.mus[0], "for the first function $f$ of the test set"
    mu = shown[run.problem]
    names = [symbol(name) for name in outcome.model.parameters.names]
    values = [f"{name} = {value:g}".replace("-", "−") for name, value in zip(names, mu.tolist(), strict=True)]
    return mu, f"at the paper's sample, {', '.join(values)}"


def _one_solution(run: Run, outcome: Outcome) -> tuple[Any, str]:
    """The figure of a full solution, and where it is."""
    mu, words = _sample(run, outcome)
    solution: Any = outcome.model.solve(mu)
    if outcome.model.problem.times is not None:
        solution = solution.at(_MOMENT)
        words = f"{words}, at the time {_MOMENT:g}"
    return plot_solution(solution, size=IN_REPORTS), words


def _shown(run: Run, outcome: Outcome) -> Iterator[Block]:
    mu, words = _sample(run, outcome)
    reference: Any = outcome.model.solve(mu)
    values = {name: ask(mu[None])[0] for name, ask in outcome.predictors.items()}
    yield f"The solution {words}."
    if run.problem == "helmholtz":
        text = (
            "Solutions on one scale, and absolute errors against RBF-FD, $l_2$ norms in their titles, on one scale too."
        )
        yield kept(run, draw_solvers(reference, values), "solution", text, "maps of every solver")
    elif run.problem == "sine-gordon":
        figure = draw_in_time(reference, values["POD-DNN"])
        text = "The initial state, the relative error in time, and the absolute error at the start; below RBF-FD, POD-DNN and absolute error at four moments. Errors share a scale."
        yield kept(run, figure, "solution", text, "maps at five moments", columns=3)
    else:
        figure = draw_cuts(reference, {"POD-DNN": values["POD-DNN"]})
        text = "Three cuts: RBF-FD, POD-DNN and absolute error; errors share a scale."
        yield kept(run, figure, "solution", text, "cuts through the ball", columns=3)


def _budget(run: Run, results: Facts) -> Iterator[Block]:
    budget = results["budget"]
    parts = ("discretisation", "projection", "map")
    rows = tuple(
        (name, *[shares[part] for part in parts], scattered(results["solvers"][name]))
        for name, shares in budget.items()
    )
    discretisation = results["discretisation"]
    yield (
        f"The full solver itself is off by {discretisation['error']:.2g} (against {scheme_words(discretisation['reference'])}): errors against it that are "
        "smaller say how well it is imitated, not how well the equation is solved. A surrogate of a finer solver costs the "
        "same to ask."
    )
    shown = {
        name: {part: shares[part] if shares[part] else None for part in parts}
        for name, shares in budget.items()
        if shares["map"] or shares["projection"]
    }
    text = "Discretisation, projection on the basis, and the map."
    yield kept(run, draw_budget(shown), "budget", text, "bars on a logarithmic axis")
    text = "Mean relative errors, and their parts; ± is the standard deviation over seeds, and the parts are means over seeds too."
    yield Table(("solver", *parts, "error against RBF-FD"), rows, text, alike=((1, 2, 3, 4),))


def _growth(run: Run, results: Facts) -> Iterator[Block]:
    series: dict[str, tuple[list[float], list[float]]] = {}
    rows: list[tuple[Cell, ...]] = []
    for point in results["growth"]:
        counts, errors = series.setdefault(point["series"], ([], []))
        counts.append(point["n_solves"])
        errors.append(point["error"])
        rows.append((point["series"], point["n_solves"], scattered(point)))
    stated, name = run.stated, "the paper's POD-DNN"
    theirs = float(stated.solvers["POD-DNN"]["error"] or np.nan)
    series[name] = ([stated.pde_solves], [theirs])
    rows.append((name, stated.pde_solves, Scattered(theirs)))
    floor = results["projection_error"]
    floors = {f"left by {results['n_modes']} modes": floor} if floor > _ROUNDING else {}
    yield "Full solves are what costs. The same number of them, spent in different ways:"
    text = "Error on the test set against all full solves spent."
    if floors:
        text += f" The dashed line is what the {results['n_modes']} modes of POD-DNN leave; curves with other bases may pass it."
    yield kept(run, draw_efficiency(series, floors=floors), "efficiency", text, "falling curves, one per method")
    caption = "All full solves counted: basis, training, validation. ± is the standard deviation over seeds."
    if "calibration" in results["sizes"]:
        caption += f" Not counted: the {results['sizes']['calibration']} that give POD-DNN its bound."
    if RICH in results["solvers"]:
        caption += f" The points with the most solves are those of “{RICH}” above."
    order = list(series)
    rows.sort(key=lambda row: order.index(str(row[0])))
    yield Table(("method", "full solves", "error"), tuple(rows), caption)


def _theory(run: Run, results: Facts) -> Iterator[Block]:
    hypotheses = results["hypotheses"]
    kinds = {"raw": "rows as they are", "preconditioned": "multiplied with an inverse", "step": "one step in time"}
    rows = []
    for key, label in kinds.items():
        if key in hypotheses:
            names = ("alpha", "beta", "gamma", "alpha_over_beta", "epsilon_1", "epsilon_2", "epsilon_3")
            rows.append((label, *[hypotheses[key].get(name) for name in names]))
    yield from theory_words(run, results)
    headers = ("", "$α$", "$β$", "$γ$", "$α/β$", "$ε_1$", "$ε_2$", "$ε_3$")
    caption = f"Over {hypotheses['n_parameters_tried']} parameters."
    if any(row[5] is not None for row in rows):
        caption += " $ε_1$, $ε_2$, $ε_3$: how exactly the theorem's networks have to represent $B$ and $f$ for an accuracy of 0.01."
    columns = [i for i in range(len(headers)) if i == 0 or any(row[i] is not None for row in rows)]
    cells = tuple(tuple(row[i] for i in columns) for row in rows)
    yield Table(tuple(headers[i] for i in columns), cells, caption)


def _settings(run: Run, results: Facts) -> Table:
    return Table(
        ("", "this run", "the paper"),
        tuple(settings_rows(run, results)),
        f"Preset {run.preset}: {preset_words(run.preset)}.",
    )
