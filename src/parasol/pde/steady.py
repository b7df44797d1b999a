"""The full solve of a steady linear problem, checked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import ParasolError, check_shape
from parasol.pde.sparse_direct import Factors, SingularMatrixError
from parasol.space.operators import differentiate
from parasol.space.wrap import Wrap

if TYPE_CHECKING:
    from parasol.pde.model import Model

_WORST_RESIDUAL = 1e-8


@dataclass(frozen=True, eq=False)
class Solution:
    """Values at the nodes for one parameter, with the relative residual of the linear system and the time it took."""

    model: Model
    mu: np.ndarray
    values: np.ndarray  # (n_nodes,)
    residual_norm: float  # ||A u - f|| / ||f||
    seconds: float
    backend: str

    def at(self, points) -> np.ndarray:
        """Values at arbitrary points of the domain, interpolated with the model's own kernel and stencils."""
        nodes, scheme = self.model.nodes, self.model.scheme
        points = check_shape(points, (None, nodes.dimension), "points")
        outside = nodes.domain.distance(points) > 1e-9 * float(np.ptp(nodes.domain.bounds, axis=0).max())
        if np.any(outside):
            raise ParasolError(
                f"{np.count_nonzero(outside)} of {len(points)} points lie outside the domain. Ask inside only."
            )
        zero = (0,) * nodes.dimension
        found = differentiate(nodes.points, points, [zero], scheme, wrap=Wrap.of(nodes.domain))
        return found[zero] @ self.values

    @property
    def exact(self) -> np.ndarray | None:
        """The exact solution at the nodes, where the problem knows it."""
        return self.model.exact(self.mu)

    @property
    def error(self) -> float | None:
        """Relative l2 error at the nodes against the exact solution where the problem knows it (absolute if that is 0)."""
        exact = self.exact
        return None if exact is None else float(np.linalg.norm(self.values - exact) / (np.linalg.norm(exact) or 1.0))


def solve_steady(model: Model, mu: np.ndarray) -> Solution:
    """Solve A(mu) u = f(mu), with one step of refinement where the residual asks for it."""
    start = time.perf_counter()
    load = model.load(mu)
    try:
        factors = model.factors(mu)
    except SingularMatrixError as error:
        where = f" (at {describe(model, mu)})" if model.n_parameters else ""
        raise SingularMatrixError(f"{error}{where}") from None
    values, residual = _refined(factors, load)
    if not (np.all(np.isfinite(values)) and residual <= _WORST_RESIDUAL):
        raise SingularMatrixError(
            f"the linear system at {describe(model, mu)} is solved only to a residual of {residual:.0e}. "
            f"Use better conditioned stencils or fewer nodes."
        )
    seconds = time.perf_counter() - start
    return Solution(model, mu, values[: model.n_nodes], residual, seconds, factors.backend)


def _refined(factors: Factors, load: np.ndarray) -> tuple[np.ndarray, float]:
    scale = float(np.linalg.norm(load)) or 1.0
    values = factors.solve(load)
    residual = load - factors.matrix @ values
    if np.linalg.norm(residual) > 1e-12 * scale:
        better = values + factors.solve(residual)
        refined = load - factors.matrix @ better
        if np.linalg.norm(refined) < np.linalg.norm(residual):
            values, residual = better, refined
    return values, float(np.linalg.norm(residual)) / scale


def describe(model: Model, mu: np.ndarray) -> str:
    """A parameter in words: a=0.9, k=1.7."""
    scalars = [f"{p.name}={value:g}" for p, value in zip(model.parameters.scalars, mu, strict=False)]
    return ", ".join([*scalars, *[f"{f.name}=..." for f in model.parameters.functions]]) or "no parameters"
