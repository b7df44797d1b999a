"""The surrogate: parameters in, fields out, with what is known about their errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from parasol.checks import ParasolError, check_finite, check_positive, check_shape
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.basis import Basis, slices
from parasol.reduction.conformal import ConformalBound
from parasol.reduction.reduced import Bounds, ReducedModel
from parasol.space.geometry.domain import Domain
from parasol.space.neighbours import Cloud
from parasol.space.operators import differentiate
from parasol.space.stencils import Scheme
from parasol.surrogate.features import Features

_BATCH = 8192
ROADS = ("map", "reduced model", "full solve")


class Map(Protocol):
    """What turns features (n, p) into coefficients (n, d): a trained network, or anybody's regressor."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Coefficients of features."""
        ...


@dataclass(frozen=True, eq=False)
class Layout:
    """What the values of a field are: unknown functions at nodes, at times where there are any."""

    names: tuple[str, ...] = ("u",)
    points: np.ndarray | None = None  # (n_nodes, dimension), interior first
    n_interior: int = 0
    scheme: Scheme | None = None  # stencils for values between nodes
    times: np.ndarray | None = None
    domain: Domain | None = None  # not part of a file: without it no one looks for walls between nodes

    @property
    def n_times(self) -> int:
        """Number of stored times; 1 for steady problems."""
        return 1 if self.times is None else len(self.times)


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

    def __repr__(self) -> str:
        names = ", ".join(self.parameters.names) or "functions"
        return (
            f"<Surrogate of ({names}): {self.basis.n_modes} modes, {self.n_values} values, {type(self.map).__name__}>"
        )

    @property
    def n_parameters(self) -> int:
        """Length of a parameter vector."""
        return len(self.features.shift)

    @property
    def n_values(self) -> int:
        """Length of an answer."""
        return len(self._modes)

    @property
    def _modes(self) -> np.ndarray:
        return self.basis.modes if self.readout is None else self.readout

    @cached_property
    def _transposed(self) -> dict[type, np.ndarray]:
        """Modes as rows, by type: what the last product reads."""
        return {kind: np.ascontiguousarray(self._modes.T, dtype=kind) for kind in (np.float32, np.float64)}

    def __call__(
        self, mus, *, dtype: type = np.float64, extrapolate: bool = False, tolerance: float | None = None
    ) -> Answer:
        """Answers for one parameter vector (n_parameters,) or several (n_samples, n_parameters), in float64 or float32.

        With a `tolerance`, answers whose relative bound exceeds it are repaired: by the reduced model, and where that is
        not enough by a full solve; `answer.road` says how each one came about.
        """
        single = np.ndim(mus) == 1
        mus, outside = self._checked(mus, extrapolate)
        answer = Answer(self, mus, self._coefficients(mus, dtype), single, outside)
        return answer if tolerance is None else self._repaired(answer, check_positive(tolerance, "tolerance"))

    def coefficients(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """c(μ), (n_samples, n_modes) or (n_modes,)."""
        single = np.ndim(mus) == 1
        mus, _ = self._checked(mus, extrapolate)
        out = self._coefficients(mus)
        return out[0] if single else out

    def _coefficients(self, mus: np.ndarray, dtype=np.float64) -> np.ndarray:
        predict = self._predictors.get(dtype)
        if predict is None:
            raise ParasolError(f"dtype must be numpy.float64 or numpy.float32, got {dtype!r}.")
        if len(mus) <= _BATCH:
            return predict(self.features(mus))
        return np.concatenate([predict(self.features(mus[rows])) for rows in slices(len(mus), _BATCH)])

    @cached_property
    def _predictors(self) -> dict:
        """The map, by the type of numbers wanted; a network computes in that type."""
        network = getattr(self.map, "network", None)
        if network is not None:
            folded = network.astype(np.float64).folded()
            return {np.float32: folded.astype(np.float32), np.float64: network}
        return {np.float64: self.map.predict, np.float32: lambda x: self.map.predict(x).astype(np.float32)}

    def _checked(self, mus, extrapolate: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Parameter vectors on axis 0 as floats, and which of them lie outside the box (None: none)."""
        try:
            mus = np.asarray(mus, dtype=float)
        except (TypeError, ValueError):
            raise ParasolError(f"parameters must be real numbers, got {mus!r}.") from None
        if mus.ndim == 1:
            mus = mus[None]
        if mus.ndim != 2 or mus.shape[1] != self.n_parameters:
            raise ParasolError(
                f"mus has shape {mus.shape}, expected (n_samples, {self.n_parameters}) or ({self.n_parameters},)."
            )
        low, high = self._box
        scalars = mus[:, : len(low)]
        inside = (scalars >= low) & (scalars <= high)
        if inside.all() and (len(low) == mus.shape[1] or np.isfinite(mus).all()):
            return mus, None
        check_finite(mus, "mus")
        if not extrapolate:
            self.parameters.check(scalars)
        return mus, np.any(~inside, axis=1)

    @cached_property
    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        bounds = self.parameters.bounds
        return bounds[0], bounds[1]

    def lift(self, coefficients: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """V c, (n_samples, n_values), in the type of the coefficients, into `out` where given."""
        return np.matmul(coefficients, self._transposed[coefficients.dtype.type], out=out)

    def jacobian(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """Derivatives of the coefficients by the parameters, (n_samples, n_modes, n_parameters), or of one vector."""
        single = np.ndim(mus) == 1
        mus, _ = self._checked(mus, extrapolate)
        x = self.features(mus)
        slopes = getattr(self.map, "jacobian", None)
        out = (_differences(self.map, x) if slopes is None else slopes(x)) * self.features.slope(mus)[:, None, :]
        return out[0] if single else out

    def gradient(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """Derivatives of the values by the parameters, (n_samples, n_values, n_parameters), or of one vector."""
        return self._modes @ self.jacobian(mus, extrapolate=extrapolate)

    def certify(self, mus, coefficients=None, *, extrapolate: bool = False) -> Bounds:
        """Bounds of the errors: proven by the reduced model where there is one, else conformal."""
        mus, _ = self._checked(mus, extrapolate)
        c = self._coefficients(mus) if coefficients is None else coefficients
        if self.reduced is not None:
            return self.reduced.certify(mus, c, extrapolate=extrapolate)
        if self.conformal is not None:
            relative = np.full(len(mus), self.conformal.quantile)
            # relative to the solution, whose norm is at most that of the answer over 1 − relative
            size = np.linalg.norm(c, axis=1)
            values = size * relative / (1 - relative) if self.conformal.quantile < 1 else np.full(len(mus), np.inf)
            return Bounds(values, relative, np.zeros(len(mus), dtype=bool))
        raise ParasolError(
            "nothing is known about the errors of this surrogate. Fit it from a reduced model, or give it a calibration set."
        )

    def restricted(self, *, nodes=None, points=None, times=None) -> Surrogate:
        """A surrogate of values at some nodes (indices), at any points (n_points, dimension), or at some stored times only.

        Its cost does not depend on the number of nodes; bounds remain those of the whole field.
        """
        layout = self.layout
        if self.readout is not None:
            raise ParasolError("this surrogate is restricted already. Restrict the original one.")
        if nodes is not None and points is not None:
            raise ParasolError("give either nodes or points, not both.")
        modes = self.basis.modes.reshape(layout.n_times, len(layout.names), -1, self.basis.n_modes)
        if times is not None:
            modes = modes[_time_indices(layout, times)]
        if nodes is not None:
            modes = modes[:, :, np.asarray(nodes)]
        if points is not None:
            modes = np.einsum("pn,tfnd->tfpd", self._weights(points), modes, optimize=True)
        return replace(self, readout=np.ascontiguousarray(modes.reshape(-1, self.basis.n_modes)))

    def _weights(self, points) -> np.ndarray:
        layout = self.layout
        if layout.points is None or layout.scheme is None:
            raise ParasolError("this surrogate knows no nodes, so it cannot answer between them. Fit it from a model.")
        points = check_shape(np.atleast_2d(points), (None, layout.points.shape[1]), "points")
        if layout.domain is not None and np.any(layout.domain.distance(points) > 1e-9 * layout.domain.size):
            raise ParasolError("some of the points lie outside the domain. Ask inside only.")
        zero = (0,) * layout.points.shape[1]
        return differentiate(Cloud(layout.points, layout.domain), points, [zero], layout.scheme)[zero].toarray()

    def _repaired(self, answer: Answer, tolerance: float) -> Answer:
        mus, c = answer.mus, answer.coefficients.copy()
        road = np.zeros(len(mus), dtype=int)
        relative = self.certify(mus, c, extrapolate=True).relative
        bad = np.flatnonzero(relative > tolerance)
        if len(bad) and self.reduced is not None:
            better = self.reduced.solve(mus[bad], extrapolate=True)
            c[bad], road[bad] = better.coefficients, 1
            bad = bad[better.bounds.relative > tolerance]  # type: ignore[union-attr]
        solved: dict[int, np.ndarray] = {}
        if len(bad):
            if self.solver is None:
                raise ParasolError(
                    f"{len(bad)} of {len(mus)} answers cannot be brought below {tolerance:g} without full solves, and this "
                    "surrogate has no solver at hand. Use dataclasses.replace(surrogate, solver=model)."
                )
            for i in bad:
                solution = self.solver.solve(mus[i])
                solved[int(i)] = np.asarray(
                    getattr(solution, "flat", getattr(solution, "values", solution)), dtype=float
                )
            road[bad] = 2
        return Answer(self, mus, c, answer.single, answer.outside, road, solved)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What a surrogate says about some parameters; fields and bounds are computed when asked for."""

    surrogate: Surrogate
    mus: np.ndarray  # (n_samples, n_parameters)
    coefficients: np.ndarray  # (n_samples, n_modes)
    single: bool  # asked with one vector: values and bound come without the sample axis
    outside: np.ndarray | None = None
    roads: np.ndarray | None = None  # (n_samples,) index in ROADS
    solved: dict[int, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Answer to {len(self.mus)} parameters>"

    @cached_property
    def values(self) -> np.ndarray:
        """Fields, (n_samples, n_values), or (n_values,) where one parameter was asked for."""
        return self.lift()

    def lift(self, out: np.ndarray | None = None) -> np.ndarray:
        """The fields once more, into `out` where given (a memory map, for instance)."""
        c = self.coefficients
        fields = self.surrogate.lift(c[0] if self.single else c, out)
        for i, values in self.solved.items():
            fields[... if self.single else i] = self._read(values)
        return fields

    def _read(self, values: np.ndarray) -> np.ndarray:
        if self.surrogate.readout is not None:
            raise ParasolError("a full solve cannot be restricted afterwards. Ask the unrestricted surrogate.")
        return values

    def blocks(self, size: int = 1024) -> Iterator[np.ndarray]:
        """Fields, `size` of them at a time, for batches that do not fit in memory."""
        for rows in slices(len(self.mus), size):
            part = {i - rows.start: v for i, v in self.solved.items() if rows.start <= i < rows.stop}
            yield Answer(self.surrogate, self.mus[rows], self.coefficients[rows], False, solved=part).lift()

    @cached_property
    def bounds(self) -> Bounds:
        """Absolute and relative bounds of the errors, and which of them are proven."""
        found = self.surrogate.certify(self.mus, self.coefficients, extrapolate=True)
        if self.solved:
            exact = np.fromiter(self.solved, dtype=int)
            found.values[exact] = found.relative[exact] = 0.0
        return found

    @property
    def bound(self) -> np.ndarray | float:
        """Bounds of the relative errors, (n_samples,), or a number."""
        return float(self.bounds.relative[0]) if self.single else self.bounds.relative

    @property
    def extrapolated(self) -> np.ndarray | bool:
        """Whether a parameter lies outside the box, (n_samples,) or one truth value."""
        outside = np.zeros(len(self.mus), dtype=bool) if self.outside is None else self.outside
        return bool(outside[0]) if self.single else outside

    @property
    def road(self) -> list[str] | str:
        """How each answer came about: by the map, by the reduced model, by a full solve."""
        indices = np.zeros(len(self.mus), dtype=int) if self.roads is None else self.roads
        return ROADS[indices[0]] if self.single else [ROADS[i] for i in indices]

    @property
    def nodes(self) -> np.ndarray | None:
        """The nodes (n_nodes, dimension) the values belong to, where they are known."""
        return self.surrogate.layout.points


def _time_indices(layout: Layout, times) -> np.ndarray:
    if layout.times is None:
        raise ParasolError("times are for problems in time; this one is steady.")
    wanted = np.atleast_1d(np.asarray(times, dtype=float))
    found = np.argmin(np.abs(layout.times[None, :] - wanted[:, None]), axis=1)
    off = np.abs(layout.times[found] - wanted) > 1e-9 * max(1.0, float(np.ptp(layout.times)))
    if np.any(off):
        raise ParasolError(
            f"t={wanted[off][0]:g} is not a stored time. Stored are {len(layout.times)} from "
            f"{layout.times[0]:g} to {layout.times[-1]:g}."
        )
    return found


def _differences(fitted: Map, x: np.ndarray) -> np.ndarray:
    """Central differences, for maps that do not know their derivatives."""
    step = 1e-5
    columns = [(fitted.predict(x + step * e) - fitted.predict(x - step * e)) / (2 * step) for e in np.eye(x.shape[1])]
    return np.stack(columns, axis=-1)
