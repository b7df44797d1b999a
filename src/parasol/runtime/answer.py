"""What a surrogate says about some parameters: fields, quantities, and how far they can be off."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.errors import InputError
from parasol.runtime.above import borrowed
from parasol.runtime.basis import slices
from parasol.runtime.duals import TYPICAL, WIDTH, Estimates
from parasol.runtime.reduced import Bounds

if TYPE_CHECKING:
    from parasol.runtime.surrogate import Surrogate

METHODS = ("map", "reduced model", "full solve")


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
        n, size = len(self.mus), f"{self.surrogate.n_values} values"
        if not self.single:
            return f"<Answer at {n} parameter vector{'' if n == 1 else 's'}, {size} each>"
        pairs = zip(self.surrogate.parameters.scalars, self.mus[0], strict=False)
        where = ", ".join(f"{p.name}={p.word(value)}" for p, value in pairs) or "one parameter vector"
        known = f", relative error at most {self.bound:.1e}, {self.bound_kind}" if self.surrogate.has_bounds else ""
        return f"<Answer at {where}: {size}{', outside the ranges' if self.extrapolated else known}>"

    def _repr_html_(self) -> str:
        return borrowed("html")(self)

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

    def __getitem__(self, name: str) -> np.ndarray:
        """One unknown function by name: (n_samples, n_times, n_nodes), without the axes that one sample or no time has.

        A field of several components has these as its last axis.
        """
        places = self.surrogate.layout.members(name)
        components = self._by_axes(self.values)[..., places, :]
        return components[..., 0, :] if len(places) == 1 else np.moveaxis(components, -2, -1)

    @property
    def fields(self) -> dict[str, np.ndarray]:
        """All unknown functions, or fields of several components, by name, as `answer[name]` gives them."""
        return {name: self[name] for name in self.surrogate.layout.fields}

    def at(self, points: ArrayLike) -> np.ndarray:
        """The fields at points (n_points, dimension) of the domain: (n_samples, n_times, n_unknowns, n_points).

        Axes of length one that nobody asked for are left out: samples of one parameter, times of a steady problem, the
        unknown where there is but one.
        """
        if self.surrogate.readout is not None and self.surrogate.layout.cells is None:
            raise InputError("these are values at chosen places already. Ask the surrogate that was restricted.")
        layout = self.surrogate.layout
        weights, regions = borrowed("weights_by_region")(layout, points)
        fields = self._by_axes(self.values)
        out = (weights @ fields.reshape(-1, fields.shape[-1]).T).T.reshape(*fields.shape[:-1], -1)
        if layout.given_jumps is not None:  # each point has the value of its own side
            out = out + layout.given_jumps.seen(self.mus, weights, regions, len(layout.names)).reshape(out.shape)
        return out[..., 0, :] if len(layout.names) == 1 else out

    def _by_axes(self, values: np.ndarray) -> np.ndarray:
        """([n_samples,] [n_times,] n_unknowns, n_nodes)."""
        layout = self.surrogate.layout
        times = () if layout.times is None else (layout.n_times,)
        return values.reshape(*values.shape[:-1], *times, len(layout.names), -1)

    def plot(self) -> Any:
        """A matplotlib figure of the answer to one parameter."""
        return borrowed("plot_answer")(self)

    def to_xarray(self, *, bounds: bool = False) -> Any:
        """An xarray dataset with named axes, with the error bounds where asked for."""
        return borrowed("to_xarray")(self, bounds=bounds)

    def to_pandas(self, *, bounds: bool = False) -> Any:
        """A pandas table of parameters and quantities by name, with their bounds where asked for."""
        return borrowed("to_pandas")(self, bounds=bounds)

    def blocks(self, size: int = 1024) -> Iterator[np.ndarray]:
        """Fields, `size` of them at a time, for batches that do not fit in memory."""
        for rows in slices(len(self.mus), size):
            part = {i - rows.start: v for i, v in self.solved.items() if rows.start <= i < rows.stop}
            yield Answer(self.surrogate, self.mus[rows], self.coefficients[rows], False, solved=part).lift()

    @cached_property
    def bounds(self) -> Bounds:
        """Absolute and relative bounds of the errors, and which of them are proven."""
        c = self.coefficients
        bounds = self.surrogate.bounds_of(self.mus, c, extrapolate=True)
        if c.dtype == np.float32:
            slack = self._rounding
            size = np.linalg.norm(c, axis=1) - bounds.values  # no more than the norm of the solution
            bounds.relative[:] += np.divide(slack, size, out=np.full(len(c), np.inf), where=size > 0)
            bounds.values[:] += slack
        if self.solved:  # the error is measured against the full solve, which these are
            exact = np.fromiter(self.solved, dtype=int)
            bounds.values[exact] = bounds.relative[exact] = 0.0
            bounds.rigorous[exact] = True
        return bounds

    @property
    def _rounding(self) -> np.ndarray:
        """What rounding to single precision does to the product V c at most, (n_samples,)."""
        c = self.coefficients
        eps = np.finfo(np.float32).eps if c.dtype == np.float32 else 0.0
        return (c.shape[1] + 4) * eps * self.surrogate.basis.rounding * np.sum(np.abs(c), axis=1, dtype=float)

    @cached_property
    def _part_scales(self) -> np.ndarray:
        """What calibrated bounds of parts are multiples of: infinite where there is no bound, 0 of full solves."""
        scales = self.surrogate.error_scales(self.mus, np.asarray(self.coefficients, dtype=float))
        known = np.isfinite(self.bounds.relative)
        if self.methods is not None:  # nothing was calibrated with answers of the reduced model
            known = known & (self.methods != METHODS.index("reduced model"))
        scales = np.where(known, scales, np.inf)
        scales[list(self.solved)] = 0.0
        return scales

    @property
    def field_bounds(self) -> dict[str, Any] | None:
        """Calibrated bounds of the relative errors of each unknown function by name, (n_samples,) or a number; None: there are none.

        Each holds at the level of `bound` by itself. An unknown is taken for a thousandth of its usual size where it is less.
        """
        parts = self.surrogate.parts
        if parts is None or parts.fields is None:
            return None
        size = np.linalg.norm(self.coefficients, axis=1)
        scales = np.divide(self._part_scales, size, out=np.full(len(size), np.inf), where=size > 0)
        bounds = {n: f * scales for n, f in zip(self.surrogate.layout.fields, parts.fields, strict=True)}
        return {name: float(value[0]) for name, value in bounds.items()} if self.single else bounds

    @property
    def band(self) -> np.ndarray | None:
        """Half the width of a band about the values, in their shape: the solution is inside at all nodes and times at once.

        It is calibrated: that holds for new parameters at the level of `bound` (`surrogate.conformal.level`). None where
        there is none: linear problems with bounds from duals or the residual, and surrogates of few samples.
        """
        parts = self.surrogate.parts
        if parts is None or parts.profile is None:
            return None
        with np.errstate(invalid="ignore"):
            half_width = self._part_scales[:, None] * parts.profile + self._rounding[:, None]
        half_width[~np.isfinite(self._part_scales)] = np.inf  # also where nothing varies
        return half_width[0] if self.single else half_width

    @property
    def bound_kind(self) -> list[str] | str:
        """What is known of each bound, of the field and of its quantities alike.

        "proven" (theorem, for the discrete problem, see `Bounds.rigorous`), "probable" (a multiple of the estimate, see
        `Estimates`: it holds with the probability `answer.probability`), "calibrated" (it holds for new parameters of the
        calibration set's distribution at the stated level), or "estimated" (nothing is claimed: a guessed constant, samples
        that were not drawn at random, a parameter outside the box).
        """
        conformal = self.surrogate.conformal
        calibrated = self.surrogate.reduced is None and conformal is not None and conformal.drawn
        kinds = np.where(self.bounds.rigorous, "proven", "calibrated" if calibrated else "estimated")
        if self.bounds.probable is not None:
            kinds = np.where(self.bounds.probable & ~self.bounds.rigorous, "probable", kinds)
        return str(kinds[0]) if self.single else kinds.tolist()

    @property
    def bound(self) -> np.ndarray | float:
        """Bounds of the relative errors, (n_samples,), or a number."""
        return float(self.bounds.relative[0]) if self.single else self.bounds.relative

    @cached_property
    def estimates(self) -> Estimates | None:
        """Estimates of the errors by random duals: absolute, relative, with their factor; None where there are none."""
        estimates = self.surrogate.estimate(self.mus, self.coefficients, extrapolate=True)
        if estimates is None:
            return None
        if self.coefficients.dtype == np.float32:  # what rounding does to the product V c is about this size
            eps, size = float(np.finfo(np.float32).eps), np.linalg.norm(self.coefficients, axis=1)
            eps *= self.surrogate.basis.rounding
            estimates = replace(
                estimates, values=np.hypot(estimates.values, eps * size), relative=np.hypot(estimates.relative, eps)
            )
        if self.solved:  # the error is measured against the full solve, which these are
            estimates.values[list(self.solved)] = estimates.relative[list(self.solved)] = 0.0
        return estimates

    @property
    def estimate(self) -> np.ndarray | float | None:
        """Estimates of the relative errors, (n_samples,), or a number: near the error itself; None where there are none."""
        estimates = self.estimates
        return None if estimates is None else float(estimates.relative[0]) if self.single else estimates.relative

    @property
    def probability(self) -> float | None:
        """That a probable bound holds, over its random vectors, for each parameter by itself; None where there is none."""
        duals = None if self.surrogate.reduced is None else self.surrogate.reduced.duals
        return None if duals is None else duals.probability

    @cached_property
    def discretisation(self) -> np.ndarray | float | None:
        """Estimates of the relative error of the full solve itself against the equation's solution: (n_samples,), or a number.

        Within a factor of 3 nine times in ten where it was estimated per parameter (steady problems); for others the largest
        that learning met. Infinite outside the box, None where nothing is known.
        """
        errors = self.surrogate.discretisation_errors(self.mus, self.coefficients)
        return None if errors is None else float(errors[0]) if self.single else errors

    @property
    def total(self) -> np.ndarray | float | None:
        """The bound against the full solve and the estimate of that solve's own error together; None without one of them."""
        own = self.discretisation
        return None if own is None or not self.surrogate.has_bounds else self.bound + own

    @cached_property
    def _scalars(self) -> Answer | None:
        """The answer of the surrogate of quantities that are not linear in the field."""
        other = self.surrogate.scalars
        return (
            None
            if other is None
            else Answer(other, self.mus, other.coefficients(self.mus, extrapolate=True), self.single, self.outside)
        )

    @cached_property
    def quantities(self) -> dict[str, Any]:
        """Quantities of interest by name: (n_samples,), or (n_samples, n_times) in time; without samples if asked for one."""
        known, own = self.surrogate.quantities, {} if self._scalars is None else self._scalars.quantities
        if known is None:
            return own
        quantities = known(self.coefficients, self.mus)
        if self._corrections is not None:
            quantities[:, :, 0] += self._corrections[0].T
        for i, values in self.solved.items():
            rows = self.surrogate.solver.quantities  # type: ignore[union-attr]
            quantities[:, i] = rows.of(values.reshape(quantities.shape[2], -1), self.mus[i])
        return self._by_name(known.names, quantities) | own

    @cached_property
    def quantity_bounds(self) -> dict[str, Any]:
        """How far each quantity can be off, in the shapes of `quantities`; `quantity_bound_kind` says what is known of that.

        Where the residual has corrected the quantities it is six times what is typically left; proven bounds stay proven.
        Calibrated ones hold for each quantity at the level of `bound`, at all times at once.
        """
        known, own = self.surrogate.quantities, {} if self._scalars is None else self._scalars.quantity_bounds
        if known is None:
            return own
        parts = self.surrogate.parts
        if parts is None or parts.quantities is None or self.surrogate.reduced is not None:
            bounds = known.bounds(self.bounds.values, self.mus)
        else:
            bounds = parts.quantities[:, None, None] * known.bounds(self._part_scales, self.mus)
            bounds = bounds + known.bounds(self._rounding, self.mus)
        if self._corrections is not None:
            correction, left = self._corrections
            bounds[:, :, 0] += np.abs(correction.T)
            duals = self.surrogate.reduced.duals  # type: ignore[union-attr]
            slack = TYPICAL * duals.output_ratio * self.estimates.factor / WIDTH  # type: ignore[union-attr]
            usual = np.minimum(slack[:, None] * left, bounds[:, :, 0].T).T
            bounds[:, :, 0] = np.where(self.bounds.rigorous, bounds[:, :, 0], usual)
        return self._by_name(known.names, bounds) | own

    @property
    def quantity_bound_kind(self) -> list[str] | str:
        """As `bound_kind`, of the quantities: "estimated" where the residual has corrected them and nothing is proven."""
        if self._corrections is None:
            return self.bound_kind
        kinds = np.where(self.bounds.rigorous, "proven", "estimated")
        return str(kinds[0]) if self.single else kinds.tolist()

    @cached_property
    def quantity_estimates(self) -> dict[str, Any] | None:
        """The typical size of each quantity's error, in the shapes of `quantities`; None where the residual corrects none."""
        known = self.surrogate.quantities
        if known is None or self._corrections is None:
            return None
        return self._by_name(known.names, self._corrections[1].T[:, :, None])

    @cached_property
    def _corrections(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Corrections of the quantities by the residual, and estimates of what they leave, (n_samples, n_quantities)."""
        known, reduced = self.surrogate.quantities, self.surrogate.reduced
        corrections = None
        if known is not None and reduced is not None:
            corrections = reduced.corrected(self.mus, self.coefficients, known.rows[:, 0], known.weighting(self.mus))
        if corrections is not None and self.solved:  # full solves need none
            for part in corrections:
                part[list(self.solved)] = 0.0
        return corrections

    def _by_name(self, names: tuple[str, ...], values: np.ndarray) -> dict[str, Any]:
        values = values[:, :, 0] if self.surrogate.layout.times is None else values
        values = values[:, 0] if self.single else values
        return {name: float(value) if value.ndim == 0 else value for name, value in zip(names, values, strict=True)}

    @property
    def extrapolated(self) -> np.ndarray | bool:
        """Whether a number lies outside the box or where solves failed, or a function is unlike its distribution: (n_samples,) or one truth value."""
        unlike = self.surrogate.distributions.unlike(self.mus)
        outside = unlike if self.outside is None else self.outside | unlike
        return bool(outside[0]) if self.single else outside

    @property
    def method(self) -> list[str] | str:
        """How each answer came about: by the map, by the reduced model, by a full solve."""
        usual = 0 if self.surrogate.map is not None else 1
        indices = np.full(len(self.mus), usual) if self.methods is None else np.maximum(self.methods, usual)
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
