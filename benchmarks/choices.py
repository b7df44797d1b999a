"""The measurements behind our defaults: kernel and degree, grading of the nodes, ghosts or one-sided rows.

    python benchmarks/choices.py --json choices.json

Errors are geometric means over five node sets (seeds 0 to 4). Kernels and grading are measured on the flower-domain
Helmholtz problem with 1000 nodes against the finite-element reference, at three parameters; conditions on the slope on
the catalogue's problems that have them, at both ends of the parameter range, against their exact solutions.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import parasol as ps
from finite_elements import reference

PARAMETERS = [(0.1, 2.0), (0.927, 1.697), (4.0, 2.0)]
SEEDS = (0, 1, 2, 3, 4)
SCHEMES = [
    (ps.space.IMQ(3.0), -1, 50),
    (ps.space.IMQ(3.0), 4, 50),
    (ps.space.PHS(3), 3, 26),
    (ps.space.PHS(5), 4, 39),
    (ps.space.PHS(7), 4, 39),
    (ps.space.PHS(9), 4, 39),
    (ps.space.PHS(5), 5, 55),
    (ps.space.PHS(7), 5, 55),
    (ps.space.PHS(9), 5, 55),
    (ps.space.PHS(11), 5, 55),
    (ps.space.PHS(7), 6, 73),
    (ps.space.PHS(9), 6, 73),
    (ps.space.PHS(9), 7, 94),
]


def mean(errors) -> list[float]:
    """Geometric mean over the first axis."""
    return np.exp(np.mean(np.log(errors), axis=0)).tolist()


def kernels() -> list[dict]:
    """Every scheme on the same graded nodes."""
    problem = ps.load_problem("helmholtz")
    spacing = ps.space.feature_spacing(problem.domain)
    sets = [ps.scatter(problem.domain, n_nodes=1000, spacing=spacing, rng=seed) for seed in SEEDS]
    return [
        {
            "choice": f"{kernel}, degree {degree}, {size} neighbours",
            "errors": mean([on_flower(problem, n, kernel, degree, size) for n in sets]),
        }
        for kernel, degree, size in SCHEMES
    ]


def gradings() -> list[dict]:
    """The default scheme on different nodes."""
    problem = ps.load_problem("helmholtz")
    spacing = ps.space.feature_spacing(problem.domain)
    makers = {
        "uniform": {},
        "hexagonal inside": {"method": "hexagonal"},
        "finer at walls and concave bends (default)": {"spacing": spacing},
    }
    rows = []
    for name, options in makers.items():
        sets = [ps.scatter(problem.domain, n_nodes=1000, rng=seed, **options) for seed in SEEDS]
        rows.append({"choice": name, "errors": mean([on_flower(problem, nodes) for nodes in sets])})
    return rows


def on_flower(problem, nodes, kernel=None, degree=None, size=None) -> list[float]:
    """Errors at the three parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        model = ps.discretize(problem, nodes, kernel=kernel, degree=degree, stencil_size=size)
    exact = [reference(*mu).evaluate(nodes.points) for mu in PARAMETERS]
    return [
        np.linalg.norm(model.solve(mu).values - e) / np.linalg.norm(e) for mu, e in zip(PARAMETERS, exact, strict=True)
    ]


def slopes() -> list[dict]:
    """Ghost nodes and one-sided rows."""
    rows = []
    for name, count in (
        ("cooled-pipe", 1000),
        ("graded-material", 1000),
        ("periodic-channel", 1000),
        ("hollow-block", 3000),
    ):
        problem = ps.load_problem(name)
        sets = [ps.scatter(problem.domain, n_nodes=count, rng=seed) for seed in SEEDS]
        for way in ("ghosts", "one-sided"):
            models = [ps.discretize(problem, nodes, neumann=way) for nodes in sets]
            errors = [[model.solve(mu).error for mu in problem.parameters.bounds] for model in models]
            rows.append({"choice": f"{name}, {way}", "errors": mean(errors)})
    return rows


def main() -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    tables = {"kernel and degree": kernels(), "grading": gradings(), "conditions on the slope": slopes()}
    for title, rows in tables.items():
        print(f"\n{title}")
        for r in rows:
            print(f"  {r['choice']:48}" + "  ".join(f"{e:.2e}" for e in r["errors"]))
    if options.json:
        options.json.write_text(json.dumps(tables, indent=1))


if __name__ == "__main__":
    main()
