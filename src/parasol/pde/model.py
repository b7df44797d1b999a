"""A discretised problem: its terms on the nodes, and how to assemble and solve with them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from parasol import __version__
from parasol.errors import FormulaError, InputError, SolveFailed
from parasol.pde.evolution import Evolution, evolve
from parasol.pde.given_jumps import Offset, offset_values, offsets
from parasol.pde.inputs import Inputs
from parasol.pde.layout import FieldLayout
from parasol.pde.moments import Moments
from parasol.pde.parameters import ParameterSpace
from parasol.pde.problem import Problem
from parasol.pde.quantities import QuantityRows, quantity_rows
from parasol.pde.sparse_direct import Factors, SingularMatrixError, factorize, factors_of
from parasol.pde.steady import Solution, describe, solve_nonlinear, solve_steady
from parasol.pde.system import System
from parasol.pde.terms import Terms
from parasol.pde.transient import spectrum
from parasol.runtime.above import borrowed
from parasol.runtime.products import Weights
from parasol.space.by_region import derivatives_at
from parasol.space.elements import Elements
from parasol.space.nodes import Nodes
from parasol.space.operators import StencilReport
from parasol.space.stencils import Scheme

if TYPE_CHECKING:
    from parasol.pde.discretisation import Probe

_MOVED = {  # attributes of 0.1.0 that a part of the model has now; they go with the next version
    name: f"{part}.{name}"
    for part, names in {
        "problem": "affine",
        "layout": "fields at_nodes unknowns",
        "terms": "pattern operator_thetas load_thetas operator_data loads time_data varying_operator varying_load nonlinear "
        "operators matrix theta_functions operator_theta load_theta load_moves constant_operator",
    }.items()
    for name in names.split()
} | {
    "hidden": "layout.at_ghosts",
    "unknown_weights": "layout.weights",
    "function_slices": "inputs.slices",
    "function_points": "inputs.points",
    "function_places": "inputs.places",
}


@dataclass(frozen=True, eq=False)
class Model:
    """A discretised problem  A(mu) u = f(mu),  A = sum_q theta_q(mu) A_q + ...,  f likewise.

    In time, M2 u'' + M1 u' joins in, and where the problem is nonlinear N(u). `terms` holds the matrices and vectors,
    `inputs` says what a parameter vector holds, `layout` how the values of the unknown functions stand in u.
    """

    computed_by: ClassVar[str] = f"parasol {__version__}"  # another version may solve otherwise

    problem: Problem
    nodes: Nodes
    scheme: Scheme
    report: StencilReport
    terms: Terms
    solver: str = "superlu"
    step: float | None = None  # in time, unless `solve` is given another
    integrator: str | None = None
    elements: Elements | None = None  # None: stencils

    def __getstate__(self) -> dict:  # factors stay behind; they are computed again where needed
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _repr_html_(self) -> str:
        return borrowed("view")(self)

    def __repr__(self) -> str:
        return (
            f"<Model {self.problem.name or 'of a problem'}: {self.n_unknowns} unknowns, {self.elements or self.scheme}>"
        )

    if not TYPE_CHECKING:  # type checkers report names that are not listed

        def __getattr__(self, name: str):
            if name not in _MOVED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            warnings.warn(f"model.{name} has moved: use model.{_MOVED[name]}.", DeprecationWarning, stacklevel=2)
            return attrgetter(_MOVED[name])(self)

    @property
    def product(self) -> Weights | None:
        """The inner product that errors are measured in unless another is asked for, (n_fields * n_nodes,); None is Euclidean.

        Elements have that of L2 on the domain, with the volumes of their nodes: these are graded to singular points, where
        a plain sum over the nodes would see little else.
        """
        return None if self.elements is None else np.tile(self.elements.volumes, self.layout.n_fields)

    @property
    def inputs(self) -> Inputs:
        """What a parameter vector holds."""
        return self.terms.inputs

    @cached_property
    def layout(self) -> FieldLayout:
        """How the values of the unknown functions stand in one vector."""
        names, n_points = self.problem.names, len(self.terms.pattern.points)
        return FieldLayout(names, self.n_nodes, n_points // len(names) - self.n_nodes)

    @property
    def n_unknowns(self) -> int:
        """Number of unknowns: values of all unknown functions at nodes and ghosts."""
        return len(self.terms.pattern.points)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, ghosts not counted."""
        return self.nodes.n_nodes

    @property
    def n_parameters(self) -> int:
        """Length of a parameter vector."""
        return self.inputs.n_parameters

    @property
    def parameters(self) -> ParameterSpace:
        """The problem's parameters."""
        return self.problem.parameters

    @cached_property
    def quantities(self) -> QuantityRows:
        """The problem's quantities of interest, as weights of a solution's values at one time."""
        discrete = self.scheme if self.elements is None else self.elements
        scalars = self.inputs.scalars
        return quantity_rows(self.problem.functionals, self.nodes, discrete, self.problem.names, scalars)

    @cached_property
    def between(self) -> Probe | None:
        """The equation between the nodes, by which the error of a solve is estimated; made when first asked for."""
        from parasol.pde.discretisation import probe  # which discretises again, and discretisation makes models

        return probe(self)

    @cached_property
    def other_degrees(self) -> dict[int, tuple[Model, sparse.csr_array]]:
        """Elements of other degrees on the same triangles, for the error of a solve: one more, or where there is none, all
        that there are, each with the weights of its values at the nodes of this model."""
        from parasol.pde.by_elements import of_degree  # which makes models

        own = self.elements.degree if self.elements is not None else 0
        higher = of_degree(self, own + 1)
        candidates = [higher] if higher is not None else [of_degree(self, degree) for degree in range(2, own)]
        models = [model for model in candidates if model is not None and model.elements is not None]
        return {m.elements.degree: (m, m.weights_at(self.nodes.points)) for m in models}  # type: ignore[union-attr]

    @cached_property
    def finer(self) -> Model | None:
        """The same problem on twice as many nodes, for the error of a solve in time; made when first asked for."""
        from parasol.pde.discretisation import finer_model

        return finer_model(self)

    @cached_property
    def jumps(self) -> tuple[Offset, ...]:
        """What unknowns in regions exceed the values of nodes on their interfaces by, where jumps are given."""
        return offsets(self.problem, self.nodes)

    @property
    def first_regions(self) -> np.ndarray | None:
        """The region whose value each node has, (n_nodes,); None where there are no regions."""
        return None if self.nodes.touches is None else np.argmax(self.nodes.touches, axis=1)

    def interpolated(
        self,
        values: np.ndarray,
        points: np.ndarray,
        weights: sparse.csr_array,
        mu: np.ndarray,
        sides: np.ndarray | None,
    ) -> np.ndarray:
        """Values (n_fields * n_nodes,) of a solution at points, of which `weights_at` has the weights: (n_fields, n_points).

        Where an unknown jumps, values are those of the region that the domain finds at a point, or of `sides` (n_points,).
        """
        at_points = np.array([weights @ field for field in values.reshape(len(self.problem.names), -1)])
        if self.jumps:
            own, each = self.problem.domain.region_of(points), np.arange(len(points))
            seen = offset_values(self.problem, self.jumps, mu)
            at_points = at_points + np.array([(weights @ fields.T).T for fields in seen])[own, :, each].T
            if sides is not None:
                jumps = offset_values(self.problem, self.jumps, mu, points)
                at_points = at_points + (jumps[sides, :, each] - jumps[own, :, each]).T
        return at_points

    def weights_at(self, points: np.ndarray) -> sparse.csr_array:
        """Weights (n_points, n_nodes) that turn values at the nodes into values at points of the domain."""
        zero = (0,) * self.nodes.dimension
        return derivatives_at(self.nodes, points, [zero], self.elements or self.scheme)[zero]

    def check(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """Parameter vectors (n_samples, n_parameters) as floats; refused if of wrong length or outside the box."""
        return self.inputs.check(mus, extrapolate=extrapolate)

    def sample(self, n_samples: int, rng: int | np.random.Generator = 0) -> np.ndarray:
        """Random parameter vectors: scalars uniform on their scales, functions from their distributions."""
        return self.inputs.sample(n_samples, rng)

    def vector(
        self,
        values: Mapping[str, float] | None = None,
        rng: int | np.random.Generator = 0,
        *,
        extrapolate: bool = False,
    ) -> np.ndarray:
        """A parameter vector from named scalars (middle of the range where not named) and drawn functions."""
        return self.inputs.vector(values, rng, extrapolate=extrapolate)

    def operator(self, mu: np.ndarray) -> sparse.csr_array:
        """A(mu), sparse (n_unknowns, n_unknowns)."""
        return self.terms.matrix(self.terms.operator_entries(mu))

    def load(self, mu: np.ndarray, t: float = 0.0) -> np.ndarray:
        """f(mu), (n_unknowns,), at time t."""
        return self.terms.load(mu, t)

    def system(self, mu: ArrayLike) -> System:
        """The discretised problem at one parameter, for Newton's method and for steps in time."""
        mu, terms, moments = np.asarray(mu, dtype=float), self.terms, self._moments
        steady_load = None if terms.load_moves else terms.load(mu)
        scalars = mu[: self.inputs.n_scalars]
        some = self.terms.pattern.points[np.unique(np.linspace(0, self.n_nodes - 1, 4).astype(int))]
        return System(
            pattern=terms.pattern,
            stiffness=terms.operator_entries(mu),
            damping=terms.time_entries(mu, 1),
            mass=terms.time_entries(mu, 2),
            load=(lambda t: terms.load(mu, t)) if steady_load is None else (lambda t: steady_load),
            nonlinear=(lambda u, t: terms.nonlinear_value(u, t, mu)) if terms.nonlinear else None,
            jacobian=(lambda u, t: terms.nonlinear_slope(u, t, mu)) if terms.nonlinear else None,
            solver=self.solver,
            forcing=(lambda times: terms.forcing(mu, times)) if moments else None,
            moments=(lambda first, last: moments.grid(scalars, some, first, last)) if moments else None,
            names=self.problem.names,
            nonlinear_rows=terms.nonlinear_rows,
        )

    def initial(self, mu: np.ndarray) -> list[np.ndarray]:
        """The state at the start, (n_unknowns,), and the velocity where there is u''."""
        states, names = self.problem.initial_states, self.problem.names
        points = self.terms.pattern.points[: self.n_nodes + self.layout.n_ghosts]
        parts = [[(*states[n], 0 * states[n][0])[i] for n in names] for i in range(self.problem.time_order)]
        return [self.problem.evaluate(part, points, mu) for part in parts]

    @cached_property
    def _moments(self) -> Moments | None:
        """When something happens in what depends on time, None where nothing does."""
        t, forms = self.problem.time, self.problem.all_forms
        parts = [e for form in forms for e in (form.nonlinear, *[term.coefficient for term in form.source])]
        moving = [part for part in parts if t is not None and part.has(t)]
        return Moments.of(moving, t, self.inputs.scalars, self.problem.coordinates) if moving else None

    @cached_property
    def _constant_factors(self) -> Factors:
        entries = self.terms.operator_entries(np.zeros(self.n_parameters))
        return factorize(self.terms.pattern, entries, backend=self.solver)

    def factors(self, mu: np.ndarray) -> Factors:
        """Factors of A(mu): a constant matrix is factorised once, the others share the elimination order.

        The last ones stay with the pattern, for whoever needs them again: duals, and the estimate of a solve's own error.
        """
        if self.terms.constant_operator:
            return self._constant_factors
        try:
            return factors_of(self.terms.pattern, self.terms.operator_entries(mu), backend=self.solver)
        except SingularMatrixError as error:
            raise SingularMatrixError(f"at {describe(self, mu)}: {error}") from None

    def growth(self, mu: ArrayLike) -> float:
        """Fastest growth rate in time of the linear part at one parameter. It costs about as much as a solve."""
        return spectrum(self.system(mu)).growth

    @cached_property
    def first_growth(self) -> dict[bytes, float]:
        """`growth` at the parameter solved for first, by its bytes: who solves once pays for one."""
        return {}

    @cached_property
    def typical_growth(self) -> float:
        """The largest `growth` in the middle and at both ends of the parameters' ranges, where parameters are numbers.

        Infinite if there is none at one of these, where the equation may have lost its derivative in time.
        """
        low, high = self.parameters.bounds
        try:
            return max(self.growth(mu) for mu in ((self.vector(), low, high) if len(low) else (self.vector(),)))
        except SolveFailed:
            return np.inf

    def exact(self, mu: np.ndarray, t: float | None = None) -> np.ndarray | None:
        """The exact solution at the nodes, stacked like a solution's values, where the problem knows it."""
        known = self.problem.exact_solutions
        return self.problem.evaluate(known.values(), self.nodes.points, mu, t, self.first_regions) if known else None

    def solve(
        self,
        mu: ArrayLike | Mapping[str, Any] | None = None,
        *,
        extrapolate: bool = False,
        guess: ArrayLike | None = None,
        **in_time: Any,
    ) -> Solution | Evolution:
        """Solve at one parameter: a vector, or a mapping of names to values.

        Steady problems return a `Solution`; nonlinear ones take a `guess` (n_fields * n_nodes,) to start Newton
        from; so do iterations, as "iterative" solves of large linear problems, where it spares some.
        Problems in time return an `Evolution` and take `times`, `integrator`, `progress` and either `step` for constant
        steps or `tolerance` (1e-5) for adapted ones: the errors of each unknown in time stay below about tolerance × its
        largest size so far, or with `relative=True` × its size at the time. Adapted steps meet the times at which data
        switch, and find pulses of any width where the argument of a function of time vanishes or is extreme; an argument
        that does so twice within 1/4096 of the run may hide one.

        Raises `SolveFailed` where there is no solution at this parameter, or none is found.
        """
        named = [name for name in in_time if name in self.parameters.names]
        if named:
            raise InputError(
                f"{named[0]} is a parameter. Give one mapping of all of them, as solve({{{named[0]!r}: ...}})."
            )
        mu = self.inputs.check_one(mu, extrapolate=extrapolate)
        if self.problem.time is None and in_time:
            raise InputError(f"{', '.join(in_time)} is for problems in time; this one is steady.")
        try:
            if self.problem.time is not None:
                return evolve(self, mu, **in_time)
            return (
                solve_nonlinear(self, mu, guess=guess) if self.terms.nonlinear else solve_steady(self, mu, guess=guess)
            )
        except (FormulaError, ArithmeticError, np.linalg.LinAlgError) as error:  # coefficients that have no value here
            raise SolveFailed(f"{error}") from error
