"""Attacks on stores (section E of issue 14): change anything, learn again, and compare with a run that knows no store."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sympy import Max, cos, sin

import parasol as ps
from adversary.families import Draw, family
from adversary.problems import Wrong, require


# ---- what is compared ------------------------------------------------------------------------------------------------
def _same(name: str, stored: ps.Surrogate, fresh: ps.Surrogate, rng) -> None:
    """Both surrogates have the same nodes, names, numbers and account."""
    for one, other, what in (
        (stored.layout.points, fresh.layout.points, "nodes"),
        (stored.layout.times, fresh.layout.times, "times"),
    ):
        same = (one is None and other is None) or (one is not None and other is not None and np.array_equal(one, other))
        require(same, f"{name} changed: the {what} are those of another run")
    require(stored.parameters.names == fresh.parameters.names, f"{name} changed: names {stored.parameters.names}")
    limits = [s.parameters.limits for s in (stored, fresh)]
    require(np.array_equal(*limits), f"{name} changed: the ranges are {limits[0].tolist()}")
    space, n = fresh.parameters, fresh.n_parameters
    mus = np.empty((6, n))
    mus[:, : len(space.scalars)] = space.answered.from_unit(rng.uniform(size=(6, len(space.scalars))))
    mus[:, len(space.scalars) :] = rng.normal(size=(6, n - len(space.scalars))) / 10
    answers = [s(mus, extrapolate=True) for s in (stored, fresh)]
    values = [a.values for a in answers]
    off = float(np.max(np.abs(values[0] - values[1])) / np.max(np.abs(values[1])))
    if any("with other ranges, from the store" in note for note in stored.facts["learn"]["notes"]):
        # it has learned from more, and says so: both are as good as they promise
        promised = sum(s.facts["learn"]["bound"] for s in (stored, fresh))
        require(off <= 10 * promised, f"{name} changed: off by {off:.1e} with bounds of {promised:.1e} together")
        return
    require(off <= 1e-12, f"{name} changed: the store answers otherwise, off by {off:.1e}")
    for what in ("relative", "values"):
        bounds = [getattr(a.bounds, what) for a in answers] if fresh.has_bounds else [0.0, 0.0]
        require(np.allclose(*bounds, rtol=1e-9), f"{name} changed: bounds {bounds[0]} instead of {bounds[1]}")
    require(stored.has_bounds == fresh.has_bounds, f"{name} changed: one of two surrogates has bounds")
    for quantity, value in answers[1].quantities.items():
        require(np.allclose(answers[0].quantities[quantity], value, rtol=1e-11), f"{name} changed: {quantity} differs")
    accounts = [s.facts["learn"] for s in (stored, fresh)]
    for key in (
        "met",
        "tolerance",
        "total",
        "bound",
        "certificate",
        "discretisation_error",
        "n_nodes",
        "n_modes",
        "map",
    ):
        one, other = (a[key] for a in accounts)
        same = one == other or (isinstance(one, float) and bool(np.isclose(one, other, rtol=1e-9)))
        require(same, f"{name} changed: the account says {key} {one} instead of {other}")
    require(stored.facts.get("fingerprint") == fresh.facts.get("fingerprint"), f"{name} changed: another fingerprint")


def _attack(draw: Draw, learn: Callable, base: dict, changes: dict[str, dict], name: str) -> str:
    """Learn, change, learn again in the same store, change back; each time what a run without a store gives."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", ps.ParasolWarning)
        store = Path(folder) / "store"
        first = learn(**base, store=store)
        after = base | changes[name]
        stored, fresh = learn(**after, store=store), learn(**after)
        _same(name, stored, fresh, draw.rng)
        again = learn(**base, store=store)
        _same(f"nothing ({name} and back)", again, first, draw.rng)
        new = again.facts["learn"]["new_solves"]
        require(new == 0, f"{name} changed and back: {new} full solves were made again")
    solves = stored.facts["learn"]["solves"]
    return f"{name} changed: as without a store, {stored.facts['learn']['new_solves']} of {solves} solves new"


# ---- steady problems in the plane ------------------------------------------------------------------------------------
def _domain(shape: str, hole, radius: float, cut: float) -> ps.space.Domain:
    angle = 2 * np.pi * np.arange(24) / 24
    wobble = 1 + 0.1 * np.cos(3 * angle)
    wobble[7] += radius / 4
    whole = {
        "box": lambda: ps.Box((-1.0, -1.0), (1.0, 1.0)) - ps.Disc(hole, radius),
        "disc": lambda: (
            ps.Disc((0.0, 0.0), 1.0) - ps.Box(tuple(np.subtract(hole, radius)), tuple(np.add(hole, radius)))
        ),
        "star": lambda: ps.Star(f"1 + {radius / 3:.4f}*cos(3*theta + {hole[0]})"),
        "curve": lambda: ps.Curve(np.stack([wobble * np.cos(angle + hole[1]), wobble * np.sin(angle + hole[1])], 1)),
        "polygon": lambda: ps.Polygon([(-1, -1), (1, -1), (1, hole[0]), (hole[1], 1), (-1, 1)]),
        "implicit": lambda: ps.Implicit(f"x**2 + y**2*{1 + radius} - 1 + {hole[0]}*x*y", ((-1.6, -1.6), (1.6, 1.6))),
    }[shape]()
    return whole.named(inlet=f"x <= {cut}")


def _plate(
    *,
    shape="box",
    hole=(0.3, 0.1),
    radius=0.25,
    cut=-0.4,
    a=(1.0, 1.4),
    b=(0.5, 1.0),
    order="ab",
    factor=1.0,
    source=1.0,
    inlet=0.2,
    kind="neumann",
    kink=0.0,
    settings=None,
    nodes=None,
    point=(-0.7, 0.0),
    store=None,
    **wish,
) -> ps.Surrogate:
    x, y = ps.coordinates("x y")
    declared = ps.parameters(**{name: {"a": a, "b": b}[name] for name in order})
    p, q = (declared[order.index(name)] for name in "ab")
    u = ps.unknown("u", x, y)
    other = {"neumann": ps.Neumann(q), "robin": ps.Robin(1, q), "dirichlet": ps.Dirichlet(q * x)}[kind]
    options = {} if settings is None else {"settings": {"default": ps.Settings(**settings)}}
    problem = ps.Problem(
        _domain(shape, hole, radius, cut),
        ps.Eq(-p * ps.laplacian(u) + factor * u, source + kink * Max(0, p - 1.3) * cos(x)),
        {"inlet": ps.Dirichlet(inlet), "*": other},
        quantities={"mean": ps.Average(), "there": ps.PointValue(point)},
        **options,
    )
    return ps.learn(problem, recipe="polynomial", store=store, **wish)


_PLATE = {
    "a hole": {"hole": (-0.2, 0.3)},
    "a part": {"cut": 0.1},
    "a radius": {"radius": 0.2500001},
    "a range": {"a": (1.0, 1.5)},
    "a scale": {"a": (1.0, 1.4, "log")},
    "the order of parameters": {"order": "ba"},
    "an equation": {"factor": 1.3},
    "a source": {"source": 1.0000001},
    "condition data": {"inlet": 0.25},
    "a kind of condition": {"kind": "robin"},
    "a kink in the parameter": {"kink": 0.3},
    "the number of nodes": {"n_nodes": 131},
    "the seed": {"rng": 5},
    "the tolerance": {"tolerance": 1e-3},
    "total": {"total": True},
    "the degree": {"settings": {"degree": 3}},
    "the kernel": {"settings": {"degree": 2, "kernel": ps.space.PHS(5)}},
    "the stencils": {"settings": {"degree": 2, "stencil_size": 18}},
    "the rows of conditions": {"settings": {"degree": 2, "neumann": "one-sided"}},
    "a quantity": {"point": (-0.7, 0.3)},
    "the shape": {"shape": "implicit"},
}


@family("14E stores", n_cases=len(_PLATE))
def stores_of_steady_problems(draw: Draw) -> str:
    """A plate with a hole: after any change the store gives what a fresh run gives, and its own solves after going back."""
    rng = draw.rng
    name = draw.turn(list(_PLATE))
    shapes = ["box", "disc"] if name == "a hole" else ["box", "disc", "star", "curve", "polygon"]
    base = {
        "shape": str(rng.choice(shapes)),
        "factor": draw.uniform(0.5, 1.2),
        "n_nodes": int(rng.integers(80, 130)),
        "settings": {"degree": 2},
        "tolerance": 1e-2,
        "rng": int(rng.integers(4)),
    }
    return f"{base['shape']}: " + _attack(draw, _plate, base, _PLATE, name)


# ---- in time ---------------------------------------------------------------------------------------------------------
def _heat(
    *,
    times=(0.0, 0.05, 0.1),
    start=1.0,
    wall=0.0,
    power=0.0,
    a=(0.5, 1.0),
    settings=None,
    step=None,
    integrator=None,
    kernel=None,
    n_nodes=25,
    store=None,
    **wish,
) -> ps.Surrogate:
    (x,), t = ps.coordinates("x"), ps.time()
    u, (p,) = ps.unknown("u", x, t), ps.parameters(a=a)
    problem = ps.Problem(
        ps.Box((0.0,), (1.0,)),
        ps.Eq(u.diff(t), p * u.diff(x, 2) + power * u**2),
        ps.Dirichlet(wall * t),
        initial=start * sin(np.pi * x),
        times=list(times),
        quantities={"mean": ps.Average()},
    )
    model = ps.discretize(problem, ps.lattice(problem.domain, n_nodes), step=step, integrator=integrator, kernel=kernel)
    return ps.learn(model=model, recipe="polynomial", store=store, **wish)


_HEAT = {
    "the times": {"times": (0.0, 0.05, 0.11)},
    "the number of times": {"times": (0.0, 0.1)},
    "the start": {"start": 1.01},
    "the wall": {"wall": 0.5},
    "the range": {"a": (0.5, 1.1)},
    "the nodes": {"n_nodes": 27},
    "a term": {"power": 1.0},
    "the step": {"step": 0.01},
    "the integrator": {"integrator": "esdirk4"},
    "the kernel": {"kernel": ps.space.PHS(7)},
    "the tolerance": {"tolerance": 1e-3},
    "the seed": {"rng": 3},
}


@family("14E stores", n_cases=len(_HEAT))
def stores_of_problems_in_time(draw: Draw) -> str:
    """The same for problems in time, which are learned from samples."""
    base = {"tolerance": 1e-2, "wall": draw.uniform(0, 0.4), "start": draw.uniform(0.6, 1.0)}
    return _attack(draw, _heat, base, _HEAT, draw.turn(list(_HEAT)))


# ---- solvers of one's own --------------------------------------------------------------------------------------------
class Oven:
    """A user's solver, with numbers in its attributes, in a function it holds, in an array, and in a nested object."""

    def __init__(self, gain, profile, shape, nested):
        """Anything may be inside."""
        self.parameters = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0)))
        self.gain, self.profile, self.shape, self.nested = gain, profile, shape, nested

    def solve(self, mu):
        """sin, mostly."""
        t = np.linspace(0, 2, 20)
        return self.gain * np.sin(mu[0] * t + mu[1]) + self.shape(t) + self.profile + self.nested["depth"][0]


class Kiln(Oven):
    """Another with other code."""

    def solve(self, mu):
        """sin and cos."""
        return super().solve(mu) + 0.1 * np.cos(mu[0])


def _shape(k: float) -> Callable:
    return lambda t: 2 + k * t


def _own(*, kind=Oven, gain=1.0, at=0, bump=0.0, slope=0.1, depth=1.0, high=3.0, names="ab", store=None, **wish):
    profile = np.zeros(20)
    profile[at] = bump
    solver = kind(gain, profile, _shape(slope), {"depth": [depth, None]})
    solver.parameters = ps.pde.ParameterSpace(ps.parameters(**{names[0]: (1.0, high), names[1]: (0.0, 1.0)}))
    return ps.learn(solver, recipe="polynomial", store=store, **wish)


_OWN = {
    "a number": {"gain": 1.1},
    "an array": {"bump": 0.5, "at": 13},
    "a closure": {"slope": 0.11},
    "something inside a dictionary": {"depth": 1.5},
    "the code": {"kind": Kiln},
    "the range": {"high": 3.1},
    "the names": {"names": "ac"},
    "the tolerance": {"tolerance": 1e-3},
    "the seed": {"rng": 7},
}


@family("14E stores", n_cases=len(_OWN))
def stores_of_ones_own_solver(draw: Draw) -> str:
    """The same for solvers of one's own: numbers, arrays, closures, nested objects, code."""
    base = {"tolerance": 1e-2, "gain": draw.uniform(0.8, 1.0), "rng": int(draw.rng.integers(3))}
    return _attack(draw, _own, base, _OWN, draw.turn(list(_OWN)))


@family("14E stores", n_cases=4)
def stores_of_snapshots(draw: Draw) -> str:
    """`solve_many` into one store: the same numbers, or a refusal, when model, parameters or order have changed."""
    rng = draw.rng
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    (a,) = ps.parameters(a=(1.0, 2.0))

    def model(c: float = 1.0, wall: float = 0.3, n: int = 20, seed: int = 0):
        problem = ps.Problem(ps.Box((0.0,), (1.0,)), ps.Eq(-a * u.diff(x, 2) + c * u, 1), ps.Dirichlet(wall))
        return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n, rng=seed))

    mus = rng.uniform(1, 2, (9, 1))
    what, options, others = draw.turn(
        [
            ("the equation", {"c": 1.0001}, mus),
            ("the condition", {"wall": 0.3001}, mus),
            ("the nodes", {"seed": 1, "n": 21}, mus),
            ("the parameters", {}, mus[::-1]),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "snapshots"
        ps.solve_many(model(), mus, store=store, chunk_size=4)
        fresh = ps.solve_many(model(**options), others)
        try:
            found = ps.solve_many(model(**options), others, store=store, chunk_size=4)
        except ps.ParasolError as refusal:
            require("\n" not in str(refusal), f"a refusal of several lines: {refusal}")
            return f"{what} changed: refused, {str(refusal)[:120]}"
        if not np.array_equal(found.solutions, fresh.solutions):
            raise Wrong(f"{what} changed: the store answers with what it held")
    return f"{what} changed: the same numbers"
