"""The surrogate: parameters in, fields out, with what is known about their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import as_floats, check_finite, check_positive, check_shape
from parasol.errors import InputError, ParasolError
from parasol.runtime.above import borrowed
from parasol.runtime.answer import Answer
from parasol.runtime.basis import Basis, slices
from parasol.runtime.conformal import ConformalBound
from parasol.runtime.defects import Defects
from parasol.runtime.distributions import Distributions
from parasol.runtime.duals import Estimates
from parasol.runtime.features import Features
from parasol.runtime.jackknife import Jackknife
from parasol.runtime.layout import Layout
from parasol.runtime.operation import Operation
from parasol.runtime.operations import run, steps
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.parts import CalibratedParts
from parasol.runtime.plain import Plain
from parasol.runtime.program import Program, StoredMap, map_name, program_of
from parasol.runtime.provenance import Provenance
from parasol.runtime.quantities import Quantities
from parasol.runtime.reduced import Bounds, ReducedModel
from parasol.runtime.repair import repaired
from parasol.runtime.restriction import restricted

_BATCH = 8192
_STEP = 1e-5  # of differences, in features
_OWN = 1e-6  # relative: coefficients that differ by less are those of the surrogate, but for rounding


class Map(Protocol):
    """What turns features (n, p) into coefficients (n, d): a trained network, or anybody's regressor."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Coefficients of features."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate:
    """u(μ) ≈ V · map(features(μ)), or without a map V · c(μ) of the reduced model; threads may share it."""

    basis: Basis
    map: Map | None  # None: the reduced model answers
    features: Features
    parameters: ParameterSpace
    layout: Layout = field(default_factory=Layout)
    reduced: ReducedModel | None = None  # proves bounds, repairs
    conformal: ConformalBound | None = None  # bounds relative errors at a level, where nothing can be proven
    solver: Any | None = None  # for the last repair; not part of a file
    facts: Plain = field(default_factory=dict)  # how it was made: solves, seconds, measured errors
    readout: np.ndarray | None = None  # (n_out, n_modes) what is lifted to, where it is not all values
    quantities: Quantities | None = None  # what the problem wants to know of a field
    # the full solver's own relative error, as estimated where the surrogate was learned: features to its logarithm, or as
    # it follows from the coefficients
    discretisation: StoredMap | Defects | None = field(default=None, metadata={"optional": True})
    # features to the logarithm of the relative error to be expected, which a conformal bound is then a multiple of
    difficulty: StoredMap | None = field(default=None, metadata={"optional": True})
    # fits without one of few samples, whose distance from the answer is a part of a conformal bound
    jackknife: Jackknife | None = field(default=None, metadata={"optional": True})
    # bounds of quantities, of single unknowns and of values, from the same solves as the conformal bound
    parts: CalibratedParts | None = field(default=None, metadata={"optional": True})
    # of quantities that are no functionals of the field: maxima, norms, what somebody's program printed
    scalars: Surrogate | None = field(default=None, metadata={"optional": True})
    origin: Any | None = None  # data it was learned from, to which more can be added; not part of a file

    def __post_init__(self):
        kinds = {
            "basis": Basis,
            "features": Features,
            "parameters": ParameterSpace,
            "layout": Layout,
            "reduced": ReducedModel | None,
            "conformal": ConformalBound | None,
            "quantities": Quantities | None,
            "discretisation": StoredMap | Defects | None,
            "difficulty": StoredMap | None,
            "jackknife": Jackknife | None,
            "parts": CalibratedParts | None,
            "scalars": Surrogate | None,
        }
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"{name} of a surrogate is a {type(getattr(self, name)).__name__}.")
        if self.map is None and self.reduced is None:
            raise InputError("a surrogate needs a map, or a reduced model that answers by itself.")
        if self.map is not None and not callable(getattr(self.map, "predict", None)):
            raise InputError(f"the map of a surrogate is a {type(self.map).__name__}, which has no predict.")
        if self.reduced is not None and not _same_modes(self.reduced.basis, self.basis):
            raise InputError("the reduced model has another basis than the surrogate: its bounds would be wrong.")
        if self.readout is not None:
            check_finite(check_shape(self.readout, (None, self.basis.n_modes), "readout"), "readout")
        self.layout.check_values(self.n_values)
        if self.quantities is not None:
            check_shape(self.quantities.rows, (None, self.layout.n_times, self.basis.n_modes), "rows of the quantities")
        if isinstance(self.discretisation, Defects) and self.discretisation.n_modes != self.basis.n_modes:
            raise InputError("the discretisation error of the surrogate belongs to another basis.")
        if self.conformal is not None and self.conformal.normalised != (self.difficulty is not None):
            raise InputError(
                "a bound that was calibrated with difficulties needs their map, and only such a bound does."
            )
        if (self.conformal is not None and self.conformal.refitted) != (self.jackknife is not None):
            raise InputError(
                "a bound from fits that leave one sample out needs these fits, and only such a bound does."
            )
        if self.parts is not None:
            self._check_parts(self.parts)
        if self.scalars is not None and (
            self.scalars.quantities is None or self.scalars.n_parameters != self.n_parameters
        ):
            raise InputError("the surrogate of further quantities has none, or other parameters.")

    def _check_parts(self, parts: CalibratedParts) -> None:
        if self.conformal is None or self.jackknife is not None:
            raise InputError("bounds of parts of an answer come with a conformal bound of the whole: replace both.")
        counts = {
            "quantities": 0 if self.quantities is None else len(self.quantities.names),
            "fields": len(self.layout.fields),
            "profile": self.n_values,
        }
        for name, n in counts.items():
            if getattr(parts, name) is not None:
                check_shape(getattr(parts, name), (n,), f"{name} of the calibrated parts")

    def __getstate__(self) -> dict:  # what was computed on the way is computed again where needed
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        names = ", ".join(self.parameters.names) or "functions"
        return f"<Surrogate of ({names}): {self.basis.n_modes} modes, {self.n_values} values, {map_name(self.map)}>"

    def _repr_html_(self) -> str:
        return borrowed("html")(self)

    @cached_property
    def provenance(self) -> Provenance:
        """What its facts say of the problem behind it, and of how it was learned."""
        return Provenance.of(self.facts)

    @property
    def n_parameters(self) -> int:
        """Length of a parameter vector."""
        return len(self.features.shift)

    @property
    def n_values(self) -> int:
        """Length of an answer."""
        return len(self._modes)

    @property
    def quantity_names(self) -> tuple[str, ...]:
        """Names of all quantities, those with a map of their own last."""
        own = () if self.quantities is None else self.quantities.names
        return own if self.scalars is None else (*own, *self.scalars.quantity_names)

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
        /,
        mus: ArrayLike | Mapping[str, Any] | None = None,
        *,
        dtype: type = np.float64,
        extrapolate: bool = False,
        tolerance: float | None = None,
        **named: ArrayLike,
    ) -> Answer:
        """Answers for one parameter vector (n_parameters,) or several (n_samples, n_parameters), in float64 or float32.

        By name too: `surrogate(a=0.9, k=1.7)`, a mapping of names to numbers or columns of them, a data frame whose columns
        have the parameters' names in any order.

        With a `tolerance`, answers whose relative bound exceeds it are repaired: by the reduced model, and where that is
        not enough by a full solve; `answer.method` says how each one came about. Repaired answers are float64.
        """
        if (mus is None) == (not named):
            raise InputError(
                f"give the parameters ({', '.join(self.parameters.names)}) once: as a vector, as a table, or by name."
            )
        mus, outside, single = self._checked(named if mus is None else mus, extrapolate)
        if tolerance is None:
            return Answer(self, mus, self._coefficients(mus, dtype), single, outside)
        if np.dtype(dtype) != np.float64:
            raise InputError("a tolerance is met in float64. Leave dtype out, or the tolerance.")
        if self.readout is not None:
            raise InputError("repairs need whole fields. Give the tolerance to the surrogate that was restricted.")
        answer = Answer(self, mus, self._coefficients(mus), single, outside)
        return repaired(answer, check_positive(tolerance, "tolerance"))

    def coefficients(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """c(μ), (n_samples, n_modes) or (n_modes,)."""
        mus, _, single = self._checked(mus, extrapolate)
        out = self._coefficients(mus)
        return out[0] if single else out

    def _coefficients(self, mus: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        predict = self._predictors.get(np.dtype(dtype).type)
        if predict is None:
            raise InputError(f"dtype must be float64 or float32, got {dtype!r}.")
        if len(mus) <= _BATCH:
            out = predict(mus)
        else:
            out = np.concatenate([predict(mus[rows]) for rows in slices(len(mus), _BATCH)])
        if not np.isfinite(out).all():
            bad = mus[int(np.argmin(np.isfinite(out).all(axis=1)))]
            raise InputError(f"the map predicts values that are not finite, for instance at {bad}. Ask inside the box.")
        return out

    @cached_property
    def _predictors(self) -> dict:
        """Coefficients of parameters, by the type of numbers wanted; only a map made for float32 computes in it."""
        program, fitted, reduced = program_of(self.map), self.map, self.reduced
        if fitted is None:
            assert reduced is not None
            whole = lambda mus: reduced.coefficients(mus, extrapolate=True)  # noqa: E731
        elif program is None:
            whole = lambda mus: np.asarray(fitted.predict(self.features(mus)), dtype=float)  # noqa: E731
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
        if self.map is None:
            raise InputError(
                "the answers are those of the reduced model: no map was good enough. Python, the server and the page compute "
                "them, but they cannot be exported. Fit a map: ps.fit(surrogate.reduced, ...)."
            )
        if program is None:
            raise InputError(
                f"a map of kind {map_name(getattr(self.map, 'inner', self.map))} has no program, so nothing but Python can compute it: it can neither be "
                "exported nor explored. Fit one of parasol's recipes, such as 'best' or 'polynomial'."
            )
        return (*self.features.operations, *program.operations)

    @cached_property
    def program(self) -> Program:
        """From parameters to coefficients in float64, folded: what Python runs."""
        return Program(tuple(op.astype(np.float64) for op in self.operations)).folded()

    def check(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """The parameters as an array (n_samples, n_parameters), refused where they would be refused an answer."""
        return self._checked(mus, extrapolate)[0]

    def n_outside(self, mus: ArrayLike, *, extrapolate: bool = False) -> int:
        """How many of the parameters lie outside their ranges, which is refused unless `extrapolate`."""
        outside = self._checked(mus, extrapolate)[1]
        return 0 if outside is None else int(np.count_nonzero(outside))

    def _checked(
        self, mus: ArrayLike | Mapping[str, Any], extrapolate: bool
    ) -> tuple[np.ndarray, np.ndarray | None, bool]:
        """Parameter vectors on axis 0 as floats, which of them lie outside the box (None: none), and whether it was one."""
        try:
            mus = as_floats(self.parameters.ordered(mus))
        except ParasolError:
            raise
        except (TypeError, ValueError):
            raise InputError(f"parameters must be real numbers, got {mus!r}.") from None
        given = mus.shape
        if mus.ndim == 0:
            mus = mus[None]
        single = mus.ndim == 1
        if single:
            mus = mus[None]
        if mus.ndim != 2 or mus.shape[1] != self.n_parameters:
            raise InputError(
                f"mus has shape {given}, expected ({self.n_parameters},) or (n_samples, {self.n_parameters})"
                + ("." if self.parameters.functions else f": {', '.join(self.parameters.names)}.")
            )
        low, high = self._box
        scalars = mus[:, : len(low)]
        if self._has_choices:
            self.parameters.check_choices(scalars)
        inside = (scalars >= low) & (scalars <= high)
        if inside.all() and (len(low) == mus.shape[1] or np.isfinite(mus).all()):
            return mus, None, single
        for name, column in zip(self.parameters.names, scalars.T, strict=False):
            check_finite(column, f"the parameter {name}" if single else f"the column {name} of mus")
        check_finite(mus, "mus")
        if not extrapolate:
            self.parameters.check(scalars)
        if np.any(mus[:, self.features.logs] <= 0):
            raise InputError("a parameter on a logarithmic scale must be positive, outside its range too.")
        return mus, np.any(~inside, axis=1), single

    @cached_property
    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.parameters.answered.limits
        return low, high

    @cached_property
    def _has_choices(self) -> bool:
        return any(p.choices for p in self.parameters.scalars)

    @cached_property
    def distributions(self) -> Distributions:
        """What is known of functions among the parameters; nothing where the nodes are not known."""
        points = None if self.readout is not None else self.layout.points
        return Distributions(self.parameters, points, self.layout.n_interior)

    def lift(self, coefficients: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """V c, (n_samples, n_values), in the type of the coefficients, into `out` where given."""
        return np.matmul(coefficients, self._transposed[coefficients.dtype.type], out=out)

    def jacobian(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """Derivatives of the coefficients by the parameters, (n_samples, n_modes, n_parameters), or of one vector."""
        mus, _, single = self._checked(mus, extrapolate)
        if self.map is None:
            assert self.reduced is not None
            out = self.reduced.jacobian(mus, _STEP / np.abs(self.features.slope(mus)))
        elif program_of(self.map) is not None:
            out = self.program.jacobian(mus)
        else:
            slopes = getattr(self.map, "jacobian", partial(_differences, self.map))
            out = slopes(self.features(mus)) * self.features.slope(mus)[:, None, :]
        return out[0] if single else out

    def gradient(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """Derivatives of the values by the parameters, (n_samples, n_values, n_parameters), or of one vector."""
        return self._modes @ self.jacobian(mus, extrapolate=extrapolate)

    def as_jax(self, output: str = "values", *, extrapolate: bool = False) -> Callable[[Any], Any]:
        """A JAX function of parameters, for jit, grad, vmap and GPUs, in float64: "values", "quantities" or "coefficients"."""
        return borrowed("as_jax")(self, output, extrapolate=extrapolate)

    def as_torch(self, output: str = "values", *, extrapolate: bool = False) -> Callable[[Any], Any]:
        """A PyTorch function of a tensor of parameters, with autograd, in float64: "values", "quantities" or "coefficients"."""
        return borrowed("as_torch")(self, output, extrapolate=extrapolate)

    def certify(
        self, mus: ArrayLike | Mapping[str, Any], coefficients: ArrayLike | None = None, *, extrapolate: bool = False
    ) -> Bounds:
        """Bounds of the errors: from the residual where there is a reduced model (`rigorous` says which are proven), else conformal.

        A conformal bound is one of the surrogate's own answers: other `coefficients` are refused then.
        """
        if coefficients is not None and self.conformal is not None and self.reduced is None and self.jackknife is None:
            own = self._coefficients(self._checked(mus, extrapolate)[0])
            given = check_shape(coefficients, own.shape, "coefficients")
            if not np.all(np.linalg.norm(given - own, axis=1) <= _OWN * np.linalg.norm(own, axis=1)):
                raise InputError(
                    "the bound was calibrated with answers of this surrogate, and these coefficients are others: nothing is "
                    "known of their errors. Leave them out."
                )
        return self.bounds_of(mus, coefficients, extrapolate=extrapolate)

    def bounds_of(
        self, mus: ArrayLike | Mapping[str, Any], coefficients: ArrayLike | None, *, extrapolate: bool
    ) -> Bounds:
        """What `certify` does, where the coefficients are known to be those of an answer, but for rounding."""
        mus, outside, _ = self._checked(mus, extrapolate)
        c = self._coefficients(mus) if coefficients is None else np.asarray(coefficients, dtype=float)
        if self.reduced is not None:
            return self.reduced.certify(mus, c, extrapolate=extrapolate)
        if self.conformal is not None:
            relative = np.full(len(mus), float(self.conformal.quantile))
            if self.difficulty is not None:
                relative *= self._difficulties(mus)
            if self.jackknife is not None:
                relative = self.jackknife.bounds(mus, c, self.conformal.quantile)
            # the level holds for the distribution of the calibration set, which ends at the box
            relative[
                self.distributions.unlike(mus) if outside is None else outside | self.distributions.unlike(mus)
            ] = np.inf
            # relative to the solution, whose norm is at most that of the answer over 1 − relative
            size = np.linalg.norm(c, axis=1)
            values = np.full(len(mus), np.inf)
            np.divide(size * relative, 1 - relative, out=values, where=relative < 1)
            return Bounds(values, relative, np.zeros(len(mus), dtype=bool))
        raise InputError(
            "nothing is known about the errors of this surrogate. Give it results at parameters drawn at random: "
            "ps.calibrate(surrogate, results)."
        )

    def estimate(
        self, mus: ArrayLike | Mapping[str, Any], coefficients: ArrayLike | None = None, *, extrapolate: bool = False
    ) -> Estimates | None:
        """Estimates of the errors, with their factor and probability; None where there are none.

        By random duals where there is a linear reduced model. Else by a map of the errors that were to be expected while
        learning: then the factor and the probability are those of the conformal bound, over new parameters.
        """
        by_duals = self.reduced is not None and self.reduced.duals is not None
        if not by_duals and (self.reduced is not None or self.difficulty is None or self.conformal is None):
            return None
        mus, _, _ = self._checked(mus, extrapolate)
        c = self._coefficients(mus) if coefficients is None else np.asarray(coefficients, dtype=float)
        if by_duals:
            return self.reduced.estimate(mus, c, extrapolate=extrapolate)  # type: ignore[union-attr]
        assert self.conformal is not None
        relative = self._difficulties(mus)
        factor = np.full(len(mus), self.conformal.quantile)
        return Estimates(relative * np.linalg.norm(c, axis=1), relative, factor, self.conformal.level)

    def error_scales(self, mus: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """What calibrated bounds of parts are multiples of, (n_samples,): norms, times the relative errors to be expected."""
        size = np.linalg.norm(coefficients, axis=1)
        return size if self.difficulty is None else size * self._difficulties(mus)

    def _difficulties(self, mus: np.ndarray) -> np.ndarray:
        """Relative errors to be expected, (n_samples,)."""
        with np.errstate(over="ignore"):
            return np.exp(self._difficulty_program(mus)[:, 0])

    def discretisation_errors(self, mus: np.ndarray, coefficients: np.ndarray | None = None) -> np.ndarray | None:
        """Estimates of how far the full solver is from the equation's solution, relative, (n_samples,); None: not known.

        By the coefficients or the map where it is known so; else the largest that learning met, if it looked.
        """
        own, known = self.discretisation, self.provenance.discretisation_error
        if own is None and known is None:
            return None
        with np.errstate(over="ignore"):
            if own is None:
                errors = np.full(len(mus), float(known))  # type: ignore[arg-type]
            elif isinstance(own, Defects):
                errors = own(self._coefficients(mus) if coefficients is None else coefficients)
            else:
                errors = np.exp(self._discretisation_program(mus)[:, 0])
        return np.where(self.parameters.inside(mus), errors, np.inf)

    @cached_property
    def _discretisation_program(self) -> Program:
        """From parameters to the logarithm of the discretisation error, folded."""
        assert isinstance(self.discretisation, StoredMap)
        return Program((*self.features.operations, *self.discretisation.program.operations)).folded()

    @cached_property
    def _difficulty_program(self) -> Program:
        """From parameters to the logarithm of the error to be expected, folded."""
        assert self.difficulty is not None
        return Program((*self.features.operations, *self.difficulty.program.operations)).folded()

    def updated(self, more: Any) -> Surrogate:
        """The surrogate learned again, from the results it was learned from and `more` of them."""
        return borrowed("updated")(self, more)

    def restricted(
        self, *, nodes: ArrayLike | None = None, points: ArrayLike | None = None, times: ArrayLike | None = None
    ) -> Surrogate:
        """A surrogate of values at some nodes (indices), at any points (n_points, dimension), or at some stored times only.

        Its cost does not depend on the number of nodes; bounds remain those of the whole field.
        """
        return restricted(self, nodes=nodes, points=points, times=times)


def _single(predict: Callable[[np.ndarray], np.ndarray], mus: np.ndarray) -> np.ndarray:
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
