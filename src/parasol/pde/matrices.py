"""Somebody's matrices as a model: A(mu) = sum_q theta_q(mu) A_q and f(mu) = sum_q theta_q(mu) f_q."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import sympy
from numpy.typing import ArrayLike
from scipy import sparse

from parasol.checks import check_choice
from parasol.errors import InputError
from parasol.pde.equation import Time
from parasol.pde.layout import FieldLayout
from parasol.pde.matrix_functions import GivenFunctions, read_inputs
from parasol.pde.matrix_terms import AffineState, Given, nodes_of, placing, read_mesh, read_places, read_times
from parasol.pde.model import Model
from parasol.pde.moments import Moments
from parasol.pde.parameters import FunctionParameter, Parameter, ParameterSpace
from parasol.pde.quantities import QuantityRows
from parasol.pde.sparse_direct import BACKENDS, chosen_solver
from parasol.pde.transient import check_stepping
from parasol.runtime.layout import AXES
from parasol.runtime.products import Weights
from parasol.space.interpolation import weights_in_cells


@dataclass(frozen=True, eq=False)
class MatrixProblem:
    """What is known of a problem of which only the matrices are given."""

    parameters: ParameterSpace
    symbols: tuple[Parameter, ...]
    functions: tuple[FunctionParameter, ...]
    names: tuple[str, ...]
    name: str = ""
    equation: str = ""
    affine: bool = True  # not where operator(mu) is a function
    quantities: tuple[str, ...] = ()
    dimension: int = 0
    time: Time | None = None
    times: np.ndarray | None = None
    time_order: int = 0
    # what the statement of a problem has, and matrices have not
    linear: ClassVar[bool] = True
    exact: ClassVar[None] = None
    forms: ClassVar[tuple] = ()
    all_forms: ClassVar[tuple] = ()
    settings: ClassVar[Mapping] = {}
    exact_solutions: ClassVar[Mapping] = {}

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Their names."""
        return AXES[: self.dimension]

    @property
    def words(self) -> dict[str, str]:
        """What people should still know of it when only a surrogate is left."""
        words = {"problem": self.name, "equation": self.equation}
        return {key: text for key, text in words.items() if text}

    @property
    def parameter_symbols(self) -> tuple[tuple[Parameter, ...], tuple[FunctionParameter, ...]]:
        """The numbers, and the functions."""
        return self.symbols, self.functions


@dataclass(frozen=True)
class PlacedLayout(FieldLayout):
    """Functions whose values stand at given places of a vector; −1 is a value that is zero."""

    places: Mapping[str, np.ndarray] = field(default_factory=dict)

    def fields(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """The functions by name, each (..., n_points)."""
        values = np.asarray(values)
        return {name: np.where(at >= 0, values[..., at], 0.0) for name, at in self.places.items()}


@dataclass(frozen=True, eq=False, init=False, repr=False)
class AffineModel(Model):
    """A linear model from matrices and vectors of one's own: A(μ) u = f(μ), A = Σ θ_q(μ) A_q, f = Σ θ_q(μ) f_q.

    `operators` and `loads` map each θ_q, a number or an expression in parameters (`ps.parameters`), to a sparse or dense
    matrix (n, n), symmetric or not, or to a vector (n,). Where two terms have the same θ, give pairs [(θ, A), ...].
    Constraints may be eliminated or not. `product` is the inner product that errors are measured in, a symmetric
    positive definite matrix or weights (n,); Euclidean if left out. `quantities` names linear quantities of the
    solution by their weights (n,).

    For pictures and values between points: `points` (n_points, dimension) and `cells` (n_cells, n_nodes), simplices or
    quadrilaterals, corners first. The vector u holds the values at the points, function after function where `fields`
    names several. Where constrained values were eliminated, `free` numbers those that are left; the others are zero.
    For other orders, such as point after point, and unknowns that belong to no point, `fields` maps each name to the places
    (n_points,) of its values in u, −1 for a value that is zero (of scikit-fem's vector elements: `basis.nodal_dofs[0]`);
    with `free`, in the vector before values were eliminated.

    Where A depends on μ in other ways, give functions: `operator(mu)` returns the matrix, `load(mu)` the vector (or one vector
    for all μ), and `parameters` are ranges by name in the order of mu, `{"a": (0.1, 4.0), "k": (1, 10, "log")}`. Full solves use
    the functions as they are; for reduced models a sum Σ θ_q(μ) A_q is fitted to samples, so that nothing is proven then.
    `parameters` may also be a tuple, or a `ParameterSpace`, with functions on the domain: mu is then the numbers followed by the
    values of each function at the `points`. No sum is fitted for these: they are learned from full solves.

    In time, M u' + A u = f with `mass`, or M u'' + C u' + A u = f with `damping` (or `order=2`): matrices, or mappings from
    θ to matrices. `times` are those to store, the first is that of the `initial` state: a vector, a mapping from θ to
    vectors, zero if left out; for u'' a pair of state and velocity. A θ of `loads` may then depend on `ps.time()`.
    `step` and `integrator` are those of `solve`; steps are adapted if left out. `solver` is that of `ps.discretize`.

    >>> (a,) = (Parameter("a", 1.0, 3.0),)
    >>> model = AffineModel({1: np.eye(2), a: np.diag([1.0, 0.0])}, {1: np.array([2.0, 3.0])})
    >>> model.solve([1.0]).values, model.solve([3.0]).values
    (array([1., 3.]), array([0.5, 3. ]))
    >>> model = AffineModel(lambda mu: np.diag([np.exp(mu[0]), 1.0]), np.ones(2), parameters={"a": (0.0, 1.0)})
    >>> model.solve([0.0]).values
    array([1., 1.])
    """

    points: np.ndarray | None
    cells: np.ndarray | None
    places: Mapping[str, np.ndarray] | None
    weights: Weights | None
    rows: QuantityRows
    start: tuple[AffineState, ...]  # of u, and of u' where there is u''

    def __init__(
        self,
        operators: Mapping[Any, Any] | Iterable[tuple[Any, Any]] | Callable[[np.ndarray], Any],
        loads: Mapping[Any, Any] | Iterable[tuple[Any, Any]] | Callable[[np.ndarray], Any] | ArrayLike,
        *,
        parameters: Any = None,
        points: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        free: ArrayLike | None = None,
        fields: str | Sequence[str] | Mapping[str, ArrayLike] = "u",
        product: Any = None,
        quantities: Mapping[str, ArrayLike] | None = None,
        mass: Any = None,
        damping: Any = None,
        order: int | None = None,
        initial: Any = None,
        times: ArrayLike | None = None,
        step: float | None = None,
        integrator: str | None = None,
        name: str = "",
        solver: str = "auto",
    ):
        check_choice(solver, BACKENDS, "solver")
        moving = {"mass": mass, "damping": damping, "order": order, "initial": initial}
        where, cells = read_mesh(points, cells)
        given = _read(operators, loads, (parameters, where), product, quantities or {}, times=times, **moving)
        names = _names(fields)
        places, equation = None, given.equation
        if isinstance(fields, Mapping):
            places = {one: read_places(at, given.n, where, one, free) for one, at in fields.items()}
        elif free is not None:
            given = given.on_all(placing(free, given.n, where, len(names)))
        elif where is not None and given.n != len(names) * len(where):
            raise InputError(
                f"{given.n} unknowns are not {len(names)} value{'s' * (len(names) > 1)} at each of {len(where)} points. Say "
                "with free= which are left, or with fields={name: places} where they stand."
            )
        inputs, when = given.inputs, read_times(times, bool(given.in_time))
        given.check_thetas(when)
        steps = check_stepping(when is not None, step=step, integrator=integrator)
        own = (names[0],) if places is not None else names
        problem = MatrixProblem(
            parameters=inputs.space,
            symbols=inputs.scalars,
            functions=inputs.functions,
            names=own,
            name=name,
            equation=equation,
            affine=not callable(operators),
            quantities=tuple(given.rows.names),
            dimension=0 if where is None else where.shape[1],
            time=None if when is None else given.time,
            times=when,
            time_order=len(given.start),
        )
        positions = None if where is None or places is not None else np.tile(where, (len(names), 1))
        attributes = {
            "problem": problem,
            "nodes": None if where is None or cells is None else nodes_of(where, cells),
            "scheme": None,
            "report": None,
            "terms": given.terms(positions, inputs, problem.time),
            "solver": chosen_solver(solver, given.n, None if where is None else where.shape[1]),
            **steps,
            "elements": None,
            "points": where,
            "cells": cells,
            "places": places,
            "weights": given.weights,
            "rows": given.rows,
            "start": given.states(len(own)),
        }
        for key, value in attributes.items():
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        terms = f"{len(self.terms.operator_thetas)} + {len(self.terms.load_thetas)} terms"
        terms = terms if self.problem.affine else "operator(mu)"
        called = f" {self.problem.name}" if self.problem.name else ""
        return f"<AffineModel{called}: {self.n_unknowns} unknowns, {terms} in {self.parameters}>"

    @property
    def product(self) -> Weights | None:
        """The inner product that errors are measured in; None is Euclidean."""
        return self.weights

    @property
    def n_nodes(self) -> int:
        """Values of each function in the vector of unknowns."""
        return self.n_unknowns // len(self.problem.names)

    @cached_property
    def layout(self) -> FieldLayout:
        """How the values of the functions stand in one vector."""
        if self.places is not None:
            return PlacedLayout(self.problem.names, self.n_unknowns, 0, self.places)
        return FieldLayout(self.problem.names, self.n_nodes, 0)

    @cached_property
    def quantities(self) -> QuantityRows:
        """The quantities of interest, as weights of the unknowns."""
        return self.rows

    def initial(self, mu: np.ndarray) -> list[np.ndarray]:
        """The state at the start, (n_unknowns,), and the velocity where there is u''."""
        return [state.values(mu[None, : self.inputs.n_scalars])[0] for state in self.start]

    @cached_property
    def _moments(self) -> Moments | None:
        """When something happens in the loads, None where they do not depend on time."""
        moving = [part.coefficient.function.expression for part in self.terms.varying_load]
        nowhere = [sympy.Dummy() for _ in range(self.terms.pattern.points.shape[1])]  # loads do not know the points
        return Moments.of(moving, self.problem.time, self.inputs.scalars, nowhere) if moving else None  # type: ignore[arg-type]

    @cached_property
    def finer(self) -> None:
        """There are no finer matrices."""
        return

    @cached_property
    def between(self) -> None:
        """Matrices say nothing of the equation between their points."""
        return

    def weights_at(self, points: np.ndarray) -> sparse.csr_array:
        """Weights (n_points, n_nodes) that turn values at the model's points into values at others, in its cells."""
        if self.points is None or self.cells is None:
            raise InputError("values between points need points= and cells=. Give them to ps.AffineModel.")
        return weights_in_cells(self.points, self.cells, points)


def _read(
    operators: Any,
    loads: Any,
    declared: tuple[Any, np.ndarray | None],
    product: Any,
    quantities: Any,
    *,
    times: Any,
    **moving: Any,
) -> Given:
    """Matrices with their θ, or functions of mu, `declared` by parameters and points; `moving` is what is for problems in time."""
    parameters, where = declared
    if not callable(operators):
        if parameters is not None:
            raise InputError(
                "the thetas say what the matrices depend on. Leave parameters= out: it is for operator(mu)."
            )
        return Given.read(operators, loads, **moving, product=product, quantities=quantities)
    if times is not None or any(part is not None for part in moving.values()):
        raise InputError("operator(mu) is for steady problems. In time, give matrices with their theta.")
    return GivenFunctions.of(operators, loads, read_inputs(parameters, where), product, quantities)


def _names(fields: Any) -> tuple[str, ...]:
    """The names of the functions."""
    names = (fields,) if isinstance(fields, str) or not isinstance(fields, Iterable) else tuple(fields)
    if not all(isinstance(one, str) and one for one in names) or not 0 < len(names) == len(set(names)):
        raise InputError(f"fields must name functions, each by a name of its own, got {fields!r}.")
    return names
