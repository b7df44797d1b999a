"""A solution in time: stored moments, one flat vector for the reduction, single moments for people."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import ParasolError, ParasolWarning
from parasol.pde.notebook import card, field_rows
from parasol.pde.steady import Solution, describe
from parasol.pde.transient import MOST_GROWTH, integrate

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

    def __repr__(self) -> str:
        name, first, last = self.model.problem.name, self.times[0], self.times[-1]
        return f"<Evolution {name}: {self.values.shape[1]} values at {len(self.times)} times in [{first:g}, {last:g}]>"

    def _repr_html_(self) -> str:
        rows = field_rows(self.fields)
        rows["times"] = f"{len(self.times)} from {self.times[0]:g} to {self.times[-1]:g}"
        rows |= {"steps": f"{self.n_steps} of {self.integrator}", "seconds": f"{self.seconds:.2g}"}
        return card(f"{self.model.problem.name or 'evolution'} at {describe(self.model, self.mu)}", rows)

    @property
    def flat(self) -> np.ndarray:
        """All stored values as one vector, (n_times * n_fields * n_nodes,), time slowest."""
        return self.values.reshape(-1)

    @property
    def fields(self) -> dict[str, np.ndarray]:
        """The unknown functions by name, each (n_times, n_nodes)."""
        return self.model.fields(self.values)

    @property
    def quantities(self) -> dict[str, np.ndarray]:
        """What the problem wants to know of its solution, by name, each (n_times,)."""
        wanted = self.model.quantities
        return dict(zip(wanted.names, wanted.rows @ self.values.T, strict=True))

    def at(self, t: float) -> Solution:
        """The state at time t, between stored times by a cubic through the four nearest."""
        first, last = self.times[0], self.times[-1]
        if not first <= t <= last:
            raise ParasolError(
                f"t={t:g} is outside the stored times [{first:g}, {last:g}]. Ask inside, or solve for longer."
            )
        exactly = np.flatnonzero(self.times == t)
        if len(exactly):
            values = self.values[exactly[0]]
        else:
            count = min(4, len(self.times))
            start = int(np.clip(np.searchsorted(self.times, t) - count // 2, 0, len(self.times) - count))
            near = self.times[start : start + count]
            gaps = near[:, None] - near[None, :] + np.eye(count)
            ratios = (t - near[None, :]) / gaps
            np.fill_diagonal(ratios, 1.0)
            values = np.prod(ratios, axis=1) @ self.values[start : start + count]
        return Solution(self.model, self.mu, values, 0.0, self.seconds, self.integrator, time=float(t))

    @property
    def error(self) -> float | None:
        """Relative l2 error over all stored times and nodes against the exact solution, where the problem knows it."""
        if self.model.problem.exact is None:
            return None
        squares = [0.0, 0.0]
        for t, values in zip(self.times, self.values, strict=True):
            exact = self.model.exact(self.mu, t)
            squares[0] += float(np.sum((values - exact) ** 2))
            squares[1] += float(np.sum(exact**2))  # type: ignore[operator]
        return float(np.sqrt(squares[0] / (squares[1] or 1.0)))


def evolve(
    model: Model,
    mu: np.ndarray,
    *,
    times=None,
    integrator: str | None = None,
    step: float | None = None,
    tolerance: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Evolution:
    """Integrate a problem in time from its initial state and keep the values at the given times."""
    start = time.perf_counter()
    problem = model.problem
    times = problem.times if times is None else times
    if times is None:
        raise ParasolError(
            "the times to store are missing. Give times=np.linspace(0, 10, 101) to solve, or to the problem."
        )
    if step is None and tolerance is None and integrator is None:
        step, integrator = model.step, model.integrator
    times = np.asarray(times, dtype=float)
    start_time = times[0] if problem.times is None or times.ndim != 1 else float(problem.times[0])
    if times.ndim == 1 and len(times) and times[0] < start_time:
        raise ParasolError(
            f"times begin at {times[0]:g}, before the initial state at t={start_time:g}. Ask from there on."
        )
    later = times.ndim == 1 and len(times) > 0 and times[0] > start_time
    _warn_of_growth(model, mu, times)
    if step is not None and integrator != "esdirk4" and any(form.leading_moves for form in problem.forms):
        if integrator is not None:
            raise ParasolError(
                f"integrator={integrator!r} extrapolates terms whose coefficients depend on time, and a second derivative "
                "among them would be unstable. Use integrator='esdirk4'."
            )
        integrator = "esdirk4"
    states = problem.initial_states
    points = model.pattern.points[: model.n_unknowns // len(problem.names)]
    parts = [
        model.evaluate([states[n][i] for n in problem.names], mu, points=points) for i in range(problem.time_order)
    ]
    run = integrate(
        model.system(mu),
        parts[0],
        np.concatenate([[start_time], times]) if later else times,
        velocity=parts[1] if problem.time_order == 2 else None,
        integrator=integrator,
        step=step,
        tolerance=tolerance,
        progress=progress,
    )
    first = 1 if later else 0  # the initial state itself was not asked for
    values = model.at_nodes(run.values)[first:]
    return Evolution(model, mu, run.times[first:], values, run.n_steps, run.integrator, time.perf_counter() - start)


def _warn_of_growth(model: Model, mu: np.ndarray, times: np.ndarray) -> None:
    # a nonlinear problem may grow by itself; a linear one whose modes grow twentyfold is worth a word
    limit = np.log(20.0) if model.problem.linear else MOST_GROWTH
    growth = model.growth(mu)
    if times.ndim == 1 and len(times) and growth * (times[-1] - times[0]) > limit:
        warnings.warn(
            f"the discretised operator has modes that grow like exp({growth:.3g} t), which may be errors of the stencils. "
            f"Use hyperviscosity=0.01 for transport, ghosts for conditions on the slope, or other nodes.",
            ParasolWarning,
            stacklevel=4,
        )
