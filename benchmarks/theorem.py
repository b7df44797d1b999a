"""How large the theorem's networks are: weights over accuracies and modes, for the Helmholtz problem and three others.

python benchmarks/theorem.py --json docs/results/theorem-growth.json
python benchmarks/theorem.py --draw docs/theorem.svg --table --from docs/results/theorem-growth.json
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

from matplotlib.figure import Figure

import parasol as ps
from parasol.errors import NoCertificate
from parasol.pde import discretize_with
from parasol.report import machine_facts, write_json
from parasol_lab.theorem.construction.construct import build
from parasol_lab.theorem.construction.plan import Design, Plan
from parasol_lab.theorem.construction.stability import stability
from parasol_lab.theorem.construction.system import reduced_system
from parasol_lab.theorem.growth import bound_of
from parasol_lab.theorem.lower import lower_bound
from parasol_lab.theorem.testing import tested

ACCURACIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MODES = (2, 3, 5, 7, 10, 14, 17)
HELMHOLTZ_MODES = 17


def problems() -> dict[str, tuple[ps.Problem, ps.Settings, int]]:
    """Problems with their settings and numbers of modes: one to three parameters, affine, polynomial and rational."""
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    a, k, b = ps.parameters(a=(0.1, 4.0), k=(0.0, 2.0), b=(-2.0, 2.0))
    (e,) = ps.parameters(e=(0.5, 4.0))
    few = ps.Settings(n_nodes=400)
    helmholtz = ps.load_problem("helmholtz")

    def on_disc(equation, name):
        return ps.Problem(ps.Disc(), equation, ps.Dirichlet(0), name=name)

    return {
        "helmholtz": (helmholtz, helmholtz.settings["paper"], HELMHOLTZ_MODES),
        "one parameter": (on_disc(ps.Eq(-a * ps.laplacian(u) + u, 1 + x), "one parameter"), few, 6),
        "two parameters, rational": (
            on_disc(ps.Eq(-ps.laplacian(u) + a**2 / (1 + k) * u, 1 + k * x), "two parameters, rational"),
            few,
            6,
        ),
        "three parameters": (
            on_disc(ps.Eq(-e * ps.laplacian(u) + b * u.diff(x) + k * u, 1 + x), "three parameters"),
            few,
            8,
        ),
    }


def counted(model: ps.pde.Model, planned: Plan) -> dict:
    """Sizes of all constructions, bounds and the error of the smallest for one system and accuracy."""
    begin = time.perf_counter()
    row: dict = {"accuracy": planned.accuracy, "n_modes": planned.system.n_modes}
    try:
        built = build(planned, "chebyshev")
    except NoCertificate as error:
        row["chebyshev"] = {"refused": str(error)}
    else:
        test = tested(
            planned.system,
            built.network,
            model,
            n_weights=built.network.n_weights,
            size=planned.stability.size,
            seed=0,
            progress=None,
        )
        sizes = {"depth": built.network.depth, "n_weights": built.network.n_weights, "proven": built.proven}
        row["chebyshev"] = sizes | {"error": test["error"], "random_error": test["random_error"], **built.details}
    for name in ("shared", "paper"):
        size = replace(planned, design=Design.named(name)).size
        row[name] = {"depth": size.depth, "n_weights": size.n_weights}
    for kind in ("theorem", "counting", "shared", "refined", "chebyshev"):
        bound = bound_of(planned, kind)
        row[f"bound_{kind}"] = None if bound is None else bound.n_weights
    row["lower"] = asdict(lower_bound(planned.system, planned.accuracy * planned.stability.size))
    return row | {"seconds": time.perf_counter() - begin}


def measured(problem: ps.Problem, settings: ps.Settings, n_modes: int, modes: tuple[int, ...]) -> dict:
    """Rows over accuracies with all modes, and over modes at 1e-2."""
    model = discretize_with(problem, settings, rng=0)
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 100, rng=0)), n_modes=n_modes)
    rows = []
    for d in sorted({n_modes, *modes}):
        system = reduced_system(model, basis.truncated(d))
        constants = stability(system)
        for accuracy in ACCURACIES if d == n_modes else (1e-2,):
            row = counted(model, Plan(system, constants, accuracy, Design.named("shared")))
            rows.append(row | {"kappa": constants.kappa})
            print(problem.name, d, accuracy, row["chebyshev"], f"{row['seconds']:.0f} s", flush=True)
    return {"problem": problem.name, "n_parameters": model.n_parameters, "n_nodes": model.n_nodes, "rows": rows}


CURVES = (
    ("bound_theorem", "the paper's bound", {"color": "C3", "ls": "--"}),
    ("paper", "the paper's network", {"color": "C1", "marker": "s"}),
    ("bound_shared", "bound, shared powers", {"color": "C0", "ls": "--"}),
    ("bound_refined", "bound, coarse inverse and refined vector", {"color": "C4", "ls": "--"}),
    ("shared", "inverse, refined vector, counted", {"color": "C0", "marker": "o"}),
    ("bound_chebyshev", "bound, Chebyshev series", {"color": "C2", "ls": "--"}),
    ("chebyshev", "Chebyshev series, built and proven", {"color": "C2", "marker": "*", "ms": 11}),
    ("lower", "no network has fewer", {"color": "0.4", "ls": ":", "marker": "v"}),
)


def drawn(facts: dict, path: str) -> None:
    """Weights over accuracy and over modes for the first problem, and over accuracy for the others."""
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    rows = facts["problems"][0]["rows"]
    most = max(row["n_modes"] for row in rows)
    at = [row for row in rows if row["n_modes"] == most]
    modes = [row for row in rows if row["accuracy"] == 1e-2]
    for axes, chosen, key in ((first, at, "accuracy"), (second, modes, "n_modes")):
        for name, words, style in CURVES:
            points = [(row[key], _weights(row[name])) for row in chosen if _weights(row[name])]
            axes.plot(*zip(*points, strict=True), label=words, **{"ms": 5, "lw": 1.5} | style)
    first.set(title=f"{facts['problems'][0]['problem']}, d = {most}", xlabel="accuracy, relative to the largest ‖c‖")
    first.set_ylabel("weights and biases that are not zero")
    second.set(title="accuracy 1e-2", xlabel="modes d", xticks=[row["n_modes"] for row in modes])
    for number, problem in enumerate(facts["problems"][1:]):
        for name, style in (("shared", {"ls": "--"}), ("chebyshev", {"marker": "*", "ms": 9}), ("lower", {"ls": ":"})):
            points = [(row["accuracy"], _weights(row[name])) for row in problem["rows"] if _weights(row[name])]
            label = problem["problem"] if name == "chebyshev" else None
            third.plot(*zip(*points, strict=True), color=f"C{number + 4}", label=label, **style)
    third.set(title="three others (-- shared powers, ·· from below)", xlabel="accuracy")
    for axes in (first, third):
        axes.set_xscale("log")
        axes.invert_xaxis()
    for axes in (first, second, third):
        axes.set_yscale("log")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    third.legend(fontsize=8, frameon=False, loc="center right", bbox_to_anchor=(1, 0.345))  # where no curve is
    figure.savefig(path)


def table(facts: dict) -> str:
    """Markdown: the series' weights, its error found and proven, then the inverse's weights and the bound from below."""
    lines = [
        "| problem | parameters, modes | " + " | ".join(f"{a:.0e}".replace("e-0", "e-") for a in ACCURACIES) + " |"
    ]
    lines.append("|" + "---|" * (2 + len(ACCURACIES)))
    for problem in facts["problems"]:
        d = max(row["n_modes"] for row in problem["rows"])
        rows = {row["accuracy"]: row for row in problem["rows"] if row["n_modes"] == d}
        cells = [_cell(rows[accuracy]) for accuracy in ACCURACIES]
        lines.append(f"| {problem['problem']} | {problem['n_parameters']}, {d} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: dict) -> str:
    series = row["chebyshev"]
    if "refused" in series:
        return f"refused: {series['refused']}"
    parts = (
        f"{series['error']:.1e} ≤ {series['proven']:.2e}; {row['shared']['n_weights']:.1e}; {row['lower']['n_weights']}"
    )
    return f"**{series['n_weights']:,}**; ".replace(",", " ") + parts


def _weights(entry) -> int | None:
    return entry.get("n_weights") if isinstance(entry, dict) else entry


def main() -> None:
    """Measure, draw, or both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="measure and write here")
    parser.add_argument("--from", dest="source", help="results to draw")
    parser.add_argument("--draw", help="figure to write: .svg, .png")
    parser.add_argument("--table", action="store_true", help="print the table of problems and accuracies")
    given = parser.parse_args()
    if given.json:
        results = [measured(*entry, MODES if name == "helmholtz" else ()) for name, entry in problems().items()]
        write_json({"problems": results, "machine": machine_facts()}, given.json)
    if given.draw or given.table:
        facts = json.loads(Path(given.source or given.json).read_text())
        if given.draw:
            drawn(facts, given.draw)
        if given.table:
            print(table(facts))


if __name__ == "__main__":
    main()
