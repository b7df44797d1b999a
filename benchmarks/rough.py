"""Errors on rough problems: re-entrant corners, clamped edges, changes of condition, materials that jump.

    python benchmarks/rough.py [--quick] [--most N] [--seeds N] [--methods stencils elements] [--jobs N] [--json FILE] [CASE ...]
    python benchmarks/rough.py --markdown FILE ...      the table of docs/benchmarks.md, from what --json wrote

Truth is an exact solution, or one by scikit-fem that shares no code with us (benchmarks/references.py). Nodes are the
program's own choice, of five seeds. "at nodes" is the relative l2 error at the nodes of the discretisation, all unknowns
together, "largest" the largest error there over the largest value, "anywhere" the relative l2 error at 2000 random points
of the domain, the same for all. The median and the worst of the seeds are shown; "slope" is that of the median at nodes
against the spacing N^(-1/2), from the least to the largest N. The thermal block has quadratic triangles (P2) beside it.
With --jobs each solve has one core of its own, and --json has every table that is complete, however the run ends.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import parasol as ps
import references
from parasol.pde import discretize_with
from parasol.pde.by_elements import corners_for
from parasol.space.elements import DEFAULT_DEGREE

COUNTS, SEEDS = (1000, 2000, 4000, 8000), 5
KINDS = ("at nodes", "largest", "anywhere")
x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)
BLOCKS = ((1, 2, 1, 2), (0.1, 0.1, 10, 10), (0.1, 10, 10, 0.1), (0.2, 3, 5, 1))


@dataclass(frozen=True, eq=False)
class Case:
    """A problem and its truth: values (n_fields, n) at points (n, 2), and how far they are from it themselves."""

    problem: ps.Problem
    truth: Callable[[np.ndarray], np.ndarray]
    error: float = 0.0
    mu: tuple[float, ...] = ()


def known(domain, boundary: Callable[[Any], dict], exact) -> Case:
    """Laplace's equation with a solution that is known; `boundary` makes the conditions from the condition on its value."""
    problem = ps.Problem(domain, ps.Eq(-ps.laplacian(u), 0), boundary(ps.Dirichlet(exact)))
    formula = sp.lambdify((x, y), exact, "numpy")
    return Case(problem, lambda points: np.reshape(formula(*points.T), (1, -1)))


def _around(start: float) -> sp.Expr:
    """The angle from a side that leaves the origin under the angle `start`, between 0 and 2π."""
    return sp.Piecewise((sp.atan2(y, x) - start, y >= 0), (sp.atan2(y, x) + 2 * sp.pi - start, True))


def ell_with_values() -> Case:
    """L-shape, r^(2/3) sin(2φ/3)."""
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -2), (2, 0)).named("notch")
    exact = (x**2 + y**2) ** sp.Rational(1, 3) * sp.sin(2 * _around(0) / 3)
    return known(domain, lambda value: {"notch": ps.Dirichlet(0), "*": value}, exact)


def ell_with_slopes() -> Case:
    """L-shape, r^(2/3) cos(2φ/3), no flux through the sides of the re-entrant corner."""
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -2), (2, 0)).named("notch")
    exact = (x**2 + y**2) ** sp.Rational(1, 3) * sp.cos(2 * _around(0) / 3)
    return known(domain, lambda value: {"notch": ps.Neumann(0), "*": value}, exact)


def slit() -> Case:
    """A slit that opens by 1/50 of its length, nearly r^(1/2) sin(φ/2): 0 on its sides."""
    half = 0.01
    domain = ps.Box((-1, -1), (1, 1)) - ps.Polygon([(0, 0), (2, -2 * half), (2, 2 * half)]).named("slit")
    start = float(np.arctan(half))
    power = np.pi / (2 * np.pi - 2 * start)
    exact = (x**2 + y**2) ** (power / 2) * sp.sin(power * _around(start))
    return known(domain, lambda value: {"slit": ps.Dirichlet(0), "*": value}, exact)


def baffle() -> Case:
    """1 left, 0 right, a thin insulated baffle between that leaves a quarter open."""
    reference = references.baffle(0.01, 0.5)
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((-0.01, -2), (0.01, 0.5)).named("baffle")
    boundary = {"left": ps.Dirichlet(1), "right": ps.Dirichlet(0), "*": ps.Neumann(0)}
    return Case(ps.Problem(domain, ps.Eq(-ps.laplacian(u), 0), boundary), reference, reference.error)


def motz() -> Case:
    """Motz's problem: a value meets a slope in the middle of a side."""
    reference = references.motz()
    domain = ps.Box((-1, 0), (1, 1)).named(cold=(y <= 0) & (x < 0))
    boundary = {"cold": ps.Dirichlet(0), "right": ps.Dirichlet(500), "*": ps.Neumann(0)}
    return Case(ps.Problem(domain, ps.Eq(-ps.laplacian(u), 0), boundary), reference, reference.error)


def elastic(domain, reference: references.Reference, pull: tuple) -> Case:
    """Linear elasticity with both of Lamé's constants 1: clamped left, `pull` on the right, free elsewhere."""
    v, w = ps.unknowns("v w", x, y)
    (nx, ny), twist = ps.normal(x, y), v.diff(y) + w.diff(x)
    xx, yy = 3 * v.diff(x) + w.diff(y), 3 * w.diff(y) + v.diff(x)
    traction = nx * xx + ny * twist, nx * twist + ny * yy
    problem = ps.Problem(
        domain,
        [ps.Eq(xx.diff(x) + twist.diff(y), 0), ps.Eq(twist.diff(x) + yy.diff(y), 0)],
        {
            "left": [ps.Dirichlet(0), ps.Dirichlet(0)],
            "right": [ps.Eq(given, value) for given, value in zip(traction, pull, strict=True)],
            "*": [ps.Eq(given, 0) for given in traction],
        },
    )
    return Case(problem, reference, reference.error)


def plate_with_a_hole() -> Case:
    """A square plate with a hole, clamped left, pulled right."""
    domain = ps.Box((-1, -1), (1, 1)) - ps.Disc(radius=0.4).named("hole")
    return elastic(domain, references.plate(0.4), (1, 0))


def plate() -> Case:
    """A square plate clamped left, bent by a pull of y on the right (benchmarks/examination.py)."""
    return elastic(ps.Box((-1, -1), (1, 1)), references.plate(0.0), (y, 0))


def cantilever() -> Case:
    """A beam four times as long as high, clamped left, pulled down at its end."""
    return elastic(ps.Box((0, 0), (4, 1)), references.cantilever(4.0), (0, -1))


def block(mu: tuple[float, ...]) -> Case:
    """The thermal block: four materials that meet in the middle of the unit square."""
    reference = references.thermal_block(mu)
    names = ("a", "b", "c", "d")  # below left, below right, above left, above right
    materials = ps.parameters(**{name: (0.05, 20.0, "log") for name in names})
    corners = ((0, 0), (0.5, 0), (0, 0.5), (0.5, 0.5))
    quarters = [ps.Box(low, (low[0] + 0.5, low[1] + 0.5)) for low in corners]
    domain = ps.Box((0, 0), (1, 1)).regions(**dict(zip(names, quarters, strict=True)))
    k = ps.by_region(**dict(zip(names, materials, strict=True)))
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    return Case(problem, reference, reference.error, tuple(map(float, mu)))


CASES: dict[str, Callable[[], Case]] = {
    "plate with a hole": plate_with_a_hole,
    "plate": plate,
    "cantilever": cantilever,
    "L-shape, values": ell_with_values,
    "L-shape, slopes": ell_with_slopes,
    "slit": slit,
    "baffle": baffle,
    "Motz": motz,
    **{f"block {mu}": (lambda mu=mu: block(mu)) for mu in BLOCKS},
}


# ---- measuring ------------------------------------------------------------------------------------------------------
def points_in(domain, n: int = 2000) -> np.ndarray:
    """Random points inside, not on the boundary."""
    draws = np.random.default_rng(7).uniform(*domain.bounds, (20 * n, 2))
    return draws[domain.distance(draws) < -1e-3][:n]


def discretised(problem: ps.Problem, method: str, n_nodes: int, seed: int) -> ps.pde.Model:
    """The program's own nodes: with elements, those along the edges count too."""
    settings = ps.Settings(n_nodes=n_nodes)
    if method == "elements":
        degree = DEFAULT_DEGREE[2]
        return ps.discretize(
            problem, corners_for(problem, settings, degree, rng=seed), method="elements", degree=degree
        )
    return discretize_with(problem, settings, rng=seed, method="stencils")


def measured(case: Case, method: str, n_nodes: int, seed: int) -> dict[str, float]:
    """The errors of one solve."""
    if method == "P2":
        return by_triangles(case, n_nodes, seed)
    start = time.perf_counter()
    model = discretised(case.problem, method, n_nodes, seed)
    solution = model.solve(case.mu)
    seconds = time.perf_counter() - start
    true, points = case.truth(model.nodes.points), points_in(case.problem.domain)
    off = solution.values.reshape(true.shape) - true
    there = case.truth(points)
    between = solution.at(points).reshape(there.shape) - there
    return {
        "at nodes": float(np.linalg.norm(off) / np.linalg.norm(true)),
        "largest": float(np.max(np.abs(off)) / np.max(np.abs(true))),
        "anywhere": float(np.linalg.norm(between) / np.linalg.norm(there)),
        "n_nodes": model.n_nodes,
        "seconds": seconds,
    }


def by_triangles(case: Case, n_nodes: int, seed: int) -> dict[str, float]:
    """The thermal block by quadratic triangles on an even mesh that follows the materials; it has no seed."""
    from skfem import Basis, BilinearForm, ElementTriP2, LinearForm, MeshTri, condense, solve
    from skfem.helpers import dot, grad

    start, k = time.perf_counter(), np.array(case.mu)
    ticks = np.linspace(0, 1, 2 * round((n_nodes**0.5 - 1) / 4) + 1)
    basis = Basis(MeshTri.init_tensor(ticks, ticks), ElementTriP2())
    form = BilinearForm(lambda u, v, w: k[(w.x[0] > 0.5) + 2 * (w.x[1] > 0.5)] * dot(grad(u), grad(v)))
    load = LinearForm(lambda v, w: v).assemble(basis)
    values = solve(*condense(form.assemble(basis), load, D=basis.get_dofs()))
    seconds, points = time.perf_counter() - start, points_in(case.problem.domain)
    off = (values - case.truth(basis.doflocs.T)[0], basis.interpolator(values)(points.T) - case.truth(points)[0])
    sizes = [np.linalg.norm(case.truth(at)[0]) for at in (basis.doflocs.T, points)]
    at_nodes, anywhere = (float(np.linalg.norm(gap) / size) for gap, size in zip(off, sizes, strict=True))
    largest = float(np.max(np.abs(off[0])) / np.max(np.abs(case.truth(basis.doflocs.T))))
    errors = {"at nodes": at_nodes, "largest": largest, "anywhere": anywhere}
    return errors | {"n_nodes": len(values), "seconds": seconds}


def attempted(name: str, method: str, n_nodes: int, seed: int) -> dict[str, Any]:
    """The errors of one solve, or why there is none."""
    warnings.simplefilter("ignore", ps.ParasolWarning)  # that these problems are rough
    try:
        return measured(case_of(name), method, n_nodes, seed)
    except ps.ParasolError as error:
        return {"refused": f"{type(error).__name__}: {error}"}


@cache
def case_of(name: str) -> Case:
    """A case, made once in each process."""
    return CASES[name]()


def reference_error(name: str) -> float:
    """How far a case's truth is from the solution; makes and keeps the truth where it has to be computed."""
    return case_of(name).error


def _settle(cores) -> None:
    """One core for each process: threads of the stencils and of BLAS would fight for them."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores.get()})


@contextmanager
def starting(jobs: int) -> Iterator[Callable[..., Callable[[], Any]]]:
    """start(function, *arguments) gives a function that waits for the result: here, or in other processes."""
    if jobs == 1:
        yield partial
        return
    context = multiprocessing.get_context("spawn")
    cores, allowed = context.Queue(), sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    for k in range(jobs):
        cores.put(allowed[k % len(allowed)])
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with ProcessPoolExecutor(jobs, context, initializer=_settle, initargs=(cores,)) as pool:
        yield lambda *call: pool.submit(*call).result


def table(name: str, method: str, error: float, waiting: dict[int, list]) -> list[dict[str, Any]]:
    """One line for each number of nodes, printed as it is known."""
    rows: list[dict[str, Any]] = []
    for n, results in waiting.items():
        runs = [result() for result in results]
        refused = [run["refused"] for run in runs if "refused" in run]
        if refused:
            print(f"{name:22}{method:9}{n:6}  {refused[0][:130]}", flush=True)
            rows.append({"case": name, "method": method, "n": n, "refused": refused[0]})
            continue
        row: dict[str, Any] = {"case": name, "method": method, "n": n, "runs": runs, "reference": error}
        row["n_nodes"] = int(np.median([run["n_nodes"] for run in runs]))
        words = []
        for kind in KINDS:
            errors = [run[kind] for run in runs]
            row[kind] = {"median": float(np.median(errors)), "worst": max(errors)}
            words.append(f"{np.median(errors):.1e} {max(errors):.1e} {max(errors) / np.median(errors):5.1f}")
        rows.append(row)
        seconds = np.median([run["seconds"] for run in runs])
        print(f"{name:22}{method:9}{row['n_nodes']:6}  {'   '.join(words)}  {seconds:6.1f}", flush=True)
    solved = [row for row in rows if "runs" in row]
    if len(solved) > 1:
        first, last = solved[0], solved[-1]
        ratio = last["at nodes"]["median"] / first["at nodes"]["median"]
        slope = -2 * np.log(ratio) / np.log(last["n_nodes"] / first["n_nodes"])
        medians = [row["at nodes"]["median"] for row in solved]
        falling = "falling" if np.all(np.diff(medians) < 0) else "NOT falling"
        worst = max(row["at nodes"]["worst"] / row["at nodes"]["median"] for row in solved)
        print(f"{'':31}slope {slope:.2f}, {falling}, worst over median at most {worst:.1f}", flush=True)
        solved[-1]["slope"] = float(slope)
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/benchmarks.md: medians at nodes / anywhere, the slope at nodes, the worst seed over the median."""
    counts, tables = sorted({row["n"] for row in rows}), {}
    for row in rows:
        tables.setdefault((row["case"], row["method"]), {})[row["n"]] = row
    lines = [f"| | {' | '.join(map(str, counts))} | slope | worst over median |", "|---" * (len(counts) + 3) + "|"]
    for (case, method), by_count in tables.items():
        solved = [row for row in by_count.values() if "runs" in row]
        cells = []
        for n in counts:
            row = by_count.get(n, {})
            both = [f"{row[kind]['median']:.1e}" for kind in ("at nodes", "anywhere")] if "runs" in row else []
            cells.append(" / ".join(both) or ("refused" if "refused" in row else ""))
        slope = next((f"{row['slope']:.1f}" for row in solved if "slope" in row), "")
        worst = max((row["at nodes"]["worst"] / row["at nodes"]["median"] for row in solved), default=np.nan)
        lines.append(f"| {case}, {method} | {' | '.join(cells)} | {slope} | {worst:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"beginnings of: {', '.join(CASES)}")
    parser.add_argument("--quick", action="store_true", help="1000 and 2000 nodes, two seeds")
    parser.add_argument("--most", type=int, default=COUNTS[-1], help="the largest number of nodes")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many sets of nodes of each number")
    parser.add_argument("--methods", nargs="+", choices=("stencils", "elements"), default=("stencils", "elements"))
    parser.add_argument("--jobs", type=int, default=1, help="processes, each on a core of its own")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--markdown", type=Path, nargs="+", metavar="FILE", help="only print what --json wrote there")
    options = parser.parse_args()
    if options.markdown:
        print(markdown([row for path in options.markdown for row in json.loads(path.read_text())]))
        return
    counts, seeds = tuple(n for n in COUNTS if n <= options.most), options.seeds
    if options.quick:
        counts, seeds = COUNTS[:2], 2
    heads = "   ".join(f"{kind:^21}" for kind in KINDS)
    print(f"{'':31}{'nodes':>6}  {heads}  seconds\n{'':37}  " + "median  worst   ratio   " * len(KINDS))
    names = [
        name
        for name in CASES
        if not options.cases or any(name == w or (w not in CASES and name.startswith(w)) for w in options.cases)
    ]
    rows = []
    with starting(options.jobs) as start:
        truths = {name: start(reference_error, name) for name in names}  # kept on disk before anyone else asks
        errors = {name: truth() for name, truth in truths.items()} if options.jobs > 1 else {}
        waiting: dict[str, dict[str, dict[int, list]]] = {}
        for name in names:
            for method in (*options.methods, *(("P2",) if name.startswith("block") else ())):
                own = range(1 if method == "P2" else seeds)  # an even mesh has no seed
                tasks = {n: [start(attempted, name, method, n, k) for k in own] for n in counts}
                waiting.setdefault(name, {})[method] = tasks
        for name, methods in waiting.items():
            error = errors[name] if name in errors else truths[name]()
            print(f"{name}: the truth is {'exact' if not error else f'good to about {error:.0e}'}")
            for method, tasks in methods.items():
                rows += table(name, method, error, tasks)
                if options.json:
                    options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
