"""The surrogate: parameters in, fields out, with what is known about their errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from parasol.checks import ParasolError, check_finite, check_positive, check_shape
from parasol.pde.box import ParameterSpace
from parasol.reduction.basis import Basis, slices
from parasol.reduction.conformal import ConformalBound
from parasol.reduction.online import Bounds, ReducedModel
from parasol.surrogate.features import Features
from parasol.surrogate.laws import Laws
from parasol.surrogate.layout import Layout, check_nodes
from parasol.surrogate.operation import Operation
from parasol.surrogate.operations import run, steps
from parasol.surrogate.program import Program, map_name, program_of
from parasol.surrogate.readings import Readings

if TYPE_CHECKING:  # a loaded surrogate answers with NumPy alone
    from scipy.sparse import csr_array

    from parasol.pde.model import Model

_BATCH = 8192
METHODS = ("map", "reduced model", "full solve")


class Map(Protocol):
    """What turns features (n, p) into coefficients (n, d): a trained network, or anybody's regressor."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Coefficients of features."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate:
    """u(μ) ≈ V · map(features(μ)); calling it changes nothing in it, so threads may share it."""

    basis: Basis
    map: Map
    features: Features
    parameters: ParameterSpace
    layout: Layout = field(default_factory=Layout)
    reduced: ReducedModel | None = None  # proves bounds, repairs
    conformal: ConformalBound | None = None  # bounds relative errors at a level, where nothing can be proven
    solver: Model | Any | None = None  # for the last repair; not part of a file
    facts: dict[str, Any] = field(default_factory=dict)  # how it was made: solves, seconds, measured errors
    readout: np.ndarray | None = None  # (n_out, n_modes) what is lifted to, where it is not all values
    quantities: Readings | None = None  # what the problem wants to know of a field

    def __post_init__(self):
        kinds = {
            "basis": Basis,
            "features": Features,
            "parameters": ParameterSpace,
            "layout": Layout,
            "reduced": ReducedModel | None,
            "conformal": ConformalBound | None,
            "quantities": Readings | None,
        }
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise ParasolError(f"{name} of a surrogate is a {type(getattr(self, name)).__name__}.")
        if not callable(getattr(self.map, "predict", None)):
            raise ParasolError(f"the map of a surrogate is a {type(self.map).__name__}, which has no predict.")
        if self.reduced is not None and not _same_modes(self.reduced.basis, self.basis):
            raise ParasolError("the reduced model has another basis than the surrogate: its bounds would be wrong.")
        if self.readout is not None:
            check_finite(check_shape(self.readout, (None, self.basis.n_modes), "readout"), "readout")
        self.layout.check_values(self.n_values)
        if self.quantities is not None:
            check_shape(self.quantities.rows, (None, self.layout.n_times, self.basis.n_modes), "rows of the quantities")
        if self.conformal is not None and self.conformal.normalised:
            raise ParasolError("a surrogate knows no difficulties. Calibrate its bound without them.")

    def __getstate__(self) -> dict:  # what was computed on the way is computed again where needed
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        names = ", ".join(self.parameters.names) or "functions"
        return f"<Surrogate of ({names}): {self.basis.n_modes} modes, {self.n_values} values, {map_name(self.map)}>"

    def _repr_html_(self) -> str:
        from parasol.surrogate.words import model_html  # which needs this class

        return model_html(self)

    @property
    def n_parameters(self) -> int:
        """Length of a parameter vector."""
        return len(self.features.shift)

    @property
    def n_values(self) -> int:
        """Length of an answer."""
        return len(self._modes)

    @property
    def has_bounds(self) -> bool:
        """Whether anything is known about the errors of its answers."""
        return self.reduced is not None or self.conformal is not None

    @property
    def _modes(self) -> np.ndarray:
        return self.basis.modes if self.readout is None else self.readout

    @cached_property
    def _transposed(self) -> dict[type, np.ndarray]:
        """Modes as rows, by type: what the last product reads."""
        return {kind: np.ascontiguousarray(self._modes.T, dtype=kind) for kind in (np.float32, np.float64)}

    def __call__(
        self,
        mus=None,
        *,
        dtype: type = np.float64,
        extrapolate: bool = False,
        tolerance: float | None = None,
        **named,
    ) -> Answer:
        """Answers for one parameter vector (n_parameters,) or several (n_samples, n_parameters), in float64 or float32.

        By name too: `surrogate(a=0.9, k=1.7)`, a mapping of names to numbers or columns of them, a data frame whose columns
        have the parameters' names in any order.

        With a `tolerance`, answers whose relative bound exceeds it are repaired: by the reduced model, and where that is
        not enough by a full solve; `answer.method` says how each one came about. Repaired answers are float64.
        """
        if (mus is None) == (not named):
            raise ParasolError(
                f"give the parameters ({', '.join(self.parameters.names)}) once: as a vector, as a table, or by name."
            )
        mus, outside, single = self._checked(named if mus is None else mus, extrapolate)
        if tolerance is None:
            return Answer(self, mus, self._coefficients(mus, dtype), single, outside)
        if np.dtype(dtype) != np.float64:
            raise ParasolError("a tolerance is met in float64. Leave dtype out, or the tolerance.")
        if self.readout is not None:
            raise ParasolError("repairs need whole fields. Give the tolerance to the surrogate that was restricted.")
        answer = Answer(self, mus, self._coefficients(mus), single, outside)
        return self._repaired(answer, check_positive(tolerance, "tolerance"))

    def coefficients(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """c(μ), (n_samples, n_modes) or (n_modes,)."""
        mus, _, single = self._checked(mus, extrapolate)
        out = self._coefficients(mus)
        return out[0] if single else out

    def _coefficients(self, mus: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        predict = self._predictors.get(np.dtype(dtype).type)
        if predict is None:
            raise ParasolError(f"dtype must be float64 or float32, got {dtype!r}.")
        if len(mus) <= _BATCH:
            out = predict(mus)
        else:
            out = np.concatenate([predict(mus[rows]) for rows in slices(len(mus), _BATCH)])
        if not np.isfinite(out).all():
            bad = mus[int(np.argmin(np.isfinite(out).all(axis=1)))]
            raise ParasolError(
                f"the map predicts values that are not finite, for instance at {bad}. Ask inside the box."
            )
        return out

    @cached_property
    def _predictors(self) -> dict:
        """Coefficients of parameters, by the type of numbers wanted; only a map made for float32 computes in it."""
        program = program_of(self.map)
        if program is None:
            whole = lambda mus: np.asarray(self.map.predict(self.features(mus)), dtype=float)  # noqa: E731
        else:
            whole = self.program
            if program.dtype == np.float32:
                single = program.astype(np.float64).folded().astype(np.float32)
                before = steps(self.features.operations)  # in float64: in a narrow box the digits are needed
                return {np.float64: whole, np.float32: lambda mus: single(run(before, mus))}
        return {np.float64: whole, np.float32: partial(_single, whole)}

    @property
    def operations(self) -> tuple[Operation, ...]:
        """From parameters to coefficients, step by step; those of the map have the type of numbers it was made for."""
        program = program_of(self.map)
        if program is None:
            raise ParasolError(
                f"a map of kind {map_name(getattr(self.map, 'inner', self.map))} has no program, so nothing but Python can compute it: it can neither be "
                "exported nor explored. Fit one of parasol's recipes, such as 'best' or 'polynomial'."
            )
        return (*self.features.operations, *program.operations)

    @cached_property
    def program(self) -> Program:
        """From parameters to coefficients in float64, folded: what Python runs."""
        return Program(tuple(op.astype(np.float64) for op in self.operations)).folded()

    def _checked(self, mus, extrapolate: bool) -> tuple[np.ndarray, np.ndarray | None, bool]:
        """Parameter vectors on axis 0 as floats, which of them lie outside the box (None: none), and whether it was one."""
        try:
            mus = np.asarray(self.parameters.ordered(mus), dtype=float)
        except (TypeError, ValueError) as error:
            if isinstance(error, ParasolError):
                raise
            raise ParasolError(f"parameters must be real numbers, got {mus!r}.") from None
        if mus.ndim == 0:
            mus = mus[None]
        single = mus.ndim == 1
        if single:
            mus = mus[None]
        if mus.ndim != 2 or mus.shape[1] != self.n_parameters:
            raise ParasolError(
                f"mus has shape {mus.shape}, expected (n_samples, {self.n_parameters}) or ({self.n_parameters},)."
            )
        low, high = self._box
        scalars = mus[:, : len(low)]
        inside = (scalars >= low) & (scalars <= high)
        if inside.all() and (len(low) == mus.shape[1] or np.isfinite(mus).all()):
            return mus, None, single
        check_finite(mus, "mus")
        if not extrapolate:
            self.parameters.check(scalars)
        if np.any(mus[:, self.features.logs] <= 0):
            raise ParasolError("a parameter on a logarithmic scale must be positive, outside its range too.")
        return mus, np.any(~inside, axis=1), single

    @cached_property
    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.parameters.answered.limits
        return low, high

    @cached_property
    def laws(self) -> Laws:
        """What is known of functions among the parameters; nothing where the nodes are not known."""
        points = None if self.readout is not None else self.layout.points
        return Laws(self.parameters, points, self.layout.n_interior)

    def lift(self, coefficients: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """V c, (n_samples, n_values), in the type of the coefficients, into `out` where given."""
        return np.matmul(coefficients, self._transposed[coefficients.dtype.type], out=out)

    def jacobian(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """Derivatives of the coefficients by the parameters, (n_samples, n_modes, n_parameters), or of one vector."""
        mus, _, single = self._checked(mus, extrapolate)
        if program_of(self.map) is not None:
            out = self.program.jacobian(mus)
        else:
            slopes = getattr(self.map, "jacobian", partial(_differences, self.map))
            out = slopes(self.features(mus)) * self.features.slope(mus)[:, None, :]
        return out[0] if single else out

    def gradient(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """Derivatives of the values by the parameters, (n_samples, n_values, n_parameters), or of one vector."""
        return self._modes @ self.jacobian(mus, extrapolate=extrapolate)

    def certify(self, mus, coefficients=None, *, extrapolate: bool = False) -> Bounds:
        """Bounds of the errors: from the residual where there is a reduced model (`rigorous` says which are proven), else conformal."""
        mus, outside, _ = self._checked(mus, extrapolate)
        c = self._coefficients(mus) if coefficients is None else np.asarray(coefficients, dtype=float)
        if self.reduced is not None:
            return self.reduced.certify(mus, c, extrapolate=extrapolate)
        if self.conformal is not None:
            relative = np.full(len(mus), float(self.conformal.quantile))
            # the level holds for the law of the calibration set, which ends at the box
            relative[self.laws.unlike(mus) if outside is None else outside | self.laws.unlike(mus)] = np.inf
            # relative to the solution, whose norm is at most that of the answer over 1 − relative
            size = np.linalg.norm(c, axis=1)
            values = np.full(len(mus), np.inf)
            np.divide(size * relative, 1 - relative, out=values, where=relative < 1)
            return Bounds(values, relative, np.zeros(len(mus), dtype=bool))
        raise ParasolError(
            "nothing is known about the errors of this surrogate. Fit it from a reduced model, or give it a calibration set."
        )

    def restricted(self, *, nodes=None, points=None, times=None) -> Surrogate:
        """A surrogate of values at some nodes (indices), at any points (n_points, dimension), or at some stored times only.

        Its cost does not depend on the number of nodes; bounds remain those of the whole field.
        """
        layout, quantities = self.layout, self.quantities
        if self.readout is not None:
            raise ParasolError("this surrogate is restricted already. Restrict the original one.")
        if nodes is not None and points is not None:
            raise ParasolError("give either nodes or points, not both.")
        modes = self.basis.modes.reshape(layout.n_times, len(layout.names), -1, self.basis.n_modes)
        if times is not None:
            chosen = layout.time_indices(times)
            modes, layout = modes[chosen], replace(layout, times=layout.times[chosen])  # type: ignore[index]
            quantities = None if quantities is None else quantities.at(chosen)
        if nodes is not None:
            chosen = check_nodes(nodes, modes.shape[2])
            modes = modes[:, :, chosen]
            layout = replace(layout, points=None if layout.points is None else layout.points[chosen], n_interior=0)
        if points is not None:
            weights = self._weights(points)
            modes = np.stack([np.stack([weights @ field for field in fields]) for fields in modes])
            layout = replace(layout, points=np.atleast_2d(np.asarray(points, dtype=float)), n_interior=0)
        readout = np.ascontiguousarray(modes.reshape(-1, self.basis.n_modes))
        made = replace(self, readout=readout, layout=layout, quantities=quantities)
        vars(made)["laws"] = self.laws  # functions are given at all nodes still
        return made

    def _weights(self, points) -> csr_array:
        from scipy.sparse import csr_array  # here: only values between nodes need SciPy

        from parasol.space.neighbours import Cloud
        from parasol.space.operators import differentiate

        layout = self.layout
        if layout.points is None or layout.scheme is None:
            raise ParasolError("this surrogate knows no nodes, so it cannot answer between them. Fit it from a model.")
        points = check_finite(check_shape(np.atleast_2d(points), (None, layout.points.shape[1]), "points"), "points")
        # the domain is not part of a file, and answers must not change on the way through one
        cloud = Cloud(layout.points, layout.domain if layout.outline is None else layout.outline)  # type: ignore[arg-type]
        tree = cloud.wrap.tree(layout.points)
        gap, node = (found[:, 0] for found in cloud.wrap.query(tree, points, 1))
        between = gap > 1e-12 * float(np.max(np.abs(layout.points)))
        inside = layout.contains(points)
        if layout.domain is None and layout.outline is None:  # stencils would extrapolate wildly
            inside = gap <= 2 * np.max(cloud.wrap.query(tree, layout.points, 2)[0][:, -1])
        if not inside[between].all():
            raise ParasolError("some of the points lie outside the domain. Ask inside only.")
        at_nodes = np.flatnonzero(~between)  # a node has its own value, wherever its neighbours are
        shape = (len(points), len(layout.points))
        weights = csr_array((np.ones(len(at_nodes)), (at_nodes, node[at_nodes])), shape)
        if between.any():
            zero = (0,) * layout.points.shape[1]
            rows = differentiate(cloud, points[between], [zero], layout.scheme)[zero].tocoo()
            weights = weights + csr_array((rows.data, (np.flatnonzero(between)[rows.row], rows.col)), shape)
        return weights

    def _repaired(self, answer: Answer, tolerance: float) -> Answer:
        mus, c = answer.mus, answer.coefficients.copy()
        method = np.zeros(len(mus), dtype=int)
        relative = self.certify(mus, c, extrapolate=True).relative
        bad = np.flatnonzero(relative > tolerance)
        if len(bad) and self.reduced is not None:
            better = self.reduced.solve(mus[bad], extrapolate=True)
            c[bad], method[bad] = better.coefficients, 1
            bad = bad[better.bounds.relative > tolerance]  # type: ignore[union-attr]
        solved: dict[int, np.ndarray] = {}
        if len(bad):
            if self.solver is None:
                raise ParasolError(
                    f"{len(bad)} of {len(mus)} answers cannot be brought below {tolerance:g} without full solves, and this "
                    "surrogate has no solver at hand. Use dataclasses.replace(surrogate, solver=model)."
                )
            for i in bad:
                beyond = answer.outside is not None and answer.outside[i]
                solution = self.solver.solve(mus[i], **({"extrapolate": True} if beyond else {}))
                solved[int(i)] = np.asarray(
                    getattr(solution, "flat", getattr(solution, "values", solution)), dtype=float
                )
            method[bad] = 2
        return Answer(self, mus, c, answer.single, answer.outside, method, solved)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What a surrogate says about some parameters; fields and bounds are computed when asked for."""

    surrogate: Surrogate
    mus: np.ndarray  # (n_samples, n_parameters)
    coefficients: np.ndarray  # (n_samples, n_modes)
    single: bool  # asked with one vector: values and bound come without the sample axis
    outside: np.ndarray | None = None
    methods: np.ndarray | None = None  # (n_samples,) index in METHODS
    solved: dict[int, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Answer to {len(self.mus)} parameters>"

    def _repr_html_(self) -> str:
        from parasol.surrogate.words import answer_html

        return answer_html(self)

    @cached_property
    def values(self) -> np.ndarray:
        """Fields, (n_samples, n_values), or (n_values,) where one parameter was asked for."""
        return self.lift()

    def lift(self, out: np.ndarray | None = None) -> np.ndarray:
        """The fields once more, into `out` where given (a memory map, for instance)."""
        c = self.coefficients
        fields = self.surrogate.lift(c[0] if self.single else c, out)
        for i, values in self.solved.items():
            fields[... if self.single else i] = values
        return fields

    def blocks(self, size: int = 1024) -> Iterator[np.ndarray]:
        """Fields, `size` of them at a time, for batches that do not fit in memory."""
        for rows in slices(len(self.mus), size):
            part = {i - rows.start: v for i, v in self.solved.items() if rows.start <= i < rows.stop}
            yield Answer(self.surrogate, self.mus[rows], self.coefficients[rows], False, solved=part).lift()

    @cached_property
    def bounds(self) -> Bounds:
        """Absolute and relative bounds of the errors, and which of them are proven."""
        c = self.coefficients
        found = self.surrogate.certify(self.mus, c, extrapolate=True)
        if c.dtype == np.float32:  # what rounding does to the product V c, entry by entry at most
            slack = (c.shape[1] + 4) * np.finfo(np.float32).eps * np.sum(np.abs(c), axis=1, dtype=float)
            size = np.linalg.norm(c, axis=1) - found.values  # no more than the norm of the solution
            found.relative[:] += np.divide(slack, size, out=np.full(len(c), np.inf), where=size > 0)
            found.values[:] += slack
        if self.solved:  # the error is measured against the full solve, which these are
            exact = np.fromiter(self.solved, dtype=int)
            found.values[exact] = found.relative[exact] = 0.0
            found.rigorous[exact] = True
        return found

    @property
    def bound_kind(self) -> list[str] | str:
        """What is known of each bound, of the field and of its quantities alike.

        "proven" (theorem, for the discrete problem, see `Bounds.rigorous`), "estimated" (from the residual, with a guessed
        constant, or from samples kept aside that were not drawn at random), or "calibrated" (it holds for new parameters
        of the calibration set's distribution at the stated level).
        """
        conformal = self.surrogate.conformal
        calibrated = self.surrogate.reduced is None and conformal is not None and conformal.drawn
        other = "calibrated" if calibrated else "estimated"
        kinds = ["proven" if rigorous else other for rigorous in self.bounds.rigorous]
        return kinds[0] if self.single else kinds

    @property
    def bound(self) -> np.ndarray | float:
        """Bounds of the relative errors, (n_samples,), or a number."""
        return float(self.bounds.relative[0]) if self.single else self.bounds.relative

    @cached_property
    def quantities(self) -> dict[str, Any]:
        """Quantities of interest by name: (n_samples,), or (n_samples, n_times) in time; without samples if asked for one."""
        readings = self.surrogate.quantities
        if readings is None:
            return {}
        found = readings(self.coefficients)
        for i, values in self.solved.items():
            found[:, i] = self.surrogate.solver.quantities.rows @ values.reshape(found.shape[2], -1).T  # type: ignore[union-attr]
        return self._by_name(readings.names, found)

    @cached_property
    def quantity_bounds(self) -> dict[str, Any]:
        """How far each quantity can be off, in the shapes of `quantities`; `bound_kind` says what is known of these bounds."""
        readings = self.surrogate.quantities
        return {} if readings is None else self._by_name(readings.names, readings.bounds(self.bounds.values))

    def _by_name(self, names: tuple[str, ...], found: np.ndarray) -> dict[str, Any]:
        found = found[:, :, 0] if self.surrogate.layout.times is None else found
        found = found[:, 0] if self.single else found
        return {name: float(value) if value.ndim == 0 else value for name, value in zip(names, found, strict=True)}

    @property
    def extrapolated(self) -> np.ndarray | bool:
        """Whether a number lies outside the box or where solves failed, or a function is unlike its law: (n_samples,) or one truth value."""
        unlike = self.surrogate.laws.unlike(self.mus)
        outside = unlike if self.outside is None else self.outside | unlike
        return bool(outside[0]) if self.single else outside

    @property
    def method(self) -> list[str] | str:
        """How each answer came about: by the map, by the reduced model, by a full solve."""
        indices = np.zeros(len(self.mus), dtype=int) if self.methods is None else self.methods
        return METHODS[indices[0]] if self.single else [METHODS[i] for i in indices]

    @property
    def road(self) -> list[str] | str:
        """The name of `method` in version 0.1.0; it goes with the next version."""
        warnings.warn("answer.road has a new name: use answer.method.", DeprecationWarning, stacklevel=2)
        return self.method

    @property
    def nodes(self) -> np.ndarray | None:
        """The nodes (n_nodes, dimension) the values belong to, where they are known."""
        return self.surrogate.layout.points


def _single(predict, mus: np.ndarray) -> np.ndarray:
    """Predictions rounded to single precision."""
    with np.errstate(over="ignore"):
        return predict(mus).astype(np.float32)


def _same_modes(one: Basis, other: Basis) -> bool:
    return one is other or (one.modes.shape == other.modes.shape and np.array_equal(one.modes, other.modes))


def _differences(fitted: Map, x: np.ndarray) -> np.ndarray:
    """Central differences, for maps that do not know their derivatives."""
    step = 1e-5
    columns = [(fitted.predict(x + step * e) - fitted.predict(x - step * e)) / (2 * step) for e in np.eye(x.shape[1])]
    return np.stack(columns, axis=-1)
