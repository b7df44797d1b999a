"""The full solve of a steady problem, linear or not, checked."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError, ParasolWarning, SolveFailed, UnsuitableNodes
from parasol.pde.newton import NOISE, NewtonResult, largest_ratio, solve_steady_nonlinear
from parasol.pde.resolution import unpredicted
from parasol.pde.sparse_direct import Factors, SingularMatrixError, random_signs
from parasol.pde.system import sizes
from parasol.runtime.above import borrowed

if TYPE_CHECKING:
    from parasol.pde.model import Model

_WORST_RESIDUAL = 1e-8
_LOST = 1e-6  # share of the solution that rounding may be before it is said
_ROUGHLY = 1e-2  # relative residual of a solve of which only the size is asked for
_UNRESOLVED = 0.1  # of their range, by which derivatives may differ from what those at neighbouring nodes say


@dataclass(frozen=True, eq=False)
class Solution:
    """Values at the nodes for one parameter, with the relative residual of the system and the time it took.

    `time` is set where the solution is one moment of an evolution. A nonlinear problem may have several solutions:
    `start` says from where this one was reached ("Newton from zero", "Newton from the guess", "continuation from
    rate=1, ..."), and another guess may lead to another. `history` holds the corrections of Newton's steps.
    """

    model: Model
    mu: np.ndarray
    values: np.ndarray  # (n_fields * n_nodes,): the unknown functions one after the other
    residual_norm: (
        float  # largest residual of an equation relative to its terms; if nonlinear, Newton's last correction
    )
    seconds: float
    backend: str
    time: float | None = None
    history: tuple[float, ...] = ()
    unknowns: np.ndarray | None = None  # (n_unknowns,) of a steady solve: the values at ghosts too
    start: str = ""  # from where a nonlinear solution was reached

    @property
    def fields(self) -> dict[str, np.ndarray]:
        """The unknown functions by name, each (n_nodes,)."""
        return self.model.layout.fields(self.values)

    @property
    def quantities(self) -> dict[str, float]:
        """What the problem wants to know of its solution, by name."""
        wanted = self.model.quantities
        return dict(zip(wanted.names, wanted.of(self.values, self.mu).tolist(), strict=True))

    @property
    def extrapolated(self) -> bool:
        """Whether the parameter lies outside the declared ranges."""
        return not self.model.parameters.inside(self.mu[None]).all()

    def __repr__(self) -> str:
        start = f", by {self.start}" if self.start else ""
        return (
            f"<Solution {self.model.problem.name} at {describe(self.model, self.mu)}: {len(self.values)} values{start}>"
        )

    def _repr_html_(self) -> str:
        return borrowed("problem_html")(self)

    def at(self, points: ArrayLike) -> np.ndarray:
        """Values (n_points,), or (n_fields, n_points) for several unknowns, interpolated with the model's own stencils or elements."""
        nodes = self.model.nodes
        points = check_shape(points, (None, nodes.dimension), "points")
        outside = nodes.domain.distance(points) > 1e-9 * float(np.ptp(nodes.domain.bounds, axis=0).max())
        if np.any(outside):
            raise InputError(
                f"{np.count_nonzero(outside)} of {len(points)} points lie outside the domain. Ask inside only."
            )
        values = self.model.interpolated(self.values, points, self.model.weights_at(points), self.mu, None)
        return values[0] if len(values) == 1 else values

    @property
    def exact(self) -> np.ndarray | None:
        """The exact solution at the nodes, where the problem knows it."""
        return self.model.exact(self.mu, self.time)

    @property
    def error(self) -> float | None:
        """Relative error at the nodes against the exact solution where the problem knows it; see `relative_error`."""
        exact = self.exact
        return None if exact is None else relative_error(self.model, self.values, exact)

    @cached_property
    def discretisation(self) -> float | None:
        """Estimate of the relative error against the equation's own solution, in the norm of `error`, computed when asked for.

        The first one of a model costs about four assemblies, the others a matrix product and a triangular solve. It has
        the size of `error`, within a factor of 3 nine times in ten; see `parasol.pde.discretisation`. None where nothing is
        known: too few nodes, one moment of an evolution.
        """
        from parasol.pde.discretisation import discretisation  # which makes models, and those solve

        return discretisation(self)


def relative_error(model: Model, values: np.ndarray, exact: np.ndarray) -> float:
    """The largest over the unknowns of ||u − exact|| / ||exact||; one that is 0 is measured against the largest other one.

    Norms are those of `field_norms`. One of all unknowns together would hide the error of a small one beside a large one.
    """
    gaps, sizes = field_norms(model, values - exact), field_norms(model, exact)
    return float(np.max(gaps / np.where(sizes > 0, sizes, np.max(sizes) or 1.0)))


def field_norms(model: Model, values: np.ndarray) -> np.ndarray:
    """||u|| of each unknown function, (n_fields,): over the nodes, of elements in L2 on the domain (`model.product`)."""
    root = l2_root(model)
    return np.array([np.linalg.norm(root * part) for part in model.layout.fields(values).values()])


def norm_of(model: Model) -> str:
    """In words, the norm that errors of a model's solutions are measured in."""
    if model.elements is not None:
        return "L2 over the domain"
    return "l2 at the nodes" if model.product is None else "that of the given inner product"


def l2_root(model: Model) -> np.ndarray | float:
    """What values at nodes are multiplied by before their squares are summed: of elements (n_nodes,), else 1."""
    return 1.0 if model.elements is None else np.sqrt(model.elements.volumes)


def solve_steady(model: Model, mu: np.ndarray, *, guess: ArrayLike | None = None) -> Solution:
    """Solve A(mu) u = f(mu), with one step of refinement where the residual asks for it; iterations start from the `guess`."""
    start = time.perf_counter()
    with np.errstate(all="ignore"):  # what is not finite is refused here
        load = model.load(mu)
    check_finite(load, f"the right-hand side at {describe(model, mu)}", error=SolveFailed)
    factors = model.factors(mu)
    start_from = None if guess is None or factors.refines else _with_ghosts(model, guess)
    values, residual, lost = _refined(factors, load, start_from)
    if not (np.all(np.isfinite(values)) and residual <= _WORST_RESIDUAL):
        raise SingularMatrixError(
            f"the linear system at {describe(model, mu)} is solved only to a residual of {residual:.0e}. "
            f"Use better conditioned stencils or fewer nodes."
        )
    if lost > _LOST:
        warnings.warn(
            f"the solution at {describe(model, mu)} has lost digits: about {lost:.0e} of it is rounding, for the problem is "
            "close to one without a unique solution (a resonance, conditions that nearly miss a constant) or in need of so "
            "many digits. Its error from discretisation is magnified likewise: ask ps.learning.discretisation_error(model, mu).",
            ParasolWarning,
            stacklevel=3,
        )
    seconds = time.perf_counter() - start
    return Solution(model, mu, model.layout.at_nodes(values), residual, seconds, factors.method, unknowns=values)


def solve_nonlinear(model: Model, mu: np.ndarray, *, guess: ArrayLike | None = None) -> Solution:
    """Solve a nonlinear problem by Newton's method, by continuation in the parameters where that fails."""
    start = time.perf_counter()
    n_scalars = model.inputs.n_scalars
    result = solve_steady_nonlinear(
        lambda scalars: model.system(np.concatenate([scalars, mu[n_scalars:]])),
        mu[:n_scalars],
        guess=None if guess is None else _with_ghosts(model, guess),
        box=model.parameters.bounds if n_scalars else None,
        names=model.parameters.names,
        doubt=lambda result: _unresolved(model, result),
    )
    seconds = time.perf_counter() - start
    return Solution(
        model,
        mu,
        model.layout.at_nodes(result.values),
        result.history[-1],
        seconds,
        next((factors.method for _, factors in model.terms.pattern.last), model.solver),
        history=result.history,
        unknowns=result.values,
        start=result.start,
    )


def _with_ghosts(model: Model, values) -> np.ndarray:
    """Nodal values extended to ghosts, which take the value of their boundary node: a guess, no more.

    Values of all unknowns, with those at ghosts, stay as they are.
    """
    nodes, layout = model.nodes.points, model.layout
    if np.shape(values) == (model.n_unknowns,):
        return check_finite(values, "guess")
    fields = check_shape(values, (layout.n_fields * layout.n_nodes,), "guess").reshape(layout.n_fields, -1)
    _, nearest = KDTree(nodes).query(model.terms.pattern.points[layout.n_nodes :][: layout.n_ghosts])
    return np.hstack([fields, fields[:, nearest]]).ravel()


def _unresolved(model: Model, result: NewtonResult) -> str:
    """Why not to trust a solution at the end of a long path, if there is a reason: it may solve the discrete problem alone."""
    try:
        gap = unpredicted(model, result.values, result.noise)
    except UnsuitableNodes:  # stencils need nearly all nodes
        return "the nodes are too few to check what it ends in"
    jumps = f"it ends in derivatives that jump by {gap:.0%} from node to node, use more nodes"
    return "" if gap < _UNRESOLVED else jumps


def _refined(factors: Factors, load: np.ndarray, guess: np.ndarray | None) -> tuple[np.ndarray, float, float]:
    """The solution, after one step of refinement where it helps, its residual and the share of it that is rounding.

    The residual is the largest relative to the terms of its equation: |A| times the size of each unknown function, and
    the right-hand side. So the measure does not change when equations or unknown functions are scaled. Rounding of these
    terms, with random signs, is what refinement cannot take away; an unknown function that is all rounding counts as
    zero beside others.
    """
    n_fields = factors.pattern.n_fields
    values = factors.solve(load, guess=guess)
    residual = load - factors.matrix @ values
    terms = abs(factors.matrix) @ np.repeat(sizes(values, n_fields), len(load) // n_fields) + np.abs(load)
    rounded = random_signs(2 * len(load)).reshape(2, -1) * terms  # twice, lest one of them miss the worst direction
    if factors.refines:
        correction, *moved = factors.solve(np.vstack([residual, rounded]).T).T
    else:  # iterated as far as it goes; of what rounding moves, the size is enough
        correction, moved = np.zeros_like(values), factors.solve(rounded.T, tolerance=_ROUGHLY).T
    better = values + correction
    refined = load - factors.matrix @ better
    before, after = (largest_ratio(np.abs(r), terms) for r in (residual, refined))
    noise = np.finfo(float).eps * np.max([sizes(np.ascontiguousarray(m), n_fields) for m in moved], axis=0)
    size = sizes(values, n_fields)
    some = NOISE * noise < size
    lost = largest_ratio(noise[some], size[some]) if np.any(some) else float(np.any(noise > 0))
    return (better, after, lost) if after < before else (values, before, lost)


def describe(model: Model, mu: np.ndarray) -> str:
    """A parameter in words: a=0.9, k=1.7."""
    scalars = [f"{p.name}={value:g}" for p, value in zip(model.parameters.scalars, mu, strict=False)]
    return ", ".join([*scalars, *[f"{f.name}=..." for f in model.parameters.functions]]) or "no parameters"
