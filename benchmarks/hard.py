"""Learn problems at the edge to 1e-3, and measure each on full solves that nothing has seen.

    python benchmarks/hard.py [--n 100] [CASE ...]

Prints one line per case: full solves (with those that check an estimate or calibrate a bound), further factorisations, the
map, the share of n fresh errors below the tolerance, estimate over error (least, median, largest), the least bound over
error, seconds, and what `learn` remarks.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sympy import cos, exp, pi, sin

import parasol as ps

(x, y), t = ps.coordinates("x y"), ps.time()
u, v, w = ps.unknown("u", x, y), ps.unknown("v", x, y), ps.unknown("w", x, y, t)
SQUARE, DISC, ZERO = ps.Box((0, 0), (1, 1)), ps.Disc(), ps.Dirichlet(0)


def resonance() -> ps.Problem:
    """Across an eigenvalue, 2π² = 19.74."""
    (k,) = ps.parameters(k=(15.0, 25.0))
    return ps.Problem(SQUARE, ps.Eq(-ps.laplacian(u) - k * u, exp(x) * (1 + y)), ZERO)


def annulus() -> ps.Problem:
    """Wind from all sides."""
    nu, angle = ps.parameters(nu=(0.05, 1.0, "log"), angle=(0.0, 2 * np.pi))
    equation = ps.Eq(-nu * ps.laplacian(u) + cos(angle) * u.diff(x) + sin(angle) * u.diff(y), 1)
    return ps.Problem(ps.Disc(radius=1.0) - ps.Disc(radius=0.4), equation, ZERO)


def heat() -> ps.Problem:
    """In time, with an oscillating source."""
    k, omega = ps.parameters(k=(0.02, 1.0, "log"), omega=(1.0, 10.0))
    equation = ps.Eq(w.diff(t), k * ps.laplacian(w) + cos(omega * t))
    return ps.Problem(SQUARE, equation, ZERO, initial=0, times=np.linspace(0, 2, 21))


def moving_source() -> ps.Problem:
    """A Gaussian source of width 0.05 that moves."""
    (s,) = ps.parameters(s=(-0.5, 0.5))
    return ps.Problem(DISC, ps.Eq(-ps.laplacian(u), exp(-((x - s) ** 2 + y**2) / (2 * 0.05**2))), ZERO)


def eight_parameters() -> ps.Problem:
    """Diffusion with eight bumps."""
    c = ps.parameters(**{f"c{i}": (0.5, 2.0) for i in range(8)})
    k = 1 + sum(a * sin(pi * (i // 3 + 1) * x) ** 2 * cos(pi * (i % 3 + 1) * y) ** 2 for i, a in enumerate(c))
    return ps.Problem(SQUARE, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ZERO)


def convection() -> ps.Problem:
    """Diffusion from 1e-3 on."""
    (nu,) = ps.parameters(nu=(1e-3, 1.0, "log"))
    return ps.Problem(SQUARE, ps.Eq(-nu * ps.laplacian(u) + u.diff(x), 1), ZERO)


def decades() -> ps.Problem:
    """A coefficient over eight decades."""
    (a,) = ps.parameters(a=(1e-4, 1e4, "log"))
    return ps.Problem(DISC, ps.Eq(-ps.laplacian(u) + a * u, 1 + x), ZERO)


def near_singular() -> ps.Problem:
    """A corner of the box beside an eigenvalue, 5.7832."""
    (k,) = ps.parameters(k=(5.0, 5.783))
    return ps.Problem(DISC, ps.Eq(-ps.laplacian(u) - k * u, 1 + x), ZERO)


def system() -> ps.Problem:
    """Two unknowns in very different units."""
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.0, 5.0))
    equations = [ps.Eq(-ps.laplacian(u) + b * v, 1), ps.Eq(-a * ps.laplacian(v) - b * u, 1e6 * x)]
    return ps.Problem(DISC, equations, [ps.Dirichlet(0), ps.Dirichlet(1e6 * y)])


CASES = {
    f.__name__: (f, n)
    for f, n in (
        *((resonance, 800), (annulus, 800), (heat, 300), (moving_source, 1500), (eight_parameters, 800)),
        *((convection, 1500), (decades, 800), (near_singular, 500), (system, 400)),
    )
}


def line(name: str, n: int) -> str:
    """Learn one case and measure it."""
    make, n_nodes = CASES[name]
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        surrogate = ps.learn(make(), 1e-3, n_nodes=n_nodes)
    seconds, account, model = time.process_time() - start, surrogate.facts["learn"], surrogate.solver
    truth = ps.solve_many(model, ps.sample(model, n, design="random", rng=77))
    errors, answer = ps.accuracy(surrogate, truth).errors, surrogate(truth.mus)
    near = "{:.2f} {:.2f} {:.2f}".format(*np.quantile(answer.estimate / errors, [0, 0.5, 1]))
    solves = f"{account['solves']} (+{account.get('n_factorizations') or 0})"
    numbers = f"{np.mean(errors <= 1e-3):5.2f}  {np.max(errors):.1e}   {near:16}  {np.min(answer.bound / errors):.2f}"
    return f"{name:17} {account['met']!s:5}  {solves:10} {account['map']:16} {numbers}  {seconds:5.0f}  {'; '.join(account['notes'])[:150]}"


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--n", type=int, default=100)
    asked = parser.parse_args()
    print(
        "case              met    solves     map              share  max error  estimate/error    least bound/error  CPU s  notes"
    )
    for name in asked.cases:
        print(line(name, asked.n), flush=True)


if __name__ == "__main__":
    main()
