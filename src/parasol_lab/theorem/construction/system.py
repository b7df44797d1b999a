"""The least-squares problem whose solution a network is to compute, in the form that makes the network small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from parasol import Problem
from parasol.checks import check_choice
from parasol.errors import InputError
from parasol.pde import Model, ParameterSpace
from parasol.reduction import AffineForm, ResidualBuilder, affine_form, modes_on_unknowns
from parasol.runtime import Basis, slices
from parasol_lab.theorem.construction.theta import (
    Rational,
    check_numbers,
    check_units,
    denominator_range,
    distinct,
    middle_and_half,
    rational,
)

PRECONDITIONERS = ("solve", "basis", "none")
_BATCH = 512
_FAR = 1e-100
LOST = 16 * np.finfo(float).eps  # what rounding takes of the terms that B and f are sums of
_ZERO, _MIDDLE = (
    -1,
    -2,
)  # the places of what is multiplied with no coordinate, measured from zero or from the middle of the box


@dataclass(frozen=True, eq=False, repr=False)
class System:
    """c(μ) = T argmin_y ||B(ξ) y − f(ξ)||,  B = B_0 + Σ_j ξ_j B_j,  f = f_0 + Σ_j ξ_j f_j.

    The coordinates ξ(μ) are entries of μ (`linear`), which a network passes on exactly, then functions of μ. Entries are measured
    from `centre`: from zero, B_0 and ξ_j B_j would cancel where a range is narrow and far from zero.
    """

    linear: np.ndarray  # (n_linear,) places in μ
    functions: tuple[Rational, ...]
    operators: np.ndarray  # (1 + n_touched, n_rows, n_modes): B_0, then B_j for the coordinates that touch B
    touched: np.ndarray  # (n_touched,) which coordinates those are
    loads: np.ndarray  # (1 + n_coordinates, n_rows)
    back: np.ndarray  # T, (n_modes, n_modes)
    parameters: ParameterSpace
    n_parameters: int
    form: str  # in words
    centre: np.ndarray | float = 0.0  # (n_linear,)
    zero: tuple[np.ndarray, np.ndarray] | None = (
        None  # B_0 and f_0 for entries measured from zero, where that is not `centre`
    )
    # what the terms of the equation add up to in norms that make `operators` and `loads`; None: those are given as they are
    summed: tuple[np.ndarray, np.ndarray] | None = None

    def __repr__(self) -> str:
        return f"<System of {self.n_rows} rows, {self.n_modes} modes, {self.form}>"

    @property
    def n_rows(self) -> int:
        """Number of rows: N, or Q_A d + Q_f after compression."""
        return self.operators.shape[1]

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return self.operators.shape[2]

    @property
    def constant(self) -> bool:
        """Whether B is the same for all parameters: then c is as simple a function of μ as f is."""
        return len(self.touched) == 0

    @property
    def exact_operator(self) -> bool:
        """Whether a network has B without error: it depends on entries of μ only."""
        return bool(np.all(self.touched < len(self.linear)))

    @property
    def exact_load(self) -> bool:
        """Whether a network has f without error."""
        return not np.any(self.loads[1 + len(self.linear) :])

    def coordinates(self, mus: np.ndarray) -> np.ndarray:
        """ξ of parameter vectors (n, n_parameters): (n, n_coordinates)."""
        linear = mus[:, self.linear] - self.centre
        return np.column_stack([linear, *[function(mus) for function in self.functions]])

    def inside(self, x: np.ndarray) -> np.ndarray:
        """ξ at x ∈ [−1, 1]^p (n, p), to which the box of scalars is moved: no digits are lost in narrow ranges far from zero."""
        middle, half = map(np.array, middle_and_half(self.parameters))
        linear = (middle[self.linear] - self.centre) + half[self.linear] * x[:, self.linear]
        return np.column_stack([linear, *[function.inside(x, middle, half) for function in self.functions]])

    def term_sizes(self, x: np.ndarray) -> np.ndarray:
        """|ξ| at x ∈ [−1, 1]^p, (n, n_coordinates), as large as the terms of each add up to."""
        middle, half = map(np.array, middle_and_half(self.parameters))
        linear = np.abs(middle[self.linear] - self.centre) + half[self.linear] * np.abs(x[:, self.linear])
        return np.column_stack([linear, *[function.size(x, middle, half) for function in self.functions]])

    def term_norms(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the terms of B and of f add up to in norms for such |ξ| (n, n_coordinates): as large as what is rounded there."""
        of_operator, of_load = self.summed or (
            np.linalg.norm(self.operators, 2, axis=(1, 2)),
            np.linalg.norm(self.loads, axis=1),
        )
        one = np.ones((len(sizes), 1))
        return np.hstack([one, sizes[:, self.touched]]) @ of_operator, np.hstack([one, sizes]) @ of_load

    @property
    def about_zero(self) -> System:
        """The same with entries of μ as a network reads them."""
        if self.zero is None:
            return self
        operators = np.array([self.zero[0], *self.operators[1:]])
        return replace(
            self, operators=operators, loads=np.array([self.zero[1], *self.loads[1:]]), centre=0.0, zero=None
        )

    def operator(self, xi: np.ndarray) -> np.ndarray:
        """B at coordinates (n, n_coordinates): (n, n_rows, n_modes)."""
        return self.operators[0] + np.tensordot(xi[:, self.touched], self.operators[1:], axes=1)

    def load(self, xi: np.ndarray) -> np.ndarray:
        """f at coordinates (n, n_coordinates): (n, n_rows)."""
        return self.loads[0] + xi @ self.loads[1:]

    def coefficients(self, mus) -> np.ndarray:
        """c(μ), (n, n_modes), by least squares with orthogonal factors: what a network is compared with."""
        mus = self.parameters.check_vectors(mus, self.n_parameters)
        return self._solved(mus, self.coordinates)

    def coefficients_inside(self, x: np.ndarray) -> np.ndarray:
        """c at x ∈ [−1, 1]^p, (n, n_modes)."""
        return self._solved(x, self.inside)

    def _solved(self, points: np.ndarray, coordinates: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        out = np.empty((len(points), self.n_modes))
        for rows in slices(len(points), _BATCH if self.n_rows < 1000 else 16):
            xi = coordinates(points[rows])
            if self.constant:
                y = np.linalg.lstsq(self.operators[0], self.load(xi).T, rcond=None)[0].T
            else:
                q, r = np.linalg.qr(self.operator(xi))
                right = q.transpose(0, 2, 1) @ self.load(xi)[:, :, None]
                y = np.linalg.solve(r, right)[:, :, 0]
            out[rows] = y @ self.back.T
        return out

    def scaled(self, of_operator: float, of_load: float) -> System:
        """The same map from B and f divided by these numbers."""
        operators, loads = self.operators / of_operator, self.loads / of_load
        zero = None if self.zero is None else (self.zero[0] / of_operator, self.zero[1] / of_load)
        summed = None if self.summed is None else (self.summed[0] / of_operator, self.summed[1] / of_load)
        back = self.back * (of_load / of_operator)
        return replace(self, operators=operators, loads=loads, zero=zero, summed=summed, back=back)


def check_provable(problem: Problem) -> None:
    """Refuse problems that the theorem says nothing about, with the reason."""
    name = problem.name or "the problem"
    if problem.time is not None:
        raise InputError(
            f"{name} depends on time: the theorem is about steady linear problems A(mu) u = f(mu), whose reduced solution is "
            "one least-squares problem. Learn it instead: ps.learn(problem, tolerance=1e-3), or parasol learn."
        )
    if not (problem.parameters.scalars or problem.parameters.functions):
        raise InputError(f"{name} has no parameters, so there is no map to build. Declare some with ps.parameters.")


def reduced_system(
    model: Model, basis: Basis, *, compress: bool = True, precondition: str = "solve", reference=None
) -> System:
    """The reduced least-squares problem of a steady linear model.

    `compress` replaces the N rows by those of a QR factorisation of all [A_q V, f_q]: the same problem in Q_A d + Q_f
    rows. `precondition` "solve" multiplies from the left with A(μ̄)⁻¹, which changes the norm that is made least to one
    near the error itself; "basis" replaces V by V R⁻¹ with QR = A(μ̄) V, which changes coordinates only; "none" neither.
    `reference` is μ̄, the middle of the box where left out.
    """
    check_choice(precondition, PRECONDITIONERS, "precondition")
    modes = modes_on_unknowns(model, basis)
    functions = check_representable(model)
    form = affine_form(model)
    if not form.exact:
        raise InputError("the right-hand side is a function parameter on too many nodes to be represented exactly.")
    middle = model.vector() if reference is None else model.check([reference])[0]
    blocks, loads = _compressed(model, form, modes, basis, middle, precondition, compress)
    back = np.eye(basis.n_modes)
    if precondition == "basis":
        theta = np.array([f(middle[None])[0] for f in functions[0]])
        triangle = np.linalg.qr(np.tensordot(theta, blocks, axes=1), mode="r")
        back = solve_triangular(triangle, back)
        blocks = blocks @ back
    rows = f"{blocks.shape[1]} rows" + (" by QR" if compress else "")
    words = {"solve": "A(middle)^-1 from the left", "basis": "orthonormal test basis", "none": "not preconditioned"}
    return _assembled(model, functions, blocks, loads, back, f"{rows}, {words[precondition]}")


def check_representable(model: Model) -> tuple[list[Rational], list[Rational]]:
    """The θ_q of A and of f as quotients of polynomials, or the reason why no network here represents A and f."""
    check_provable(model.problem)
    if model.terms.nonlinear:
        raise InputError(
            f"{model.problem.name or 'the problem'} is nonlinear in its unknown: the theorem is about A(mu) u = f(mu). "
            "Learn it instead: ps.learn(problem, tolerance=1e-3), or parasol learn."
        )
    symbols = model.problem.parameter_symbols[0]
    for part in (*model.terms.varying_operator, *[part for part in model.terms.varying_load if part.function is None]):
        raise InputError(
            f"the coefficient {part.coefficient.function.expression} mixes coordinates and parameters, so A(mu) and f(mu) are "  # type: ignore[union-attr]
            "no finite sums of functions of mu: no network here represents them. Write it as a sum of products."
        )
    for part in model.terms.varying_load:
        depends = part.coefficient.function.expression.free_symbols & set(symbols)  # type: ignore[union-attr]
        if depends:
            raise InputError(
                f"the function parameter {part.function} is multiplied with {', '.join(map(str, depends))}: values of a "
                "function are not bounded, so no network here represents the product."
            )
    space = model.parameters
    check_units(space)
    check_numbers(getattr(model.problem, "equation", None), "the equation")
    check_numbers(getattr(model.problem, "boundary", None), "the boundary's conditions")
    operator = [rational(t, symbols, "the operator", space) for t in model.terms.operator_thetas]
    load = [rational(t, symbols, "the right-hand side", space) for t in model.terms.load_thetas]
    if model.terms.varying_load and not all(f.constant for f in operator):
        raise InputError(
            f"the values of {model.terms.varying_load[0].function} are not bounded while the operator depends on "
            f"{', '.join(model.parameters.names)}: the theorem needs a bound of the right-hand side."
        )
    for function in [f for f in (*operator, *load) if not f.polynomial]:
        denominator_range(function, model.parameters)
    return operator, load


def _compressed(model: Model, form: AffineForm, modes, basis: Basis, middle, precondition: str, compress: bool):
    """A_q V (Q_A, n_rows, d) and f_q (Q_f, n_rows), preconditioned, in all rows or in few."""
    factors = model.factors(middle) if precondition == "solve" else None
    if factors is None:
        form = _in_range(form)
    scale = np.ones(model.n_unknowns)
    if isinstance(basis.weights, np.ndarray):
        scale = np.sqrt(model.layout.weights(basis.weights))
    if compress:
        builder = ResidualBuilder(form, middle, factors, np.ones(model.n_unknowns), scale)
        for mode in modes.T:
            builder.add(mode)
        triangle, n_loads = builder.triangle, len(form.loads)
        blocks = triangle[:, n_loads:].reshape(len(triangle), modes.shape[1], len(form.operators))
        return blocks.transpose(2, 0, 1), triangle[:, :n_loads].T
    blocks, loads = np.array([a @ modes for a in form.operators]), form.loads
    if factors is not None:
        columns = np.asfortranarray(np.hstack([*blocks, loads.T]))
        solved = scale[:, None] * factors.solve(columns)
        parts = np.split(solved, modes.shape[1] * np.arange(1, len(blocks) + 1), axis=1)
        blocks, loads = np.array(parts[:-1]), parts[-1].T
    return blocks, loads


def _in_range(form: AffineForm) -> AffineForm:
    """A and f divided by one number where squares of their entries would not be floats: c stays as it is."""
    unit = max(float(np.abs(a.data).max(initial=0.0)) for a in form.operators)
    if _FAR < unit < 1 / _FAR or not unit:
        return form
    return replace(form, operators=tuple(a / unit for a in form.operators), loads=form.loads / unit)


def _assembled(model: Model, functions, blocks: np.ndarray, loads: np.ndarray, back, form: str) -> System:
    """Sums over θ_q and φ_q as sums over coordinates: entries of μ and functions that are not affine, each once."""
    curved = distinct([*functions[0], *functions[1]])
    operators, of_operator = _by_coordinate(functions[0], blocks, model.n_parameters, curved)
    right, of_load = _by_coordinate(functions[1], loads, model.n_parameters, curved)
    start = len(functions[1])
    for part in model.terms.varying_load:  # one term per value of a function
        places = model.inputs.places(part.function, part.nodes)
        factors = part.coefficient(model.vector(), 0.0)
        for place, factor, load in zip(places.tolist(), factors, loads[start:], strict=False):  # type: ignore[union-attr]
            right[place] = right.get(place, 0.0) + factor * load
            of_load[place] = of_load.get(place, 0.0) + abs(factor) * float(np.linalg.norm(load))
        start += len(part.positions)
    kept = sorted((operators.keys() | right.keys()) - {_ZERO, _MIDDLE})
    touched = [i for i, j in enumerate(kept) if j in operators]
    none, zero = 0.0 * blocks[0], np.zeros(loads.shape[1])
    linear = np.array([j for j in kept if j < model.n_parameters], dtype=int)
    middle = np.zeros(model.n_parameters)
    middle[: len(model.parameters.scalars)] = middle_and_half(model.parameters)[0]
    return System(
        linear=linear,
        functions=tuple(curved[j - model.n_parameters] for j in kept if j >= model.n_parameters),
        operators=np.array([operators.get(_MIDDLE, none), *[operators[kept[i]] for i in touched]]),
        touched=np.array(touched, dtype=int),
        loads=np.array([right.get(_MIDDLE, zero), *[right.get(j, zero) for j in kept]]),
        back=back,
        parameters=model.parameters,
        n_parameters=model.n_parameters,
        form=form,
        centre=middle[linear],
        zero=(operators.get(_ZERO, none), right.get(_ZERO, zero)),
        summed=(
            np.array([of_operator.get(_MIDDLE, 0.0), *[of_operator[kept[i]] for i in touched]]),
            np.array([of_load.get(_MIDDLE, 0.0), *[of_load.get(j, 0.0) for j in kept]]),
        ),
    )


def _by_coordinate(
    functions: list[Rational], arrays, n_parameters: int, curved: list[Rational]
) -> tuple[dict, dict[int, float]]:
    """Arrays times functions, collected by what they are multiplied with: a place in μ, or one of the curved functions.

    And the sums of their norms.
    """
    out: dict = {}
    norms: dict[int, float] = {}
    for function, array in zip(functions, arrays, strict=False):  # more loads follow: values of functions
        if function.affine:
            constant, slopes = function.slopes()
            shares = {_ZERO: constant, _MIDDLE: function.at_middle, **dict(enumerate(slopes))}
        else:
            shares = {n_parameters + curved.index(function): 1.0}
        for place, share in shares.items():
            if share and np.any(array):
                out[place] = out.get(place, 0.0) + share * array
                norms[place] = norms.get(place, 0.0) + abs(share) * float(np.linalg.norm(array, 2))
    return out, norms
