"""A solution in time: stored moments, one flat vector for the reduction, single moments for people."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import Progress
from parasol.errors import InputError, ParasolWarning
from parasol.pde.steady import Solution, relative_error
from parasol.pde.transient import MOST_GROWTH, integrate
from parasol.runtime.above import borrowed

if TYPE_CHECKING:
    from parasol.pde.model import Model


@dataclass(frozen=True, eq=False)
class Evolution:
    """Values at the nodes at the stored times, for one parameter."""

    model: Model
    mu: np.ndarray
    times: np.ndarray  # (n_times,)
    values: np.ndarray  # (n_times, n_fields * n_nodes)
    n_steps: int
    integrator: str
    seconds: float
    options: Mapping[str, object] | None = None  # given to `solve`, None where the values were not integrated

    def __repr__(self) -> str:
        name, first, last = self.model.problem.name, self.times[0], self.times[-1]
        return f"<Evolution {name}: {self.values.shape[1]} values at {len(self.times)} times in [{first:g}, {last:g}]>"

    def _repr_html_(self) -> str:
        return borrowed("problem_html")(self)

    @property
    def flat(self) -> np.ndarray:
        """All stored values as one vector, (n_times * n_fields * n_nodes,), time slowest."""
        return self.values.reshape(-1)

    @property
    def fields(self) -> dict[str, np.ndarray]:
        """The unknown functions by name, each (n_times, n_nodes)."""
        return self.model.layout.fields(self.values)

    @property
    def quantities(self) -> dict[str, np.ndarray]:
        """What the problem wants to know of its solution, by name, each (n_times,)."""
        wanted = self.model.quantities
        return dict(zip(wanted.names, wanted.of(self.values, self.mu), strict=True))

    @property
    def extrapolated(self) -> bool:
        """Whether the parameter lies outside the declared ranges."""
        return not self.model.parameters.inside(self.mu[None]).all()

    def at(self, t: float) -> Solution:
        """The state at time t, a stored one or, between stored times, integrated again from the start up to t.

        That costs a solve for each t asked for the first time, and is as accurate as the stored states; ask `solve` for
        all the `times` you need. Interpolation could not be trusted: what happens between stored times is not in them.
        """
        first, last = self.times[0], self.times[-1]
        if not first <= t <= last:
            raise InputError(
                f"t={t:g} is outside the stored times [{first:g}, {last:g}]. Ask inside, or solve for longer."
            )
        near = int(np.argmin(np.abs(self.times - t)))
        if abs(self.times[near] - t) <= 1e-12 * (last - first):
            return Solution(self.model, self.mu, self.values[near], 0.0, self.seconds, self.integrator, time=float(t))
        if self.options is None:
            raise InputError(
                f"t={t:g} is not among the stored times (the nearest is {self.times[near]:g}), and values of a surrogate "
                "are known at those alone. Ask for one of them, or learn from a problem with more times."
            )
        if t not in self._between:
            self._between[t] = self._again(float(t))
        return self._between[t]

    @cached_property
    def _between(self) -> dict[float, Solution]:
        return {}

    def _again(self, t: float) -> Solution:
        known = self.model.problem.times
        start = float(self.times[0] if known is None else np.asarray(known, dtype=float)[0])
        options = dict(self.options or {})
        if options.get("step") is not None:
            options["step"] = min(options["step"], t - start)  # type: ignore[type-var]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)  # said when the evolution was made
            evolution = evolve(self.model, self.mu, times=[start, t], **options)  # type: ignore[arg-type]
        return Solution(self.model, self.mu, evolution.values[-1], 0.0, evolution.seconds, evolution.integrator, time=t)

    @property
    def error(self) -> float | None:
        """Relative error over all stored times and nodes against the exact solution; see `relative_error`."""
        if self.model.problem.exact is None:
            return None
        exact = np.array([self.model.exact(self.mu, float(t)) for t in self.times])
        return relative_error(self.model, self.values, exact)

    @cached_property
    def discretisation(self) -> float | None:
        """Estimate of `error` in space and time together, computed when asked for by a finer integration: 3 to 8 solves.

        None for functions among the parameters, which are known at these nodes alone, and for models of elements.
        """
        from parasol.pde.discretisation import evolution_error  # which makes models, and those evolve

        return evolution_error(self)


def evolve(
    model: Model,
    mu: np.ndarray,
    *,
    times=None,
    integrator: str | None = None,
    step: float | None = None,
    tolerance: float | None = None,
    relative: bool = False,
    progress: Progress = None,
) -> Evolution:
    """Integrate a problem in time from its initial state and keep the values at the given times."""
    start = time.perf_counter()
    problem = model.problem
    times = problem.times if times is None else times
    if times is None:
        raise InputError(
            "the times to store are missing. Give times=np.linspace(0, 10, 101) to solve, or to the problem."
        )
    if step is None and tolerance is None and integrator is None and not relative:
        step, integrator = model.step, model.integrator
    options = {"integrator": integrator, "step": step, "tolerance": tolerance, "relative": relative}
    times = np.asarray(times, dtype=float)
    start_time = times[0] if problem.times is None or times.ndim != 1 else float(problem.times[0])
    if times.ndim == 1 and len(times) and times[0] < start_time:
        raise InputError(
            f"times begin at {times[0]:g}, before the initial state at t={start_time:g}. Ask from there on."
        )
    later = times.ndim == 1 and len(times) > 0 and times[0] > start_time
    _warn_of_growth(model, mu, times)
    if step is not None and integrator != "esdirk4" and any(form.leading_moves for form in problem.forms):
        if integrator is not None:
            raise InputError(
                f"integrator={integrator!r} extrapolates terms whose coefficients depend on time, and a second derivative "
                "among them would be unstable. Use integrator='esdirk4'."
            )
        integrator = "esdirk4"
    parts = model.initial(mu)
    run = integrate(
        model.system(mu),
        parts[0],
        np.concatenate([[start_time], times]) if later else times,
        velocity=parts[1] if problem.time_order == 2 else None,
        integrator=integrator,
        step=step,
        tolerance=tolerance,
        relative=relative,
        progress=progress,
    )
    first = 1 if later else 0  # the initial state itself was not asked for
    values = model.layout.at_nodes(run.values)[first:]
    seconds = time.perf_counter() - start
    return Evolution(model, mu, run.times[first:], values, run.n_steps, run.integrator, seconds, options)


def _warn_of_growth(model: Model, mu: np.ndarray, times: np.ndarray) -> None:
    if times.ndim != 1 or not len(times):
        return  # refused later, with better words
    # a nonlinear problem may grow by itself; a linear one whose modes grow twentyfold is worth a word
    limit, duration = np.log(20.0) if model.problem.linear else MOST_GROWTH, float(times[-1] - times[0])
    # eigenvalues cost as much as a solve: the first parameter is looked at itself, then middle and ends of the ranges speak
    # for the others where they are far from the limit; functions have neither
    first, key = model.first_growth, mu.tobytes()
    if key in first:
        growth = first[key]
    elif not first or model.parameters.functions or model.typical_growth * duration > limit / 3:
        growth = model.growth(mu)
        first.update({} if first else {key: growth})
    else:
        growth = model.typical_growth
    if growth * duration > limit:
        warnings.warn(
            f"the discretised operator has modes that grow like exp({growth:.3g} t), which may be errors of the stencils. "
            f"Use hyperviscosity=0.01 for transport, ghosts for conditions on the slope, or other nodes.",
            ParasolWarning,
            stacklevel=4,
        )
