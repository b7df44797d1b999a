"""Estimate over true error of every solve: the catalogue and rough problems, parameters, numbers of nodes, seeds.

    python benchmarks/estimates.py [--quick] [--only NAME ...] [--out docs/results/estimates.json] [--table docs/estimates.md]

The true error is that against the exact solution, against quartic elements (helmholtz), or, where neither is known,
against the same problem with four times the nodes and steps for a tenth of the error. What is below 1e-9 is left out: rounding is as large there.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import parasol as ps
from parasol.pde.by_elements import elements_for
from parasol.pde.steady import relative_error
from parasol.space.neighbours import Cloud
from parasol.space.operators import differentiate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

x, y = ps.coordinates("x y")
u, v = ps.unknown("u", x), ps.unknown("v", x, y)
LEAST = 1e-9
PLANE, SPACE, LINE = (500, 1000, 2000, 4000), (1000, 2000, 4000), (30, 60, 120, 240)


@dataclass(frozen=True)
class Case:
    """A problem, where to ask, and the truth: a function of points and parameters, None for the problem's own."""

    problem: ps.Problem
    counts: tuple[int, ...] = PLANE
    seeds: tuple[int, ...] = (0, 1)
    mus: tuple[Any, ...] = (None,)
    exact: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    rough: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # of `solve`
    elements: bool = False


def corners(name: str) -> tuple[Any, ...]:
    """The ends and the middle of the box of a problem of the catalogue."""
    space = ps.load_problem(name).parameters
    low, high = space.bounds
    return (low, space.from_unit(np.full((1, len(low)), 0.5))[0], high)


def elements(points: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Helmholtz by quartic elements on the exact curve, good to 5e-8."""
    from finite_elements import reference

    return reference(float(mu[0]), float(mu[1])).evaluate(points)


def wedge(kind: Callable, part: Any) -> Case:
    """r^(2/3) cos or sin on a box without a quarter, its slope or its value given beside the corner."""
    angle = sp.Piecewise((sp.atan2(y, x), y >= 0), (sp.atan2(y, x) + 2 * sp.pi, True))
    value = (x**2 + y**2) ** sp.Rational(1, 3) * kind(2 * angle / 3)
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -1.5), (1.5, 0)).named("notch")
    boundary = {name: ps.Dirichlet(value) for name in domain.part_names} | {"notch": part}

    def exact(points: np.ndarray, mu: np.ndarray) -> np.ndarray:
        angle = np.mod(np.arctan2(points[:, 1], points[:, 0]) + 1e-9, 2 * np.pi) - 1e-9
        return np.hypot(*points.T) ** (2 / 3) * getattr(np, kind.__name__)(2 * angle / 3)

    return Case(ps.Problem(domain, ps.Eq(-ps.laplacian(v), 0), boundary), seeds=(0, 1, 2), exact=exact, rough=True)


def motz() -> Case:
    """Motz's problem by its series, fitted to the conditions on the far sides (Li, Mathon and Sermer 1987): to 1e-10.

    Fourteen published coefficients leave 1e-5 in L2, more than what is to be measured here.
    """
    powers, reach = np.arange(36) + 0.5, np.sqrt(2)

    def polar(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.hypot(*points.T)[:, None] / reach, np.arctan2(np.maximum(points[:, 1], 0), points[:, 0])[:, None]

    def slopes(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (r, angle), k = polar(points), powers - 1
        size = powers * r**k
        return size * np.cos(k * angle), -size * np.sin(k * angle)

    def values(points: np.ndarray) -> np.ndarray:
        r, angle = polar(points)
        return r**powers * np.cos(powers * angle)

    t = (np.polynomial.legendre.leggauss(200)[0] + 1) / 2
    right, top, left = (np.column_stack(pair) for pair in ((t**0, t), (2 * t - 1, t**0), (-(t**0), t)))
    given = np.concatenate([500 * t**0, 0 * t, 0 * t])
    series = np.linalg.lstsq(np.vstack([values(right), slopes(top)[1], slopes(left)[0]]), given, rcond=None)[0]

    def exact(points: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return values(points) @ series

    domain = ps.Box((-1, 0), (1, 1)).named(cold=sp.And(y <= 0, x < 0))
    boundary = {"cold": ps.Dirichlet(0), "right": ps.Dirichlet(500), "*": ps.Neumann(0)}
    return Case(ps.Problem(domain, ps.Eq(-ps.laplacian(v), 0), boundary), seeds=(0, 1, 2), exact=exact, rough=True)


def jumping_source() -> Case:
    """A source in a small disc: a parabola in it and a logarithm outside."""

    def exact(points: np.ndarray, mu: np.ndarray) -> np.ndarray:
        r = np.maximum(np.hypot(*points.T), 1e-9)
        return 0.1 + np.where(r < 0.3, (0.09 - r**2) / 4 - 0.045 * np.log(0.3), -0.045 * np.log(r))

    source = sp.Piecewise((1, x**2 + y**2 < 0.09), (0, True))
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(v), source), ps.Dirichlet(0.1))
    return Case(problem, seeds=(0, 1, 2), exact=exact, rough=True)


def on_a_line(source: sp.Expr, value: sp.Expr, exact: Callable) -> Case:
    """-u'' = source on (0, 1)."""
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), source), ps.Dirichlet(value))
    counts = (30, 41, 60, 68, 82, 120, 200)
    return Case(problem, counts, (0,), exact=lambda points, mu: exact(points[:, 0]), rough=True)


def jumping_values() -> Case:
    """1 on the upper half of a circle, -1 on the lower."""
    problem = ps.Problem(
        ps.Disc().named(hot=y > 0), ps.Eq(-ps.laplacian(v), 0), {"hot": ps.Dirichlet(1), "*": ps.Dirichlet(-1)}
    )

    def exact(points: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return 2 / np.pi * np.arctan2(2 * points[:, 1], np.maximum(1 - np.sum(points**2, axis=1), 0))

    return Case(problem, exact=exact, rough=True)


def kink() -> Case:
    """|x - 0.37|^3: a source with a kink."""
    s = sp.Abs(x - sp.Rational(37, 100))
    problem = ps.Problem(ps.Box((0, 0), (1, 1)), ps.Eq(-ps.laplacian(v), -6 * s), ps.Dirichlet(s**3))
    return Case(problem, exact=lambda points, mu: np.abs(points[:, 0] - 0.37) ** 3, rough=True)


def waves() -> Case:
    """sin(20 x) cos(15 y), which few nodes hardly resolve."""
    wave = sp.sin(20 * x) * sp.cos(15 * y)
    boundary = {"left": ps.Neumann(-wave.diff(x)), "*": ps.Dirichlet(wave)}
    equation = ps.Eq(-ps.laplacian(v) + v, 626 * wave)
    return Case(ps.Problem(ps.Box((0, 0), (1, 1)), equation, boundary, exact=wave), (250, *PLANE))


def schrodinger() -> Case:
    """Boundary values 1: sinh r / r."""

    def exact(points: np.ndarray, mu: np.ndarray) -> np.ndarray:
        r = np.maximum(np.linalg.norm(points, axis=1), 1e-9)
        return np.sinh(r) / r / np.sinh(1)

    return Case(ps.load_problem("schrodinger"), SPACE, mus=("ones",), exact=exact)


def blocks() -> dict[str, Case]:
    """The thermal block with two sets of materials, against quartic elements (benchmarks/references.py)."""
    from rough import block

    block_cases = {}
    for mu in ((0.1, 10, 10, 0.1), (0.2, 3, 5, 1)):
        one = block(mu)
        exact = lambda points, mu, truth=one.truth: truth(points)[0]  # noqa: E731
        block_cases[f"block {mu}"] = Case(one.problem, (1000, 2000, 4000), (0, 1), (one.mu,), exact, rough=True)
    return block_cases


def cases() -> dict[str, Case]:
    """All of them by name."""
    steady = (
        "boundary-layer",
        "cooled-pipe",
        "elasticity",
        "graded-material",
        "periodic-channel",
        "nonlinear-diffusion",
    )
    in_time = {"heat": (200, 500), "burgers": LINE, "advection-diffusion": (300, 600), "wave": (300, 600)}
    in_time |= {"allen-cahn": (300, 600), "gray-scott": (500,), "sine-gordon": (21**2,)}
    half = sp.Rational(37, 100)
    smooth = {name: Case(ps.load_problem(name), (1000, 4000), (0,), corners(name)) for name in steady[:4]}
    by_elements = smooth | {"wedge, slopes": wedge(sp.cos, ps.Neumann(0)), "motz": motz()} | blocks()
    return {
        "helmholtz": Case(ps.load_problem("helmholtz"), mus=((0.1, 0.0), (0.927, 1.697), (4.0, 2.0)), exact=elements),
        **{name: Case(ps.load_problem(name), mus=corners(name)) for name in steady},
        "bratu": Case(ps.load_problem("bratu"), mus=((0.3,), (1.5,), (1.98,))),
        "reaction-layer": Case(ps.load_problem("reaction-layer"), LINE, (0,), corners("reaction-layer")),
        "hollow-block": Case(ps.load_problem("hollow-block"), SPACE, mus=corners("hollow-block")),
        "schrodinger": schrodinger(),
        **{name: Case(ps.load_problem(name), n, (0,), corners(name)[::2]) for name, n in in_time.items()},
        "heat, few steps": Case(ps.load_problem("heat"), (500,), (0,), corners("heat"), options={"step": 0.05}),
        "waves": waves(),
        "wedge, slopes": wedge(sp.cos, ps.Neumann(0)),
        "wedge, values": wedge(sp.sin, ps.Dirichlet(0)),
        "motz": motz(),
        "jumping source": jumping_source(),
        "jumping source, line": on_a_line(
            sp.Heaviside(x - half), 1 + x, lambda s: 1 + (1 + 0.63**2 / 2) * s - np.maximum(s - 0.37, 0) ** 2 / 2
        ),
        "power 5/2, line": on_a_line(-sp.Rational(15, 4) * sp.sqrt(x), x, lambda s: s**2.5),
        "jumping values": jumping_values(),
        "kink": kink(),
        **{f"elements: {name}": replace(case, elements=True) for name, case in by_elements.items()},
    }


def rows_of(name: str, case: Case) -> Iterator[dict[str, Any]]:
    """One row for each number of nodes, seed and parameter."""
    problem = case.problem
    lattice = "default" in problem.settings and problem.settings["default"].method == "lattice"
    for n in case.counts:
        for seed in case.seeds:
            if case.elements:
                model = elements_for(problem, ps.Settings(n_nodes=n), rng=seed)
            elif lattice:
                model = ps.discretize(problem, ps.lattice(problem.domain, round(n**0.5)))
            else:
                model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n, rng=seed))
            for mu in case.mus:
                given = np.ones(model.n_parameters) if mu is None or isinstance(mu, str) else mu
                try:
                    solution = model.solve(given if model.n_parameters else None, extrapolate=True, **case.options)
                except ps.ParasolError:  # no solution here
                    continue
                error = true_error(case, model, solution)
                if error > LEAST and solution.discretisation is not None:
                    about = {"problem": name, "rough": case.rough, "n": model.n_nodes, "seed": seed}
                    where = None if mu is None else np.ravel(mu).tolist()
                    yield about | {"mu": where, "error": error, "ratio": solution.discretisation / error}


def true_error(case: Case, model: Any, solution: Any) -> float:
    """The largest over the unknowns of the relative error: l2 at the nodes, of elements L2 over the domain."""
    if case.exact is None and solution.error is not None:
        return solution.error
    if case.exact is not None:
        truth = case.exact(model.nodes.points, solution.mu)
        return relative_error(model, solution.values, truth)
    fine = ps.discretize(case.problem, finer(model))
    better = fine.solve(solution.mu, extrapolate=True, times=solution.times, tolerance=1e-6).values
    zero = (0,) * model.nodes.dimension
    weights = differentiate(Cloud(fine.nodes.points, fine.nodes.domain), model.nodes.points, [zero], fine.scheme)[zero]
    truth = (weights @ better.reshape(-1, fine.n_nodes).T).T.reshape(solution.values.shape)
    gaps = [
        np.linalg.norm(a - b) / np.linalg.norm(b)
        for a, b in zip(model.layout.fields(solution.values).values(), model.layout.fields(truth).values(), strict=True)
    ]
    return float(max(gaps))


def finer(model: Any) -> Any:
    """Four times the nodes."""
    side = round(model.n_nodes**0.5)
    if np.allclose(np.unique(np.round(model.nodes.points[:, 0], 9)).size, side):
        return ps.lattice(model.problem.domain, 2 * side - 1)
    return ps.scatter(model.problem.domain, n_nodes=4 * model.n_nodes)


def table(rows: list[dict[str, Any]]) -> str:
    """The ratios of each problem, then of all."""
    by: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by[row["problem"]].append(row)
    lines = ["| problem | solves | true errors | estimate over error: least, median, largest | within 1/3 … 3 |"]
    lines += ["|---|---|---|---|---|"]
    for name, some in [*by.items(), ("**all**", rows)]:
        ratios, errors = np.array([r["ratio"] for r in some]), [r["error"] for r in some]
        inside = np.mean((ratios > 1 / 3) & (ratios < 3))
        spread = f"{np.min(ratios):.2f}, {np.median(ratios):.2f}, {np.max(ratios):.2f}"
        lines.append(
            f"| {name} | {len(some)} | {min(errors):.0e} … {max(errors):.0e} | {spread} | {100 * inside:.0f} % |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the two smallest numbers of nodes, one seed")
    parser.add_argument("--only", nargs="*", help="names of problems")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ps.ParasolWarning)
    rows: list[dict[str, Any]] = []
    for name, case in cases().items():
        if given.only and name not in given.only:
            continue
        if given.quick:
            case = replace(case, counts=case.counts[:2], seeds=(0,))
        for row in rows_of(name, case):
            rows.append(row)
            print(
                f"{name:24s} {row['n']:5d} {row['seed']} {row['error']:.1e} {row['ratio']:6.2f} {row['mu']}", flush=True
            )
        if given.out is not None:
            given.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    if given.table is not None:
        given.table.write_text(table(rows) + "\n")


if __name__ == "__main__":
    main()
