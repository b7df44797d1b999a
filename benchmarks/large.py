"""One large solve, by iterations or by elimination: processor seconds, memory, the residual reached and the error.

    python benchmarks/large.py --dimension 2 --side 1001 --solver iterative --json large.json

The matrix of −Δu = 1 is the one that `discretize` makes on a lattice of a square or cube. A stencil there depends on the
distances to the sides alone, so its weights are computed on a small lattice and repeated: weights of 10^6 nodes would take
longer than what is measured here. The error is that of u in the middle of the domain, which is known.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

import parasol as ps
from parasol.pde.sparse_direct import factorize
from parasol.pde.sparse_pattern import Pattern
from parasol.pde.steady import _refined

MIDDLE = {
    2: 0.0736713532815,
    3: 0.0562128298294,
}  # of −Δu = 1 with u = 0 on the sides of the unit square and cube, by its series
_SMALL, _EDGE = {2: 24, 3: 18}, {2: 10, 3: 8}  # nodes along a side of the small lattice, and how far its sides are seen


def lattice_matrix(dimension: int, side: int) -> tuple[Pattern, np.ndarray, np.ndarray]:
    """The pattern, the entries and the right-hand side on `side`^dimension nodes, numbered along the axes."""
    small, edge = _SMALL[dimension], _EDGE[dimension]
    x = ps.coordinates(" ".join("xyz"[:dimension]))
    u = ps.unknown("u", *x)
    box = ps.Box([0.0] * dimension, [1.0] * dimension)
    problem = ps.Problem(box, ps.Eq(-ps.laplacian(u), 1 + 0 * x[0]), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.lattice(box, (small,) * dimension), solver="direct")
    matrix = model.operator(model.vector())
    places = np.rint(model.nodes.points * (small - 1)).astype(int)
    number = np.empty(small**dimension, dtype=int)
    number[np.ravel_multi_index(places.T, (small,) * dimension)] = np.arange(len(places))
    along = np.arange(side)
    alike = np.where(along < edge, along, np.where(along >= side - edge, small - (side - along), small // 2))
    n = side**dimension
    where = np.stack(np.unravel_index(np.arange(n), (side,) * dimension), axis=1).astype(np.int32)
    kind = number[np.ravel_multi_index(alike[where].T, (small,) * dimension)]
    outside = np.any((where == 0) | (where == side - 1), axis=1)
    indptr = np.concatenate([[0], np.cumsum(np.diff(matrix.indptr)[kind])]).astype(np.int32)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
    stride = side ** np.arange(dimension - 1, -1, -1)
    for k in np.unique(kind):
        rows, own = np.flatnonzero(kind == k), slice(matrix.indptr[k], matrix.indptr[k + 1])
        steps = (places[matrix.indices[own]] - places[k]) @ stride
        order = np.argsort(steps)
        at = indptr[rows][:, None] + np.arange(len(steps))
        scale = 1.0 if outside[rows[0]] else ((side - 1) / (small - 1)) ** 2
        indices[at], data[at] = rows[:, None] + steps[order], scale * matrix.data[own][order]
    return Pattern(indices, indptr, where / (side - 1.0)), data, np.where(outside, 0.0, 1.0)


def peak_gigabytes() -> float:
    """Memory of this process at its largest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measure(dimension: int, side: int, solver: str) -> dict:
    """What `solve` does with one matrix: factors tried on a known answer, the solution, and what rounding may move."""
    pattern, data, load = lattice_matrix(dimension, side)
    before, wall, start = peak_gigabytes(), time.perf_counter(), time.process_time()
    factors = factorize(pattern, data, backend=solver)
    prepared = time.process_time() - start
    values, residual, _ = _refined(factors, load, None)
    middle = float(values.reshape((side,) * dimension)[(side // 2,) * dimension])
    return {
        "dimension": dimension,
        "unknowns": len(load),
        "entries_per_row": len(data) / len(load),
        "method": factors.method,
        "cpu_seconds": time.process_time() - start,
        "of_that_preparation": prepared,
        "wall_seconds": time.perf_counter() - wall,
        "gigabytes_before": before,
        "gigabytes_at_most": peak_gigabytes(),
        "residual": residual,
        "error_in_the_middle": abs(middle - MIDDLE[dimension]),
    }


def main() -> None:
    """Print the figures, one a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimension", type=int, choices=(2, 3), default=2)
    parser.add_argument("--side", type=int, default=201, help="nodes along a side, an odd number")
    parser.add_argument("--solver", choices=("direct", "iterative"), default="iterative")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    if options.side % 2 == 0 or options.side < 2 * max(_EDGE.values()) + 1:
        parser.error(f"--side {options.side} must be odd, so that a node is in the middle, and at least 21")
    facts = measure(options.dimension, options.side, options.solver)
    for name, value in facts.items():
        print(f"{name:22}{value if isinstance(value, str) else format(value, '.4g')}")
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
