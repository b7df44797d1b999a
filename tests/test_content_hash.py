"""The content hash: any field of anything that is hashed changes it, nothing else does."""

import collections
import copy
import dataclasses
import functools
import os
import pickle
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
import scipy.interpolate
import scipy.spatial
import scipy.stats
import sympy
from sympy import exp, sin

import parasol as ps
from parasol.cache.content import content_hash
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.linear import Linear
from parasol.fitting.polynomial import Polynomial
from parasol.pde.parameters import FunctionParameter, Parameter
from parasol.reduction.fingerprints import fingerprint
from parasol.runtime.basis import Basis
from parasol.runtime.random_fields import GaussianField, RandomField, SphereField
from parasol.space.geometry.domain import Domain
from parasol.space.kernels import Kernel

X, Y = ps.coordinates("x y")
CORNERS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
SIMPLEX = (CORNERS, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])


def models():
    """A linear model with everything, one that is nonlinear and in time, one with a function parameter."""
    u, (a, b) = ps.unknown("u", X, Y), ps.parameters(a=(1.0, 2.0), b=(0.5, 1.0, "log"))
    plate = ps.Problem(
        (ps.Box((-1, -1), (1, 1)) - ps.Disc(radius=0.3).named("hole")).named(inlet="x <= -0.9"),
        ps.Eq(-ps.laplacian(u) * a + u.diff(X) * exp(b * X), 1),
        {"inlet": ps.Dirichlet(X), "hole": ps.Robin(1, 2, a), "*": ps.Neumann(0)},
        exact=u.func(X, Y) * 0 + X,
        name="plate",
        settings={"default": ps.Settings(n_nodes=150, kernel=ps.space.IMQ(2.0))},
        quantities={
            "mean": ps.Average(),
            "flow": ps.Flux("inlet", X),
            "there": ps.PointValue((0.5, 0.5)),
            "all": ps.Integral(),
        },
    )
    t = ps.time()
    v = ps.unknown("v", X, t)
    burgers = ps.Problem(
        ps.Box(0.0, 1.0),
        ps.Eq(v.diff(t) + v * v.diff(X), a * v.diff(X, 2)),
        ps.Dirichlet(0),
        initial=sin(3 * X),
        times=(0.0, 0.1),
    )
    x, y, z = ps.coordinates("x y z")
    w, law = ps.unknown("w", x, y, z), FunctionParameter("g", SphereField(2))
    ball = ps.Problem(ps.Ball((0, 0, 0), 1.0), ps.Eq(-ps.laplacian(w), 0), ps.Dirichlet(law))
    return [
        ps.discretize(plate, ps.scatter(plate.domain, n_nodes=150)),
        ps.discretize(burgers, ps.scatter(burgers.domain, n_nodes=40), step=0.01),
        ps.discretize(ball, ps.scatter(ball.domain, n_nodes=150)),
    ]


def examples():
    angle = 2 * np.pi * np.arange(20) / 20
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    out = [
        ps.Polygon([(0, 0), (4, 0), (0, 3)]),
        ps.Star("1 + 0.1*sin(3*theta)", (0.5, 0.0)),
        ps.Curve(circle),
        ps.Implicit("x**2 + y**2 - 1", ((-1.5, -1.5), (1.5, 1.5))),
        ps.Box((0, 0), (4, 4), periodic=("x",)) - ps.Disc((2, 2), 0.5),
        ps.Surface(SIMPLEX),
        ps.lattice(ps.Box((0, 0), (1, 1)).regions(left=X < 0.5, disc=ps.Disc((0.5, 0.5), 5)), (5, 5)),
        *[
            ps.space.MQ(2.0),
            ps.space.IQ(2.0),
            ps.space.Gaussian(2.0),
            ps.space.PHS(5),
            ps.space.Matern(3, 2.0),
            ps.space.Wendland(2, 2.0),
        ],
        *[GaussianProcess(), Linear(), Polynomial(), GaussianField(0.3)],
        Basis(np.eye(4)[:, :2]),
    ]
    try:
        from parasol.fitting.training import NetworkRecipe

        out.append(NetworkRecipe.best())
    except ImportError:
        pass
    return out


def reachable(things):
    """The first instance of every dataclass of parasol's that is hashed with these things."""
    found, waiting, seen = {}, list(things), {}
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, tuple | list):
            waiting += thing
        elif isinstance(thing, dict):
            waiting += thing.values()
        elif dataclasses.is_dataclass(thing):
            found.setdefault(type(thing), thing)
            waiting += [getattr(thing, f.name) for f in dataclasses.fields(thing)]
            waiting += [v for k, v in vars(thing).items() if k in ("forms", "conditions")]  # how equations are read
        elif hasattr(thing, "law"):
            waiting.append(thing.distribution)
    return found


@functools.cache
def hashed():
    made = models()
    for model in made:
        _ = model.problem.forms, model.problem.conditions
    boundary = ps.Box((0, 0), (4, 4), periodic=("x",)) - ps.Disc((2, 2), 0.5)
    from parasol.space.geometry.images import Images

    (a,) = ps.parameters(a=(1.0, 2.0))
    square = {"points": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], "cells": [[0, 1, 2], [1, 3, 2]]}
    matrices = ps.AffineModel(
        {a: np.eye(4)},
        {1: np.ones(4)},
        product=np.eye(4),
        mass=np.eye(4),
        times=[0.0, 1.0],
        fields={"u": [0, 1, 2, 3]},
        quantities={"q": np.ones(4)},
        **square,
    )
    extra = [matrices, boundary, Images(ps.Disc(radius=0.5), np.array([4.0, 0.0])), made[1].parameters]
    return reachable([*made, *examples(), *extra])


def another(value):
    """Something that differs as little as it can."""
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "fiub":
        out = value.copy()
        place = (0,) * value.ndim
        out[place] = np.nextafter(value[place], np.inf) if value.dtype.kind == "f" else 1 - value[place]
        return out
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return float(np.nextafter(value, np.inf)) if np.isfinite(value) else 0.0
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, tuple | list):
        return type(value)([another(value[0]), *value[1:]]) if value else (1,)
    if isinstance(value, dict):
        return {**value, next(iter(value)): another(next(iter(value.values())))} if value else {"x": 1}
    if isinstance(value, sympy.Equality):
        return sympy.Eq(value.lhs, value.rhs + 1)
    if isinstance(value, sympy.logic.boolalg.Boolean):
        return sympy.Not(value)
    if isinstance(value, FunctionParameter):
        return FunctionParameter(value.name, another(value.distribution), on=value.on)
    if isinstance(value, sympy.core.function.AppliedUndef):
        return sympy.Function(str(value.func) + "x")(*value.args)
    if isinstance(value, sympy.Symbol):
        return sympy.Symbol(value.name + "x", real=True)
    if isinstance(value, sympy.Expr):
        return value + 1
    if dataclasses.is_dataclass(value) and dataclasses.fields(value):
        return changed(value, dataclasses.fields(value)[0].name)
    return 12345


def changed(thing, name):
    out = copy.copy(thing)
    object.__setattr__(out, name, another(getattr(thing, name)))
    return out


def kinds(base):
    return {base, *[k for sub in base.__subclasses__() if sub.__module__.startswith("parasol.") for k in kinds(sub)]}


def test_every_field_of_every_hashed_class_changes_the_hash():
    found, silent = hashed(), set()
    for kind, thing in found.items():
        before = content_hash(thing)
        for field in dataclasses.fields(kind):
            if content_hash(changed(thing, field.name)) == before:
                silent.add((kind.__name__, field.name))
    assert silent == {("Pattern", "last"), ("Pattern", "_idle")}  # caches
    # nothing that an answer may depend on was left out above
    needed = {k for base in (Domain, Kernel, RandomField) for k in kinds(base) if dataclasses.is_dataclass(k)}
    assert {k.__name__ for k in needed} - {k.__name__ for k in found} <= {"_Quadric"}
    names = "Problem Model Terms Inputs Nodes Scheme Settings Dirichlet Neumann Robin Form Term Jet ParameterSpace Varying RowFunction"
    names += " NonlinearRows Average Flux PointValue Integral Pattern Images Combination Named Regions Interfaces Basis"
    assert set(names.split()) <= {k.__name__ for k in found}
    assert len({k.__qualname__ for k in found}) == len(found)  # parasol's classes count by their name, not their module


def test_equal_content_has_equal_hashes_also_after_a_pickle_and_after_use():
    for one, other in zip([*models(), *examples()], [*models(), *examples()], strict=True):
        assert content_hash(one) == content_hash(other) == content_hash(pickle.loads(pickle.dumps(one)))
    model = models()[0]
    before = content_hash(model), fingerprint(model)
    model.solve()
    model.problem.domain.distance([[0.5, 0.5]])
    assert (content_hash(model), fingerprint(model)) == before


def hashes():
    model = models()[1]
    return fingerprint(model), content_hash([model, examples(), {"b", "a", "c"}, sin(X) * Y + X, scaled(2), Holder])


def test_hashes_are_the_same_in_every_process():
    code = "import sys; sys.path.insert(0, 'tests'); import test_content_hash as t; print(t.hashes())"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == f"{hashes()}\n"


def test_parameters_count_by_name_range_scale_and_order_not_by_when_they_were_declared():
    make = lambda *rows: [Parameter(name, low, high, scale=scale) for name, low, high, scale in rows]  # noqa: E731
    plain = content_hash(sum(make(("a", 1, 2, "log"), ("b", 0, 1, "linear"))))
    assert content_hash(sum(make(("a", 1, 2, "log"), ("b", 0, 1, "linear")))) == plain
    for other in (
        [("b", 0, 1, "linear"), ("a", 1, 2, "log")],  # the columns of a parameter vector change places
        [("a", 1, 2.5, "log"), ("b", 0, 1, "linear")],
        [("a", 1, 2, "linear"), ("b", 0, 1, "linear")],
        [("a", 1, 2, "log"), ("c", 0, 1, "linear")],
    ):
        assert content_hash(sum(make(*other))) != plain
    assert content_hash(sympy.Symbol("x")) != content_hash(sympy.Symbol("x", real=True))
    assert content_hash(sympy.Float(0.1)) != content_hash(sympy.Rational(1, 10))
    assert content_hash(ps.coordinates("x")[0]) != content_hash(ps.time("x"))


def scaled(factor):
    return lambda mu: factor * mu


@functools.lru_cache
def cached(mu):
    return mu


TWO = [lambda mu: mu, lambda mu: 2 * mu]  # one line of source


class Holder:
    table = np.zeros(3)

    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value

    @functools.cached_property
    def twice(self):
        return 2 * self.value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Tabled(Holder):
    table = np.ones(3)


class Rows(list):
    pass


class Single(list):
    def __reduce__(self):
        return "SINGLE"  # a global of the user's: the name says nothing


SINGLE = Single()


def written(text, **marks):
    names = {}
    exec(text, names)
    for name, value in marks.items():
        setattr(names["f"], name, value)
    return names["f"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TWO[0], TWO[1]),
        (written("def f(mu):\n return mu"), written("def f(mu):\n return mu + 1")),  # no source to be found
        (written("def f(mu):\n return mu + 1"), written("def f(mu):\n return mu + 2")),
        (written("def f(mu):\n return mu + 1"), written("def f(mu):\n return mu - 1")),
        (written("def f(mu, k=1):\n return k"), written("def f(mu, k=2):\n return k")),
        (written("def f(mu, *, k=1):\n return k"), written("def f(mu, *, k=2):\n return k")),
        (written("def f(mu):\n return f.k", k=1), written("def f(mu):\n return f.k", k=2)),
        # made by a package, not to be imported from it
        (written("def f(mu):\n return 1", __module__="numpy"), written("def f(mu):\n return 2", __module__="numpy")),
        (functools.lru_cache(scaled(2)), functools.lru_cache(scaled(3))),
        (Holder(1).get, Holder(2).get),
        (Slotted(1), Slotted(2)),
        (sympy.Integer(2) * X, sympy.Integer(3) * X),
        (sympy.Float(0.1), sympy.Float(0.1000000000000001)),
        ({"a": 1}, {"b": 1}),
        (collections.OrderedDict(a=1), collections.OrderedDict(a=2)),
        (sympy.lambdify([X], X), sympy.lambdify([X], X + 1)),
        (scaled(2.0), scaled(3.0)),
        (functools.partial(np.sum, axis=0), functools.partial(np.sum, axis=1)),
        (scipy.spatial.KDTree(np.eye(3)), scipy.spatial.KDTree(2 * np.eye(3))),  # compiled, with data inside
        (scipy.interpolate.CubicSpline([0, 1, 2], [0, 1, 3]), scipy.interpolate.CubicSpline([0, 1, 2], [0, 1, 4])),
        (scipy.stats.norm(0, 1), scipy.stats.norm(0, 2)),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (np.ma.masked_array([1, 2], [0, 1]), np.ma.masked_array([1, 2], [0, 0])),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.zeros(2), np.zeros(2, dtype=np.int64)),  # the same bytes
        (np.zeros(2), -np.zeros(2)),
        (np.array([None, 1.0]), np.array([None, 2.0])),
        (Holder(1), Holder(2)),
        (Holder(1), Tabled(1)),
        (Rows([1]), Rows([2])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),  # a solver may go through them in order
        ([1, 2], [[1], 2]),
        (["ab", "c"], ["a", "bc"]),
        (1, True),
        ({1, 2}, {1, 3}),
    ],
)
def test_other_content_has_another_hash(one, other):
    assert content_hash(one) == content_hash(copy.copy(one))
    assert content_hash(one) != content_hash(other)


def test_members_of_a_users_module_count_as_the_code_reads_them():
    physics = types.ModuleType("physics")
    exec("def run(mu):\n return K * mu\nK = 1.0\nunused = 0", vars(physics))
    f = eval("lambda mu: physics.run(mu)", {"physics": physics})
    before = content_hash(f)
    physics.unused = 1
    assert content_hash(f) == before
    physics.K = 2.0
    assert content_hash(f) != before


def test_a_module_that_is_held_counts_with_all_that_its_members_read():
    """Its text says nothing of a module that it takes a constant from."""
    settings, physics = types.ModuleType("settings"), types.ModuleType("physics")
    settings.K = 1.0
    physics.settings = settings
    exec("def run(mu):\n return settings.K * mu", vars(physics))
    held = (Holder(physics), (lambda module: lambda mu: module.run(mu))(physics))
    before = list(map(content_hash, held))
    assert before == list(map(content_hash, held))
    settings.K = 2.0
    assert all(one != other for one, other in zip(before, map(content_hash, held), strict=True))


@pytest.mark.parametrize("thing", [threading.Lock(), (i for i in range(3)), np.frompyfunc(lambda x: x, 1, 1), SINGLE])
def test_what_cannot_be_told_by_its_content_is_refused_with_its_place(thing):
    with pytest.raises(ps.ParasolError, match=r"in value\.inner cannot be hashed .*fingerprint="):
        content_hash(Holder({"inner": thing}))


def test_things_within_themselves_and_cached_functions_are_no_trouble():
    one, other = Holder(1), Holder(2)
    one.me, other.me = one, other
    assert content_hash(one) != content_hash(other)
    assert content_hash(cached) == content_hash(cached)
    before = content_hash(one)
    _ = one.twice
    assert content_hash(one) == before


def test_the_matrices_of_a_model_count_beside_what_they_are_made_from():
    model = models()[1]
    for name in ("operator_data", "loads"):
        other = dataclasses.replace(model, terms=changed(model.terms, name))
        assert fingerprint(other) != fingerprint(model)


def test_what_parasol_computes_counts_with_its_version(monkeypatch):
    model = models()[1]
    before = content_hash(Holder(model)), fingerprint(model), fingerprint(Holder(model))
    monkeypatch.setattr(type(model), "computed_by", "parasol 99")
    monkeypatch.setattr("parasol.reduction.fingerprints.__version__", "99")
    after = content_hash(Holder(model)), fingerprint(model), fingerprint(Holder(model))
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_a_class_of_parasol_may_move_to_another_module(monkeypatch):
    condition = ps.Dirichlet(sin(X))
    before = content_hash(condition)
    elsewhere = types.ModuleType("parasol.elsewhere")
    elsewhere.Dirichlet = ps.Dirichlet
    monkeypatch.setitem(sys.modules, "parasol.elsewhere", elsewhere)
    monkeypatch.setattr(ps.Dirichlet, "__module__", "parasol.elsewhere")
    assert content_hash(condition) == before
    assert content_hash(ps.Neumann(sin(X))) != before
