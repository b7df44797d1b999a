"""Attacks on bounds and on `met` (section E of issue 14): no bound below the error more often than its word allows."""

from __future__ import annotations

import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import sympy
from sympy import Abs, Max, Min, Piecewise, cos, exp, sin, sqrt, tanh

import parasol as ps
from adversary.families import Draw, family
from adversary.problems import require
from parasol.reduction.affine import affine_form
from parasol.reduction.reduced import prepare

_ROUNDING = 1e-9  # relative, by which an error may exceed its bound
_STEPS = 5  # of the search for a parameter with a bound too small
_FALSE_ALARM = 5.0  # standard deviations of the number of misses


@dataclass(frozen=True)
class Random:
    """A random problem with the places in its box that are worth a look: in hats, at kinks, at the ends."""

    problem: ps.Problem
    special: tuple[dict[str, float], ...] = ()
    options: dict = field(default_factory=dict)

    def parameters(self, rng, space: ps.pde.ParameterSpace, n: int) -> np.ndarray:
        """Random parameters, then corners, then those in hats."""
        p = len(space.scalars)
        random = space.from_unit(rng.uniform(size=(n, p)))
        corners = space.from_unit(rng.integers(0, 2, (max(n // 3, 2), p)).astype(float))
        edges = space.from_unit(np.where(rng.uniform(size=(max(n // 3, 2), p)) < 0.5, 0.0, rng.uniform(size=p)))
        hats = np.repeat(random[:1], len(self.special), axis=0)
        for row, where in zip(hats, self.special, strict=True):
            row[:] = space.from_unit(rng.uniform(size=(1, p)))[0]
            for name, value in where.items():
                row[space.names.index(name)] = value
        return np.vstack([random, corners, edges, hats])


def _coefficient(rng, parameters, special: list, *, positive: bool = False, simple: bool = False):
    """A function of the parameters of the size 1: smooth, with a kink, or a hat that samples may miss; or `simple`."""
    a = parameters[int(rng.integers(len(parameters)))]
    b = parameters[int(rng.integers(len(parameters)))]
    low, high = float(a.low), float(a.high)
    at = round(float(a.middle if rng.uniform() < 0.2 else rng.uniform(low, high)), 3)
    at = min(max(at, low), high)
    width = float((high - low) * 10.0 ** rng.uniform(-4, -0.7))
    one, other = a / max(abs(low), abs(high)), b / max(abs(float(b.low)), abs(float(b.high)))
    kinds = ["linear", "square", "product", "exp", "sqrt", "wave", "hat", "kink", "step", "rational", "pieces", "least"]
    kind = str(rng.choice(kinds[:3] if simple else kinds))
    if kind in ("hat", "kink", "step", "pieces", "least"):
        special += [{str(a): min(max(at + s * width, low), high)} for s in (0.0, 0.4, -0.4, 0.9)]
    found = {
        "linear": one,
        "square": one**2,
        "product": one * other,
        "exp": exp(-2 * one),
        "sqrt": sqrt(1 + one**2 + other),
        "wave": sin(4 * one + 2 * other),
        "hat": Max(0, 1 - Abs(a - at) / width),
        "kink": Abs(a - at) / (high - low),
        "step": tanh((a - at) / width),
        "rational": 1 / (1 + 4 * one**2),
        "pieces": Piecewise((one, a < at), (one**3 / 2, a < at + width), (cos(one), True)),
        "least": Min(one, other, at / (1 + abs(at))) + sympy.atan(3 * other),
    }[kind]
    return 1 + 0.7 * found if positive else found


def affine_problem(draw: Draw, *, plane: bool | None = None, tame: bool = False) -> Random:
    """-θ₀ Δu + Σ θ_q L_q u = Σ φ_q g_q with random functions of one to four parameters, at any scale."""
    rng = draw.rng
    plane = bool(rng.uniform() < 0.2) if plane is None else plane
    n = int(rng.choice([1, 1, 2, 2, 3, 4]))
    names = rng.permutation(["a", "b", "k", "tau", "nu"])[:n]
    ranges = {}
    for name in names:
        low = round(float(rng.uniform(-1, 1)), 2)
        log = rng.uniform() < 0.3
        start = 10.0 ** int(rng.integers(-3, 1))
        ranges[str(name)] = (
            (start, start * 10.0 ** int(rng.integers(1, 4)), "log") if log else (low, low + draw.uniform(0.5, 3))
        )
    mu = ps.parameters(**ranges)
    xs = ps.coordinates("x y" if plane else "x")
    u = ps.unknown("u", *xs)
    size = 10.0 ** int(rng.choice([0, 0, 0, -4, 4]))
    domain = ps.Box((0.0,) * len(xs), (size,) * len(xs))
    x, special = xs[0] / size, []
    exact = rng.uniform() < 0.2  # parameters in the data alone, as polynomials: only rounding is left of the error

    def coefficient(*, positive: bool = False, operator: bool = False):
        if exact and operator:
            return draw.uniform(0.5, 1.5)
        return _coefficient(rng, mu, special, positive=positive, simple=exact)

    laplace = size**2 * ps.laplacian(u, *xs)
    lower = [u, x * u, u / (1 + x), size * u.diff(xs[0]), x * size * u.diff(xs[0]), cos(3 * x) * u, -x * laplace]
    strength = 1.0 if tame else float(rng.choice([1.0, 3.0, 10.0, 30.0]))
    left = -coefficient(positive=True, operator=True) * laplace
    for k in rng.permutation(len(lower))[: int(rng.integers(1, 4))]:
        factor = strength * draw.uniform(-1, 1) if k < 6 else abs(draw.uniform(0.1, 1))
        left += factor * coefficient(positive=bool(k == 6), operator=True) * lower[int(k)]
    if not tame and rng.uniform() < 0.3:  # towards a resonance, or across some
        left -= np.pi**2 * len(xs) * draw.uniform(0.5, 3) * coefficient(operator=True) * u
    sources = [sympy.Integer(1), x, exp(-x), sin(5 * x)]
    scale = 10.0 ** int(rng.choice([0, 0, -8, 6]))
    right = sum(
        (coefficient(positive=j == 0) * sources[int(k)] for j, k in enumerate(rng.permutation(4)[:2])),
        start=sympy.Integer(0),
    )
    values = scale * (draw.uniform(-1, 1) + draw.uniform(-1, 1) * x * coefficient())
    boundary: object = ps.Dirichlet(values if rng.uniform() < 0.7 else 0)
    if rng.uniform() < 0.4:
        flux = ps.Robin(1 + abs(coefficient(operator=True)), values, 1 / size)
        boundary = {"left": flux} | dict.fromkeys(domain.part_names[1:], ps.Dirichlet(values))
    unused = [p for p in mu if not (left + right).has(p)]
    right = right + sum(p / float(p.high) for p in unused)
    quantities = {
        "mean": ps.Average(),
        "last": ps.PointValue((0.77 * size,) * len(xs)),
        "flux": ps.Flux("right"),
    }
    problem = ps.Problem(domain, ps.Eq(left, scale * right), boundary, quantities=quantities)
    return Random(problem, tuple(special[:12]), {"n_nodes": 120 if plane else int(rng.integers(30, 70))})


def _certified(draw: Draw, model) -> tuple[ps.Surrogate, str]:
    """A surrogate with a certificate, made in one of the ways there are."""
    rng = draw.rng
    way = draw.turn(["greedy", "pod", "weights", "learn", "rows", "greedy", "rough map"])
    n_modes = int(rng.integers(2, 9))
    n_anchors = int(rng.choice([4, 15, 40]))
    if way == "learn":
        return ps.learn(model, float(10.0 ** -rng.integers(2, 6)), recipe="polynomial", solves=25, proof=True), way
    if way in ("greedy", "rough map"):
        reduced = ps.greedy(model, n_modes=n_modes, n_anchors=n_anchors).reduced
    else:
        weights = None
        n_values = len(model.problem.names) * model.n_nodes
        if way == "weights":
            weights = 10.0 ** rng.uniform(-2, 2, n_values)
        snapshots = ps.solve_many(model, ps.sample(model, 2 * n_modes + 4, rng=int(rng.integers(99))))
        reduced = ps.reduce(
            model,
            ps.pod(snapshots, n_modes=n_modes, weights=weights),
            weighting=str(rng.choice(["rows", "none"])) if way == "rows" else "solve",
            n_anchors=n_anchors,
        )
    recipe = "linear" if way == "rough map" else "polynomial"
    return ps.fit(reduced, recipe, n_labels=100), way


@dataclass
class Trial:
    """Errors of answers against full solves, over the bounds that came with them."""

    model: object
    surrogate: ps.Surrogate
    options: dict = field(default_factory=dict)
    solved: dict[bytes, tuple[np.ndarray, dict]] = field(default_factory=dict)

    def truth(self, mu: np.ndarray) -> tuple[np.ndarray, dict]:
        """Values and quantities of a full solve."""
        key = mu.tobytes()
        if key not in self.solved:
            solution = self.model.solve(mu)
            self.solved[key] = (solution.values, solution.quantities)
        return self.solved[key]

    def __call__(self, mus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest of error / bound, absolute, relative and of quantities; and which bounds are proven."""
        answer = self.surrogate(mus, **self.options)
        weights = self.surrogate.basis.weights
        weights = np.ones(answer.values.shape[1]) if weights is None else weights
        bounds, kinds = answer.bounds, np.array(answer.bound_kind)
        require(set(kinds) <= {"proven", "probable", "estimated"}, f"the kinds are {set(kinds)}")
        require(np.array_equal(kinds == "proven", bounds.rigorous), "bound_kind and rigorous disagree")
        require(not np.any(np.isnan(bounds.values) | np.isnan(bounds.relative)), "a bound is NaN")
        ratios = np.zeros(len(mus))
        for i, mu in enumerate(mus):
            values, quantities = self.truth(mu)
            error = np.sqrt(np.sum(weights * (np.asarray(answer.values[i], dtype=float) - values) ** 2))
            size = np.sqrt(np.sum(weights * values**2))
            pairs = [(error, bounds.values[i]), (error, bounds.relative[i] * size)]
            for name, value in quantities.items():
                gap = abs(float(answer.quantities[name][i]) - float(value))
                pairs.append((gap, float(answer.quantity_bounds[name][i])))
            ratios[i] = max(0.0 if e == 0 or b == np.inf else e / b if b > 0 else np.inf for e, b in pairs)
        return ratios, bounds.rigorous


def search(
    draw: Draw, trial: Callable, mus: np.ndarray, space: ps.pde.ParameterSpace
) -> tuple[float, float, np.ndarray]:
    """The largest ratio of proven bounds at the parameters and uphill from the worst of them; of guessed ones; where."""
    p, rng = len(space.scalars), draw.rng
    ratios, proven = trial(mus)
    worst = [np.max(ratios[proven], initial=0.0), np.max(ratios[~proven], initial=0.0)]
    where = mus[int(np.argmax(np.where(proven, ratios, -1)))]
    for start in np.argsort(-ratios)[:3]:
        best, mu = ratios[start], mus[start]
        for step in range(_STEPS):
            unit = space.to_unit(mu[None])
            around = np.clip(unit + rng.normal(size=(4, p)) * 0.2 * 0.3**step, 0, 1)
            near = space.from_unit(around)
            found, rigorous = trial(near)
            if np.max(found[rigorous], initial=0.0) > worst[0]:
                worst[0] = np.max(found[rigorous])
                where = near[int(np.argmax(np.where(rigorous, found, -1)))]
            worst[1] = max(worst[1], np.max(found[~rigorous], initial=0.0))
            if np.max(found) > best:
                best, mu = np.max(found), near[int(np.argmax(found))]
    return float(worst[0]), float(worst[1]), where


@family("14E bounds", refused=True, n_cases=7)
def bounds_proven(draw: Draw) -> str:
    """Random affine problems: no proven bound below the error, of the field or of a quantity, in either precision."""
    made = affine_problem(draw, tame=draw.seed % 7 == 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        nodes = ps.scatter(made.problem.domain, **made.options)
        model = ps.discretize(made.problem, nodes)
        surrogate, way = _certified(draw, model)
    if surrogate.reduced is None:
        return f"{way}: no certificate"
    mus = made.parameters(draw.rng, model.parameters, 16)
    said = []
    solved: dict = {}
    for options in ({}, {"dtype": np.float32}):
        trial = Trial(model, surrogate, options, solved)
        proven, guessed, where = search(draw, trial, mus, model.parameters)
        name = "float32" if options else f"{way}, {surrogate.basis.n_modes} modes: error at most"
        said.append(f"{name} {proven:.2g} of proven bounds, {guessed:.2g} of others")
        require(
            proven <= 1 + _ROUNDING, f"{'; '.join(said)}; at {dict(zip(model.parameters.names, where, strict=True))}"
        )
    for tolerance in (1e-3, 1e-9):  # repaired answers
        trial = Trial(model, replace(surrogate, solver=model), {"tolerance": tolerance}, solved)
        ratios, proven = trial(mus[:8])
        worst = np.max(ratios[proven], initial=0.0)
        require(worst <= 1 + _ROUNDING, f"{way}: repaired answers err by {worst:.2g} of their proven bounds")
    with tempfile.TemporaryDirectory() as folder:
        try:
            again = ps.load(ps.save(surrogate, Path(folder) / "s.parasol"))
        except ps.ParasolError as refusal:  # of functions with cases, which are evaluated by SymPy
            require("files cannot hold such a function" in str(refusal), f"refused: {refusal}")
            again = surrogate
    ratios, proven = Trial(model, again, {}, solved)(mus)
    worst = np.max(ratios[proven], initial=0.0)
    require(worst <= 1 + _ROUNDING, f"{way}: loaded, answers err by {worst:.2g} of their proven bounds")
    return "; ".join(said)


@family("14E bounds", refused=True)
def bounds_of_any_coefficients(draw: Draw) -> str:
    """A certificate bounds the error of whatever coefficients it is given, those that aim at its weak side too."""
    made = affine_problem(draw, plane=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        model = ps.discretize(made.problem, ps.scatter(made.problem.domain, **made.options))
        reduced = ps.greedy(model, n_modes=int(draw.rng.integers(1, 7)), n_anchors=20).reduced
    mus = made.parameters(draw.rng, model.parameters, 20)
    _constants_hold(model, reduced, mus)
    truth = np.array([model.solve(mu).values for mu in mus])
    best = reduced.basis.project(truth)
    worst = 0.0
    for size in (0.0, 1e-6, 0.1, 10.0):
        c = best + size * np.linalg.norm(best, axis=1)[:, None] * draw.rng.normal(size=best.shape)
        bounds = reduced.certify(mus, c)
        error = np.linalg.norm(truth - reduced.basis.lift(c), axis=1)
        relative = error / np.linalg.norm(truth, axis=1)
        here = bounds.rigorous
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.maximum(error / bounds.values, relative / bounds.relative)[here]
        worst = max(worst, float(np.max(ratios, initial=0.0)))
        require(
            worst <= 1 + _ROUNDING, f"with coefficients off by {size:g}, the error is {worst:.4g} of a proven bound"
        )
    return f"error at most {worst:.2g} of a proven bound at {len(mus)} parameters"


def _constants_hold(model, reduced, mus: np.ndarray) -> None:
    """Proven constants are below the smallest singular values, which dense matrices tell."""
    form = affine_form(model)
    free = ~(model.terms.pattern.stated & ~np.any(form.loads != 0, axis=0))  # the others are zero in every solution
    constants = reduced.certificate.constants(reduced.operator_theta(mus))
    stretch = prepare(model, n_anchors=20).covered.stretch  # as of `ps.greedy`: the norm that the constants are about
    larger = np.eye(model.n_unknowns) if stretch is None else stretch(np.eye(model.n_unknowns))
    larger = larger[np.ix_(free, free)]
    require((stretch is not None) == bool(reduced.strong), "a larger norm, but no residuals in it, or the other way")
    for mu, frame, sigma in zip(
        mus[constants.rigorous], constants.choice[constants.rigorous], constants.sigma[constants.rigorous], strict=True
    ):
        a, reference = (model.operator(m).toarray()[np.ix_(free, free)] for m in (mu, reduced.residuals[frame].mu))
        seen = larger @ np.linalg.solve(reference, a) @ np.linalg.inv(larger)
        least = float(np.linalg.svd(seen, compute_uv=False)[-1])
        require(
            sigma <= least * (1 + 1e-6),
            f"a proven constant is {sigma:.4g}, the smallest singular value {least:.4g} at {mu}",
        )


# ---- levels ----------------------------------------------------------------------------------------------------------
@dataclass
class Pool:
    """Misses of bounds that hold at a level, with what is expected of them, over all seeds of one run."""

    n: int = 0
    misses: int = 0
    expected: float = 0.0
    variance: float = 0.0

    def add(self, misses: int, n: int, miss: float, spread: float) -> None:
        """So many misses of n fresh parameters, where one calibration set has a probability `miss` ± `spread`."""
        self.n, self.misses, self.expected = self.n + n, self.misses + misses, self.expected + n * miss
        self.variance += n * miss * (1 - miss) + n * (n - 1) * spread**2

    @property
    def words(self) -> str:
        """The coverage and what is expected of it."""
        return f"{self.n - self.misses} of {self.n} ({1 - self.misses / self.n:.4f}), at least {1 - self.expected / self.n:.4f} expected"

    def check(self, name: str) -> None:
        """More misses than chance allows?"""
        most = self.expected + _FALSE_ALARM * np.sqrt(self.variance) + 2
        require(self.misses <= most, f"{name}: covered {self.words}, {self.misses} misses, chance allows {most:.0f}")


POOLS: dict[str, Pool] = defaultdict(Pool)


def _pooled(name: str, here: Pool) -> str:
    """This seed's coverage, and that of all seeds of the run so far."""
    here.check("this seed")
    pool = POOLS[name]
    pool.n, pool.misses = pool.n + here.n, pool.misses + here.misses
    pool.expected, pool.variance = pool.expected + here.expected, pool.variance + here.variance
    pool.check(f"{name}, all seeds of this run")
    return f"covered {here.words}; all seeds of this run: {pool.words}"


def _field(draw: Draw):
    """A function of two or three parameters with values in R^20, smooth, with a kink or with a resonance, on the unit cube."""
    rng = draw.rng
    p = int(rng.integers(1, 4))
    t = np.linspace(0, 1, 20)
    w, phase = rng.uniform(0.5, 3, (p, 1)), rng.uniform(0, 3)
    kind = str(rng.choice(["smooth", "kink", "peak", "noise"]))
    at = rng.uniform(0.2, 0.8, p)

    def solve(mu: np.ndarray) -> np.ndarray:
        base = 2 + np.sin(mu @ (w * (1 + t)) + phase)
        if kind == "kink":
            base = base + np.abs(mu[..., :1] - at[0]) * t
        if kind == "peak":
            base = base / (0.02 + np.sum((mu - at) ** 2, axis=-1, keepdims=True))
        if kind == "noise":  # that no map can learn
            base = base + 1e-2 * np.sin(1e4 * (mu @ (w * (1 + t))))
        return base

    return p, solve, kind


@family("14E levels", n_cases=4)
def bounds_calibrated(draw: Draw) -> str:
    """Calibrated bounds of data: over many sets and fresh parameters the level is kept."""
    rng = draw.rng
    p, solve, kind = _field(draw)
    level = float(draw.turn([0.9, 0.95, 0.8, 0.9]))
    case = draw.turn(["rows", "rows", "calibration", "groups"])
    recipe = str(rng.choice(["polynomial", "linear"]))
    scale = 10.0 ** int(rng.integers(-3, 4))
    pools = {name: Pool() for name in ("field", "mean", "first")}  # each holds at the level by itself
    kinds: set[str] = set()
    for _ in range(12):
        n = int(rng.integers(60, 110))
        mus = rng.uniform(0, 1, (n, p))
        fresh = rng.uniform(0, 1, (60, p))
        groups, together = None, 1
        if case == "groups":  # trajectories: rows of one are alike
            together = 5
            mus = np.repeat(rng.uniform(0, 1, (n, p)), together, axis=0)
            fresh = np.repeat(rng.uniform(0, 1, (60, p)), together, axis=0)
            steps = np.tile(np.linspace(0, 1, together), n)
            mus[:, -1] = steps
            fresh[:, -1] = np.tile(np.linspace(0, 1, together), 60)
            if p == 1:
                continue
            groups = np.repeat(np.arange(n), together)
        data = scale * solve(mus)
        ranges = {f"p{j}": (0.0, 1.0) for j in range(p)}
        quantities = {"mean": np.full(20, 0.05), "first": np.eye(20)[0]}
        options = {"ranges": ranges, "quantities": quantities, "tolerance": 1e-3, "rng": int(rng.integers(1000))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.ParasolWarning)
            if case == "calibration":
                kept = ps.reduction.as_snapshots(mus[: n // 2], data[: n // 2])
                rest = ps.reduction.as_snapshots(mus[n // 2 :], data[n // 2 :])
                surrogate = ps.fit(rest, recipe, basis=ps.pod(rest, tolerance=1e-3), calibration=kept, level=level)
            else:
                surrogate = ps.fit_snapshots(mus, data, recipe, level=level, groups=groups, **options)
        if surrogate.conformal is None:
            continue
        answer = surrogate(fresh, extrapolate=True)
        truth = scale * solve(fresh)
        error, size = (np.linalg.norm(v, axis=1) for v in (answer.values - truth, truth))
        kinds |= set(answer.bound_kind)
        require(not np.any(answer.bounds.rigorous), "a calibrated bound is called proven")
        out = np.asarray(answer.extrapolated)
        require(np.all(np.isinf(answer.bounds.relative[out])), "a finite bound where nothing is promised")
        missed = {"field": error > np.minimum(answer.bounds.relative * size, answer.bounds.values) * (1 + _ROUNDING)}
        for name, weights in quantities.items() if surrogate.quantities is not None else ():
            gap = np.abs(answer.quantities[name] - truth @ weights)
            missed[name] = gap > answer.quantity_bounds[name] * (1 + _ROUNDING) + 1e-13 * size
        n_cal = surrogate.conformal.n_calibration
        rank = int(np.ceil((n_cal + 1) * level - 1e-9))
        miss = 1 - rank / (n_cal + 1)
        for name, which in missed.items():
            rows = which.reshape(-1, together).any(axis=1)
            pools[name].add(int(rows.sum()), len(rows), miss, float(np.sqrt(miss * (1 - miss) / (n_cal + 2))))
    if not pools["field"].n:
        return f"{case}: no bounds"
    require(kinds == {"calibrated"}, f"the kinds of the bounds are {kinds}")
    said = [_pooled(f"level {level:g}, {name}", pool) for name, pool in pools.items() if pool.n]
    return f"{kind} {case} at {level:g}: {said[0]}"


class OwnSolver:
    """A solver of one's own, from a function of the unit cube."""

    def __init__(self, p: int, solve: Callable):
        """`solve` takes points of the unit cube."""
        self.parameters = ps.pde.ParameterSpace(ps.parameters(**{f"p{j}": (0.0, 1.0) for j in range(p)}))
        self._solve = solve

    fingerprint = "the adversary's"

    def solve(self, mu: np.ndarray) -> np.ndarray:
        """One solution."""
        return self._solve(np.asarray(mu, dtype=float))


@family("14E levels")
def bounds_after_learning(draw: Draw) -> str:
    """What `learn` calibrates keeps its level on fresh solves, also where it tried twice."""
    rng, here, met = draw.rng, Pool(), 0
    for _ in range(3):
        p, solve, _kind = _field(draw)
        tolerance = float(10.0 ** rng.uniform(-3, -1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.ParasolWarning)
            surrogate = ps.learn(
                OwnSolver(p, solve),
                tolerance,
                recipe=str(rng.choice(["polynomial", "gaussian process"])),
                solves=int(rng.integers(60, 160)),
                rng=int(rng.integers(1000)),
            )
        account = surrogate.facts["learn"]
        _agrees(account)
        if surrogate.conformal is None:
            continue
        fresh = rng.uniform(0, 1, (150, p))
        truth = solve(fresh)
        error = np.linalg.norm(surrogate(fresh).values - truth, axis=1) / np.linalg.norm(truth, axis=1)
        bound, level = surrogate.certify(fresh).relative, surrogate.conformal.level
        require(bool(np.all(bound == account["bound"])), f"the account says {account['bound']}, the answers {bound[0]}")
        met += account["met"]
        n_cal = surrogate.conformal.n_calibration
        here.add(
            int(np.sum(error > bound * (1 + _ROUNDING))),
            len(fresh),
            1 - level,
            float(np.sqrt(level * (1 - level) / n_cal)),
        )
    return f"{met} met; " + (_pooled("learn", here) if here.n else "no bounds")


# ---- met -------------------------------------------------------------------------------------------------------------
def _agrees(account: dict, said: str = "") -> None:
    """The words of an account agree with its numbers."""
    tolerance, bound, error = account["tolerance"], account["bound"], account["discretisation_error"]
    whole = bound + (error or 0.0) if account["total"] else bound
    if account["met"]:
        require(whole <= tolerance, f"met, but the bound is {bound:.3g} for {tolerance:.3g}")
        require(not account["limit"], f"met, but limited by {account['limit']}")
        if account["certificate"] == "conformal":
            require(account["level"] >= 0.95, f"met at the level {account['level']}")
        return
    require(bool(account["limit"]), "not met, limited by nothing")
    if whole <= tolerance:
        reasons = ("confirmation", "level", "failed solves")
        require(any(r in account["limit"] for r in reasons), f"not met with {whole:.3g}, limited by {account['limit']}")
    if said:
        require("not met" in said and f"{tolerance:g}" in said, f"not met, but it is said: {said}")
        require(f"limited by {account['limit']}" in said, f"limited by {account['limit']}, but it is said: {said}")
        if np.isfinite(bound):
            require(f"{bound:.1e}" in said, f"the bound is {bound:.3g}, but it is said: {said}")


@family("14E met", refused=True, n_cases=4)
def met_is_kept(draw: Draw) -> str:
    """Where `learn` says met, fresh full solves agree: random ones, corners, hats; where not, its words fit its numbers."""
    rng = draw.rng
    made = affine_problem(draw, tame=bool(rng.uniform() < 0.8))
    tolerance = float(10.0 ** -draw.turn([2, 3, 4, 3]))
    total = draw.turn([False, True, False, False])
    options = {"solves": int(rng.integers(5, 60)) if draw.turn([False, False, False, True]) else 80}
    if not total:
        options |= made.options
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        surrogate = ps.learn(
            made.problem, tolerance, total=total, recipe="polynomial", rng=int(rng.integers(100)), **options
        )
    account, model = surrogate.facts["learn"], surrogate.solver
    _agrees(account, next((str(w.message) for w in caught if "not met" in str(w.message)), ""))
    mus = made.parameters(rng, model.parameters, 40)
    truth = np.array([model.solve(mu).values for mu in mus])
    answer = surrogate(mus, extrapolate=True)
    error = np.linalg.norm(answer.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    wrong = error > answer.bounds.relative * (1 + _ROUNDING)
    proven = answer.bounds.rigorous
    require(not np.any(wrong & proven), f"{np.sum(wrong & proven)} proven bounds are too small")
    random = error[:40]
    said = f"{'met' if account['met'] else 'not met'} at {tolerance:g} ({account['certificate']}), bound {account['bound']:.1e}: "
    said += f"{np.sum(random > tolerance)} of {len(random)} random and {np.sum(error[40:] > tolerance)} other errors above, at most {error.max():.1e}"
    if not account["met"]:
        return said
    # of random parameters at most 0.05 may be above where the bound is calibrated, none where proven but at resonances between samples
    most = 8 if account["certificate"] == "conformal" else 2
    require(np.sum(random > tolerance) <= most, said)
    unsaid = (error > tolerance) & (answer.bounds.relative <= tolerance)
    if account["certificate"] != "conformal":
        require(not np.any(unsaid & proven), f"{said}: {np.sum(unsaid & proven)} of them unsaid by their own bounds")
    return said
