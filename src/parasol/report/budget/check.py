"""The error budget of a surrogate, measured on full solves it has never seen, and whether its promise holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import betabinom

from parasol.checks import check_count, check_positive, check_progress
from parasol.errors import InputError, SolveFailed, UnsuitableNodes
from parasol.fitting.fit import accuracy
from parasol.learning.comparing import compare, probes
from parasol.learning.nodes import discretize_on, estimate
from parasol.pde.by_elements import of_degree
from parasol.pde.matrices import AffineModel
from parasol.pde.model import Model
from parasol.pde.problem import Problem, Settings
from parasol.pde.steady import l2_root
from parasol.reduction.snapshots import Snapshots, solve_many
from parasol.reduction.solvers import Solvable
from parasol.report.budget.solver import solver_of
from parasol.report.render import Facts
from parasol.runtime.above import borrowed
from parasol.runtime.surrogate import Surrogate
from parasol.space.kernels import PHS

_CHANCE = 0.01  # that a promise which holds is found broken
_N_WORST = 3
_N_PROBES = 3  # parameters at which another kernel is tried


@dataclass(frozen=True, eq=False)
class Budget:
    """Where the error of a surrogate comes from, at n fresh parameters: relative errors of all values, in the basis' norm."""

    mus: np.ndarray  # (n, n_parameters)
    errors: np.ndarray  # (n,) of the answers
    projection_errors: np.ndarray  # (n,) what the modes cannot express
    bounds: np.ndarray | None  # (n,) what the surrogate says about its errors
    rigorous: np.ndarray | None  # (n,) which of these are proven
    names: tuple[str, ...]  # of the scalar parameters
    tolerance: float | None  # promised
    total: bool  # whether the promise includes the discretisation
    level: float  # at which the promise is made; 1 where it is proven
    n_calibration: int | None  # solves behind a conformal bound
    refinement: float | None  # discretisation error, by twice as many nodes
    kernel: float | None  # the same, by another kernel on the same nodes
    n_failed: int  # fresh parameters without a solution, left out
    residual: float | None = None  # the discretisation error, by what solves leave of the equation between the nodes
    estimates: np.ndarray | None = None  # (n,) of the errors, where the surrogate has random duals
    probable: np.ndarray | None = None  # (n,) which of the bounds hold with the probability `level` each
    problem: Problem | None = None  # what was solved, where it is known

    def _repr_html_(self) -> str:
        return borrowed("view")(self)

    @property
    def map_errors(self) -> np.ndarray:
        """(n,): what the map adds; orthogonal to what the modes leave, so squares add up."""
        return np.sqrt(np.maximum(self.errors**2 - self.projection_errors**2, 0.0))

    @property
    def discretisation(self) -> float | None:
        """The largest of the estimates."""
        known = [e for e in (self.refinement, self.kernel, self.residual) if e is not None]
        return max(known) if known else None

    @property
    def effectivity(self) -> np.ndarray | None:
        """(n,) bound over error: at least 1 where the bound holds, and the closer to it the better."""
        return None if self.bounds is None else self.bounds / np.maximum(self.errors, np.finfo(float).tiny)

    @property
    def estimate_over_error(self) -> np.ndarray | None:
        """(n,) estimate over error: near 1 where both are above rounding."""
        return None if self.estimates is None else self.estimates / np.maximum(self.errors, np.finfo(float).tiny)

    @property
    def coverage(self) -> float | None:
        """The part of the fresh parameters at which the error is below its bound."""
        return None if self.bounds is None else float(np.mean(self.errors <= self.bounds))

    @property
    def worst(self) -> np.ndarray:
        """Indices of the largest errors, the largest first."""
        return np.argsort(self.errors)[::-1][:_N_WORST]

    @property
    def allowed(self) -> int:
        """How many of the errors may miss before a promise is found broken by more than chance.

        The share of misses of one calibration set of m solves, of which the k-th smallest error is the bound, follows
        the law Beta(m + 1 − k, k). Of n probable bounds, which share their random vectors, n (1 − level) miss on the mean,
        and so more than that over 0.01 with a chance below 0.01. A proven promise may not miss.
        """
        n, m = len(self.errors), self.n_calibration
        if m is None:
            n_probable = 0 if self.probable is None else int(np.count_nonzero(self.probable))
            return max(int(np.ceil(n_probable * (1.0 - self.level) / _CHANCE)) - 1, 0)
        k = min(int(np.ceil((m + 1) * self.level - 1e-9)), m)
        return int(betabinom.ppf(1 - _CHANCE, n, m + 1 - k, k))

    @property
    def broken(self) -> str:
        """Why the promise does not hold, in one sentence; empty where it does."""
        n, above = len(self.errors), self.n_above
        if above > self.allowed:
            return f"{above} of {n} errors exceed the promised {self.tolerance:g}, the largest is {np.max(self.errors):.1e}"
        if self.bounds is not None and self.rigorous is not None:
            false = int(np.count_nonzero((self.errors > self.bounds) & self.rigorous))
            if false:
                return f"{false} of {n} errors exceed a bound that claims to be proven"
            missed = int(np.count_nonzero((self.errors > self.bounds) & ~self.rigorous))
            if missed > self.allowed:
                return f"{missed} of {n} errors exceed their bound, at level {self.level:g}"
        return ""

    @property
    def n_above(self) -> int:
        """How many of the errors exceed the promised tolerance."""
        if self.tolerance is None:
            return 0
        extra = self.discretisation or 0.0 if self.total else 0.0
        return int(np.count_nonzero(self.errors + extra > self.tolerance))

    @property
    def verdict(self) -> str:
        """What was found of the promise, in one sentence that counts the errors."""
        if self.broken:
            return f"does not hold: {self.broken}"
        n, known = len(self.errors), []
        if self.tolerance is not None:
            known.append((self.n_above, f"the promised {self.tolerance:g}{' in total' if self.total else ''}"))
        if self.bounds is not None:
            known.append((int(np.count_nonzero(self.errors > self.bounds)), "their bounds"))
        if not known:
            return "nothing is promised"
        parts = [f"{above} of {n} errors exceed {limit}" for above, limit in known if above]
        if parts:
            return f"{', '.join(parts)}; up to {self.allowed} may, at level {self.level:.4g}"
        return f"holds: all {n} errors are within {' and '.join(limit for _, limit in known)}"

    @property
    def holds(self) -> bool:
        """Whether what the surrogate promises was found to hold."""
        return not self.broken

    def facts(self) -> Facts:
        """The name of `to_dict` in version 0.1.0; it goes with the next version."""
        warnings.warn("budget.facts() has a new name: use budget.to_dict().", DeprecationWarning, stacklevel=2)
        return self.to_dict()

    def to_dict(self) -> Facts:
        """The budget as plain values."""
        effect, ratio = self.effectivity, self.estimate_over_error
        return {
            "holds": self.holds,
            "broken": self.broken or None,
            "tolerance": self.tolerance,
            "total": self.total,
            "level": self.level,
            "n": len(self.errors),
            "n_failed": self.n_failed,
            "discretisation": {"refinement": self.refinement, "kernel": self.kernel, "residual": self.residual},
            "projection": _spread(self.projection_errors),
            "map": _spread(self.map_errors),
            "error": _spread(self.errors),
            "bound": None if self.bounds is None else _spread(self.bounds),
            "proven": None if self.rigorous is None else float(np.mean(self.rigorous)),
            "probable": None if self.probable is None else float(np.mean(self.probable)),
            "effectivity": None if effect is None else _spread(effect) | {"min": float(np.min(effect))},
            "estimate": None if self.estimates is None else _spread(self.estimates),
            "estimate_over_error": None if ratio is None else _spread(ratio) | {"min": float(np.min(ratio))},
            "coverage": self.coverage,
            "worst": [{"mu": self._named(i), "error": float(self.errors[i])} for i in self.worst],
        }

    def rows(self) -> dict[str, str]:
        """The budget in words."""
        rows: dict[str, str] = {}
        by = {"twice the nodes": self.refinement, "another kernel": self.kernel, "its residual": self.residual}
        known = [f"about {e:.1e} by {how}" for how, e in by.items() if e is not None]
        rows["discretisation"] = ", ".join(known) or "not known: no solver to refine"
        if self.tolerance is not None and (self.discretisation or 0.0) > self.tolerance:
            rows["discretisation"] += f": above {self.tolerance:g}, which is against the full solver"
        for name, errors in (("projection", self.projection_errors), ("map", self.map_errors), ("error", self.errors)):
            rows[name] = f"mean {np.mean(errors):.1e}, max {np.max(errors):.1e}"
        rows["error"] += f", on {len(self.errors)} fresh solves" + (
            f", {self.n_failed} failed" if self.n_failed else ""
        )
        if self.bounds is not None and self.rigorous is not None and self.effectivity is not None:
            low, high = np.min(self.effectivity), np.median(self.effectivity)
            rows["bound"] = (
                f"max {np.max(self.bounds):.1e} ({self._kind}), over the error: least {low:.2g}, median {high:.2g}"
            )
            rows["coverage"] = f"{100 * (self.coverage or 0):.0f} % of the errors are below their bound"
        if self.estimates is not None and (ratio := self.estimate_over_error) is not None:
            low, middle, high = np.min(ratio), np.median(ratio), np.max(ratio)
            rows["estimate"] = (
                f"max {np.max(self.estimates):.1e}, over the error: least {low:.2g}, median {middle:.2g}, largest {high:.2g}"
            )
        for place, i in enumerate(self.worst):
            values = ", ".join(f"{k}={v:.4g}" for k, v in self._named(i).items())
            rows[f"worst {place + 1}"] = f"{self.errors[i]:.1e} at {values or f'sample {i}'}"
        rows["promise"] = self.verdict
        return rows

    @property
    def _kind(self) -> str:
        """What is known of the bounds, in words."""
        parts = []
        if self.rigorous is not None and np.any(self.rigorous):
            parts.append(f"{100 * np.mean(self.rigorous):.0f} % proven")
        if self.probable is not None and np.any(self.probable):
            parts.append(f"{100 * np.mean(self.probable):.0f} % probable: {self.level:.4f} for each parameter")
        return ", ".join(parts) or f"level {self.level:.2g}"

    def _named(self, i: int) -> dict[str, float]:
        return {name: float(value) for name, value in zip(self.names, self.mus[i], strict=False)}


def check(
    surrogate: Surrogate,
    problem: Problem | Solvable | str | None = None,
    *,
    model: Any = None,
    n: int = 50,
    tolerance: float | None = None,
    rng: int = 1,
    jobs: int | None = None,
    progress: Callable[[str], Callable[[float], None] | None] | None = None,
) -> Budget:
    """Solve at n fresh parameters and say where the surrogate's error comes from, and whether its promise holds.

    The solver is the surrogate's own where it is in memory, `problem` or `model` where that is a solver, or is made again from the file's nodes and the
    `problem`: the file's own where the catalogue has it, else give it. The promise is the `tolerance` it was learned to. The
    discretisation error is estimated afresh by twice as many nodes, by another kernel, and by the residual of the solves at
    the same parameters (`solution.discretisation`); the largest estimate counts.
    """
    if not isinstance(surrogate, Surrogate):
        raise InputError(f"cannot check a {type(surrogate).__name__}. Pass a surrogate.")
    stage = check_progress(progress) or (lambda text: None)
    n = check_count(n, "n")
    learned = surrogate.provenance
    promised = learned.tolerance if tolerance is None else check_positive(tolerance, "tolerance")
    stage("rebuilding the solver")
    solver = solver_of(surrogate, problem, model)
    truth, n_failed = _fresh(surrogate, solver, n, rng, jobs, stage)
    measured = accuracy(surrogate, truth)
    bounds = surrogate.certify(truth.mus) if surrogate.has_bounds else None
    estimates = surrogate.estimate(truth.mus)
    conformal = surrogate.conformal if surrogate.reduced is None else None
    level, n_calibration = (1.0, None) if conformal is None else (conformal.level, conformal.n_calibration)
    probable = None
    if bounds is not None and estimates is not None and bounds.probable is not None:
        level, probable = estimates.probability, bounds.probable
    refinement, kernel, residual = learned.discretisation_error, None, None
    if isinstance(solver, Model) and not isinstance(solver, AffineModel):
        stage("estimating the discretisation error")
        afresh = estimate(
            solver, rng=rng, refined=learned.refined_nodes
        ).error  # other nodes and parameters than learning looked at
        refinement = max(afresh, refinement or 0.0)
        kernel, residual = other_kernel(solver), between_nodes(solver)
    return Budget(
        mus=truth.mus,
        errors=measured.errors,
        projection_errors=measured.projection_errors,
        bounds=None if bounds is None else bounds.relative,
        rigorous=None if bounds is None else bounds.rigorous,
        names=surrogate.parameters.names,
        tolerance=promised,
        total=learned.total and tolerance is None,
        level=level,
        n_calibration=n_calibration,
        refinement=refinement,
        kernel=kernel,
        n_failed=n_failed,
        residual=residual,
        estimates=None if estimates is None else estimates.relative,
        probable=probable,
        problem=_stated(solver),
    )


def _stated(solver: Any) -> Problem | None:
    problem = getattr(solver, "problem", None)
    return problem if isinstance(problem, Problem) else None


def other_kernel(model: Model) -> float | None:
    """The largest relative difference to the same nodes with another spline and one polynomial degree more.

    For elements, to those of one degree more on the same triangles.
    """
    scheme = model.scheme
    power = scheme.kernel.power if isinstance(scheme.kernel, PHS) else 5
    chosen = Settings(kernel=PHS(power - 2 if power >= 7 else power + 2), degree=max(scheme.degree, 2) + 1)
    ghosts = model.n_unknowns > len(model.problem.names) * model.n_nodes
    steps = {"step": model.step, "integrator": model.integrator, "neumann": "ghosts" if ghosts else "one-sided"}
    try:
        if model.elements is not None and (other := of_degree(model, model.elements.degree + 1)) is not None:
            return float(max(compare(model, other, mus=list(probes(model)[:_N_PROBES])).errors))
        other = discretize_on(model.problem, model.nodes, replace(chosen, **steps))
        errors, root = [], l2_root(model)
        for mu in probes(model)[:_N_PROBES]:
            ours, theirs = (m.solve(mu, extrapolate=True).values for m in (model, other))
            gap, size = (np.linalg.norm(root * values.reshape(-1, model.n_nodes)) for values in (ours - theirs, theirs))
            errors.append(float(gap / (size or 1.0)))
        return max(errors)
    except (UnsuitableNodes, SolveFailed):  # too few nodes for it, or no solution at a corner
        return None


def between_nodes(model: Model) -> float | None:
    """The largest estimate of a few solves by themselves, `solution.discretisation`; None where there is none."""
    if model.problem.time is not None or (model.elements is None and model.between is None):
        return None
    try:
        estimates = [model.solve(mu, extrapolate=True).discretisation for mu in probes(model)[:_N_PROBES]]
    except SolveFailed:
        return None
    return max((e for e in estimates if e is not None), default=None)


def _fresh(surrogate: Surrogate, solver, n: int, rng: int, jobs, stage) -> tuple[Snapshots, int]:
    """Full solves at random parameters of the surrogate's box, where it answers."""
    space = surrogate.parameters.answered
    generator = np.random.default_rng([rng, 90210])
    scalars = space.from_unit(generator.random((n, len(space.scalars))))
    mus = scalars
    if space.functions:
        if not hasattr(solver, "sample"):
            raise InputError("parameters that are functions can be drawn by a model only. Pass model=.")
        mus = solver.sample(n, generator)
        mus[:, : scalars.shape[1]] = scalars
    progress = stage(f"{n} fresh full solves")
    truth = solve_many(solver, mus, jobs=jobs, progress=progress)
    if truth.n_values != surrogate.basis.n_values:
        raise InputError(
            f"the solver gives {truth.n_values} values, the surrogate {surrogate.basis.n_values}: they do not belong together."
        )
    return truth, len(truth.failures)


def _spread(values: np.ndarray) -> dict[str, float]:
    return {"mean": float(np.mean(values)), "median": float(np.median(values)), "max": float(np.max(values))}
