"""What is wrong with a model or a solver of one's own, before the work: tried at a few parameters, said in a list."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from parasol.checks import check_count
from parasol.errors import InputError, NotInstalled, ParasolWarning, SolveFailed
from parasol.learning.comparing import box_corners
from parasol.learning.linear import singular_between
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.pde.problem import Problem
from parasol.pde.steady import describe
from parasol.reduction.products import MatrixRoot
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import in_words
from parasol.reduction.solvers import Solvable, Solver, own_solver, unwrapped
from parasol.reduction.workers import solve_one
from parasol.report.render import Facts, card, table
from parasol.runtime.products import MatrixProduct
from parasol.runtime.ranges import Ranges

_N_THETAS = 2000  # parameters at which the factors are evaluated
_SAME = 1e-12  # relative: a repeated solve that differs by less has summed in another order
_RESIDUAL = 1e-8  # relative: what a direct solver leaves is below
_REPRODUCES = 1e-10  # relative, of matrices
_SYMMETRIC, _NEARLY = 1e-12, 1e-6  # relative: an asymmetry between these is more likely rounding than meant
_LONGEST = 200  # characters of somebody's error message


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong ("error") or doubtful ("warning"), what to do, and the parameter it was seen at."""

    severity: str
    text: str
    mu: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Verification:
    """What was found wrong with a model or a solver, of what was looked at."""

    subject: str
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]  # what was looked at, in words
    n_solves: int  # full solves this took

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; something may still be doubtful."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_dict(self) -> Facts:
        """The findings as plain values."""
        return {"ok": self.ok, **asdict(self)}

    def rows(self) -> dict[str, str]:
        """The findings in words."""
        rows = {"subject": self.subject}
        for severity in ("error", "warning"):
            texts = [finding.text for finding in self.findings if finding.severity == severity]
            rows |= {f"{severity} {i + 1}" if len(texts) > 1 else severity: text for i, text in enumerate(texts)}
        if not self.findings:
            rows["found"] = "nothing wrong"
        rows["looked at"] = f"{', '.join(self.checked) or 'nothing'}; {self.n_solves} full solves"
        return rows

    def __str__(self) -> str:
        return table(self.rows().items())

    def _repr_html_(self) -> str:
        return card("verification", self.rows())


def verify(
    model: Solvable,
    *,
    parameters: ParameterSpace | Ranges | None = None,
    operator: Callable[[np.ndarray], Any] | None = None,
    load: Callable[[np.ndarray], Any] | None = None,
    n: int = 12,
    rng: int = 0,
) -> Verification:
    """Say what is wrong with a model, or with a solver of one's own, before anything is learned from it.

    It is solved in the middle of the box, where one parameter is changed, at corners and at random parameters, n in all, and
    once more at the first. Said are: a solve that fails, and where; that changes when it is repeated; NaN; lengths that
    differ; a parameter that nothing depends on. Of a model also: factors θ without a finite value, matrices that are
    singular, and where; that are nearly symmetric; an inner product that is not positive definite. `operator(mu)` and
    `load(mu)`, given here or methods of a solver's class, are compared with the sums of the model's blocks, or with what a
    solve leaves of them; `residual(mu, u)` of a solver must vanish at its solution, and `solve_transposed(mu, z)` be of the
    same matrix. What was not seen at these parameters may still be elsewhere.

    >>> report = verify(lambda mu: mu[0] * np.ones(3), parameters={"a": (0.0, 1.0), "k": (0.0, 1.0)})
    >>> report.ok, [finding.text for finding in report.findings]
    (True, ['no solution depends on k. Is mu read in the order a, k?'])
    """
    n = check_count(n, "n")
    if isinstance(model, Problem):
        raise InputError("an equation has no matrices yet. Pass a model: ps.verify(ps.discretize(problem, nodes)).")
    if isinstance(model, Model) and parameters is not None:
        raise InputError("the model declares its parameters itself. Leave parameters= out.")
    try:
        solver: Solver = model if isinstance(model, Model) else own_solver(model, parameters)  # type: ignore[assignment]
    except InputError as error:
        return Verification(in_words(model), (Finding("error", str(error)),), (), 0)
    source = unwrapped(solver)
    if not isinstance(solver, Model):
        operator, load = operator or getattr(source, "operator", None), load or getattr(source, "load", None)
    trial = _Trial(solver, _parameters(solver, n, rng))
    findings, checked = [], []
    if isinstance(solver, Model):
        findings += _blocks(solver, rng)
        findings += _singular(solver, trial.mus)
        checked += ["blocks", "factors", "inner product"]
        checked += ["singular matrices"] if _is_linear(solver) else []
        findings += _reproduced(trial, operator, load)
    findings += trial.run()
    checked += ["solves", "a repeated solve"]
    if not isinstance(solver, Model):
        findings += _residuals(trial, getattr(source, "residual", None), operator, load)
        findings += _transposed(trial, getattr(source, "residual", None), getattr(source, "solve_transposed", None))
    checked += [name for name, given in (("operator(mu)", operator), ("load(mu)", load)) if given is not None]
    checked += ["residual(mu, u)"] if callable(getattr(source, "residual", None)) else []
    return Verification(in_words(solver), tuple(dict.fromkeys(findings)), tuple(checked), trial.n_solves)


def _parameters(solver: Solver, n: int, rng: int) -> np.ndarray:
    """The middle, each parameter changed alone, corners, then random ones: (n, n_parameters)."""
    space = solver.parameters
    p = len(space.scalars)
    middle = np.full((1, p), 0.5)
    changed = np.where(np.eye(p, dtype=bool), 0.9, 0.5)
    units = np.vstack([middle, changed, box_corners(p) if p else middle[:0]])[: max(n, p + 1)]
    mus = sample(solver if space.functions else space, max(n, p + 1), design="random", rng=rng)  # type: ignore[arg-type]
    mus[: len(units), :p] = space.from_unit(units)
    if space.functions:  # the same ones where numbers are changed
        mus[1 : p + 1, p:] = mus[0, p:]
    return mus


class _Trial:
    """Solves at some parameters, each made once, and what is seen of them."""

    def __init__(self, solver: Solver, mus: np.ndarray):
        self.solver, self.mus = solver, mus
        self.solved: dict[int, np.ndarray] = {}
        self.n_solves = 0

    def at(self, mu: np.ndarray) -> str:
        """A parameter in words."""
        return describe(self.solver, mu)  # type: ignore[arg-type]

    def finding(self, severity: str, text: str, mu: np.ndarray | None = None) -> Finding:
        """A finding, with the parameter it was seen at."""
        return Finding(severity, text, None if mu is None else tuple(map(float, mu)))

    def _solve(self, mu: np.ndarray) -> tuple[np.ndarray | None, str, str]:
        """The values, or what is wrong and how wrong."""
        self.n_solves += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values, _, reason = solve_one(self.solver, mu, False)
        except (InputError, NotInstalled) as error:
            return None, str(error), "error"
        except Exception as error:  # a mistake in somebody's code, which is what is looked for
            return None, f"solve(mu) raises {type(error).__name__}: {str(error)[:_LONGEST]}", "error"
        if reason:
            return None, f"solve(mu) fails: {reason[:_LONGEST]}", "warning"
        if not np.all(np.isfinite(values)):
            return (
                None,
                f"{np.count_nonzero(~np.isfinite(values))} of {len(values)} values are NaN or infinite",
                "error",
            )
        return values, "", ""

    def run(self) -> Iterator[Finding]:
        """Solve everywhere, and the first once more."""
        wrong: dict[str, list[int]] = {}
        severities: dict[str, str] = {}
        for i, mu in enumerate(self.mus):
            values, text, severity = self._solve(mu)
            if values is None:
                wrong.setdefault(text, []).append(i)
                severities[text] = severity
            else:
                self.solved[i] = values
        for text, places in wrong.items():
            mu = self.mus[places[0]]
            severity = "error" if len(places) == len(self.mus) else severities[text]
            yield self.finding(
                severity, f"at {len(places)} of {len(self.mus)} parameters, like {self.at(mu)}: {text}", mu
            )
        yield from self._lengths()
        yield from self._dependence()
        yield from self._repeated()

    def _lengths(self) -> Iterator[Finding]:
        lengths: dict[int, int] = {}
        for i, values in self.solved.items():
            lengths.setdefault(len(values), i)
        if len(lengths) > 1:
            (one, i), (other, j) = list(lengths.items())[:2]
            said = f"{one} values at {self.at(self.mus[i])}, {other} at {self.at(self.mus[j])}"
            yield self.finding(
                "error", f"solutions have different lengths: {said}. Return the same grid everywhere.", self.mus[j]
            )

    def _dependence(self) -> Iterator[Finding]:
        sizes = [float(np.max(np.abs(values))) for values in self.solved.values()]
        if sizes and not any(sizes):
            yield self.finding("error", "all solutions are zero. Is there a load?")
            return
        names = self.solver.parameters.names
        first, idle = self.solved.get(0), []
        for j, name in enumerate(names):
            other = self.solved.get(j + 1)
            if first is not None and other is not None and np.array_equal(first, other):
                idle.append(name)
        if idle:
            said = f"no solution depends on {', '.join(idle)}"
            yield self.finding("warning", f"{said}. Is mu read in the order {', '.join(names)}?")

    def _repeated(self) -> Iterator[Finding]:
        if not self.solved:
            return
        i, before = next(iter(self.solved.items()))
        values, text, _ = self._solve(self.mus[i])
        where = f"at {self.at(self.mus[i])}"
        if values is None:
            yield self.finding("error", f"solved twice {where}, the second time: {text}", self.mus[i])
        elif len(values) != len(before):
            yield self.finding(
                "error", f"solved twice {where}, it has {len(before)} and {len(values)} values", self.mus[i]
            )
        elif (change := _relative(values - before, before)) > _SAME:
            yield self.finding(
                "warning" if change < _RESIDUAL else "error",
                f"solved twice {where}, the solutions differ by {change:.1e}: no tolerance below that can be met. Does it keep "
                "a state, or draw random numbers?",
                self.mus[i],
            )


def _relative(gap: Any, size: Any) -> float:
    """max |gap| / max |size| of two arrays, dense or sparse."""
    gap, size = (abs(a).max() if np.size(a) or sparse.issparse(a) else 0.0 for a in (gap, size))
    return float(gap / size) if size else float(gap)


# ---- matrices -------------------------------------------------------------------------------------------------------
def _blocks(model: Model, rng: int) -> Iterator[Finding]:
    """Factors, symmetry, empty rows, and the inner product."""
    terms = model.terms
    n = len(model.parameters.scalars)
    mus = model.sample(_N_THETAS, rng)
    mus[: 2 ** min(n, 3), :n] = model.parameters.from_unit(box_corners(n)) if n else mus[:1, :n]
    for letter, thetas, evaluate in (
        ("matrix", terms.operator_thetas, terms.operator_theta),
        ("vector", terms.load_thetas, terms.load_theta),
    ):
        with np.errstate(all="ignore"):
            bad = ~np.isfinite(evaluate(mus))
        for q in np.flatnonzero(np.any(bad, axis=0)):
            mu = mus[np.argmax(bad[:, q])]
            text = (
                f"the factor {thetas[q]} of a {letter} has no finite value at {describe(model, mu)}. Narrow the ranges."
            )
            yield Finding("error", text, tuple(map(float, mu)))
    for theta, block in zip(terms.operator_thetas, terms.operators, strict=True):
        gap = _relative(block - block.T, block)
        if _SYMMETRIC < gap < _NEARLY:
            text = f"the matrix of {theta} is symmetric but for {gap:.1e} of its largest entry. If it should be, give (A + A.T) / 2."
            yield Finding("warning", text)
    if _is_linear(model) and not terms.varying_operator and len(terms.operator_data):
        used = terms.matrix(np.abs(terms.operator_data).sum(axis=0))
        for axis, word in ((1, "row"), (0, "column")):
            empty = np.flatnonzero(used.sum(axis=axis) == 0)
            if len(empty):
                text = f"{word} {empty[0]} is zero in every matrix ({len(empty)} such): no equation determines that unknown."
                yield Finding("error", text)
    if isinstance(model.product, MatrixProduct):
        try:
            MatrixRoot(model.product)
        except InputError as error:
            yield Finding("error", str(error))


def _is_linear(model: Model) -> bool:
    return model.problem.time is None and model.problem.linear


def _singular(model: Model, mus: np.ndarray) -> Iterator[Finding]:
    """Where a linear steady model has no unique solution: at these parameters, or between two of them."""
    if not _is_linear(model):
        return
    signs: dict[int, float] = {}
    for i, mu in enumerate(mus):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore", ParasolWarning)
                signs[i] = model.factors(mu).sign
        except (SolveFailed, ValueError, ArithmeticError):  # which the solves say
            continue
    known = list(signs)
    for i in known[1:]:
        if signs[i] * signs[known[0]] < 0:
            near = singular_between(model, mus[known[0]], mus[i], int(signs[known[0]]))
            text = (
                f"between {describe(model, mus[known[0]])} and {describe(model, mus[i])} the matrix is singular, near "
                f"{describe(model, near)}: solutions grow beyond all bounds there. Narrow the ranges to one side."
            )
            yield Finding("warning", text, tuple(map(float, near)))
            return


def _reproduced(trial: _Trial, operator: Callable | None, load: Callable | None) -> Iterator[Finding]:
    """Whether the blocks of a model add up to somebody's operator(mu) and load(mu)."""
    model = trial.solver
    assert isinstance(model, Model)
    for name, theirs, ours in (("operator", operator, model.operator), ("load", load, model.load)):
        gaps = []
        for mu in trial.mus if theirs is not None else ():
            try:
                given, own = theirs(mu.copy()), ours(mu)  # type: ignore[misc]
            except Exception as error:  # somebody's code
                yield trial.finding("error", f"{name}(mu) raises {type(error).__name__}: {str(error)[:_LONGEST]}", mu)
                break
            if np.shape(given) != np.shape(own):
                text = f"{name}(mu) has the shape {np.shape(given)}, the sum of the blocks {np.shape(own)}."
                yield trial.finding("error", text, mu)
                break
            gaps.append(_relative(given - own, own))
        if gaps and not np.max(gaps) <= _REPRODUCES:
            mu, gap = trial.mus[int(np.argmax(gaps))], np.max(gaps)
            text = f"the blocks do not add up to {name}(mu): at {trial.at(mu)} they differ by {gap:.1e} of the largest entry."
            yield trial.finding("error", f"{text} Are the factors right, and is mu read in their order?", mu)


def _residuals(
    trial: _Trial, residual: Callable | None, operator: Callable | None, load: Callable | None
) -> Iterator[Finding]:
    """Whether solutions of a solver satisfy its own residual(mu, u), or operator(mu) u = load(mu)."""
    offers: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {}
    if callable(residual):
        offers["residual(mu, u)"] = lambda mu, u: np.asarray(residual(mu.copy(), u), dtype=float)
    if callable(operator) and callable(load):
        offers["load(mu) - operator(mu) @ u"] = lambda mu, u: np.asarray(
            load(mu.copy()) - operator(mu.copy()) @ u, dtype=float
        )
    for name, left in offers.items():
        worst, at = 0.0, None
        for i, u in trial.solved.items():
            mu = trial.mus[i]
            try:
                none, some, twice = left(mu, 0.0 * u), left(mu, u), left(mu, 2.0 * u)
            except Exception as error:  # somebody's code
                yield trial.finding("error", f"{name} raises {type(error).__name__}: {str(error)[:_LONGEST]}", mu)
                break
            if some.shape != u.shape or not np.all(np.isfinite(some)):
                text = f"{name} has the shape {some.shape} with {np.count_nonzero(~np.isfinite(some))} values not finite, expected {u.shape}."
                yield trial.finding("error", text, mu)
                break
            if _relative(twice - 2.0 * some + none, np.abs(none) + np.abs(twice)) > _RESIDUAL:
                yield trial.finding("warning", f"{name} is not linear in u at {trial.at(mu)}.", mu)
                break
            relative = _relative(some, none)
            if relative > worst:
                worst, at = relative, mu
        if at is not None and worst > _RESIDUAL:
            text = f"{name} of a solution is {worst:.1e} of that of zero, at {trial.at(at)}: the solve is that inaccurate, or of another system."
            yield trial.finding("warning" if worst < 1e-3 else "error", text, at)


def _transposed(trial: _Trial, residual: Callable | None, transposed: Callable | None) -> Iterator[Finding]:
    """Whether zᵀ u = yᵀ f for y = solve_transposed(mu, z) and f = residual(mu, 0)."""
    if not (callable(residual) and callable(transposed) and trial.solved):
        return
    i, u = next(iter(trial.solved.items()))
    mu, z = trial.mus[i], np.random.default_rng(0).standard_normal(len(u))
    try:
        y, f = (np.asarray(a, dtype=float) for a in (transposed(mu.copy(), z.copy()), residual(mu.copy(), 0.0 * u)))
        gap = abs(z @ u - y @ f) / (np.abs(z) @ np.abs(u))
    except Exception as error:  # somebody's code
        yield trial.finding(
            "error", f"solve_transposed(mu, z) raises {type(error).__name__}: {str(error)[:_LONGEST]}", mu
        )
        return
    if not gap <= _RESIDUAL:
        text = f"solve_transposed(mu, z) is not of the matrix of the residual: z·u and y·f differ by {gap:.1e} at {trial.at(mu)}."
        yield trial.finding("error", text, mu)
