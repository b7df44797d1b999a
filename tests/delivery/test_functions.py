"""Surrogates as functions of JAX and PyTorch: reduced models, quantities, derivatives, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import cos, exp

import estimated
import parasol as ps
from parasol.delivery.traced import Traced, jax_library
from parasol.errors import InputError
from parasol.fitting.fit import surrogate_without_map
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.greedy import search
from parasol.runtime.quantities import Quantities

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def _in_float64():
    with jax.enable_x64(True):
        yield


def bars():
    """Symmetric matrices, whose bounds come from the least theta: two conductivities along a line."""
    n, (a, b) = 20, ps.parameters(a=(0.05, 20.0, "log"), b=(0.05, 20.0, "log"))
    slope = np.diff(np.eye(n + 2), axis=0)[:, 1:-1]
    left, right = (slope.T @ np.diag(part) @ slope for part in (np.arange(n + 1) < 8, np.arange(n + 1) >= 8))
    load = np.linspace(1, 2, n)
    model = ps.AffineModel({a: left, b: right}, {1: load}, product=left + right, quantities={"mean": load})
    return replace(ps.learn(model, 1e-3, recipe="polynomial"), map=None)


def curved():
    """Coefficients that the equation does not separate, known at single nodes."""
    x, y = ps.coordinates("x y")
    (a,) = ps.parameters(a=(0.0, 2.0))
    u = ps.unknown("u", x, y)
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u) + exp(a * x) * u, cos(a * y)), ps.Dirichlet(0))
    growing = ByEstimate(ps.discretize(problem, ps.scatter(problem.domain, n_nodes=100)))
    basis = search(growing, aim=1e-12, most=3).basis
    growing.complete()
    return surrogate_without_map(growing.sealed(basis))


SOLVED = {
    "by duals": estimated.without_map,
    "by constants": lambda: replace(estimated.proven(), map=None),
    "by the least theta": bars,
    "not separated": curved,
}


@pytest.fixture(scope="module", params=[*SOLVED])
def surrogate(request):
    return SOLVED[request.param]()


def samples(surrogate, n=12):
    return ps.sample(surrogate.parameters, n, rng=3)


def test_the_preconditioner_is_the_one_of_the_bounds(surrogate):
    theta = surrogate.reduced.operator_theta(samples(surrogate, 200))
    assert np.array_equal(surrogate.reduced.choice(theta), surrogate.reduced._constants(theta).choice)


def test_jax_solves_the_reduced_model(surrogate):
    mus, function = samples(surrogate), surrogate.as_jax()
    ways = np.random.default_rng(3).standard_normal(mus.shape)
    values, slopes = jax.jvp(function, (mus,), (ways,))
    wanted, rises = surrogate(mus).values, np.einsum("nvp,np->nv", surrogate.gradient(mus), ways)
    assert np.abs(values - wanted).max() < 1e-11 * np.abs(wanted).max()
    assert np.abs(slopes - rises).max() < 1e-6 * np.abs(rises).max()  # NumPy's are differences


def test_it_maps_and_differentiates_backwards():
    surrogate = estimated.without_map()
    mus = samples(surrogate, 3)
    slopes = jax.jit(jax.vmap(jax.grad(lambda mu: surrogate.as_jax()(mu)[7])))(mus)
    assert np.allclose(slopes, surrogate.gradient(mus)[:, 7], rtol=1e-5)


def test_pytorch_solves_the_reduced_model(surrogate):
    torch = pytest.importorskip("torch")
    mus = samples(surrogate)
    function, wanted = surrogate.as_torch(), surrogate(mus).values
    assert np.abs(function(torch.tensor(mus)).numpy() - wanted).max() < 1e-11 * np.abs(wanted).max()
    assert np.abs(torch.func.vmap(function)(torch.tensor(mus)).numpy() - wanted).max() < 1e-11 * np.abs(wanted).max()
    slopes = torch.func.jacrev(function)(torch.tensor(mus[0])).numpy()
    assert np.abs(slopes - surrogate.gradient(mus[0])).max() < 1e-6 * np.abs(slopes).max()


@pytest.mark.parametrize("kind", ["with_map", pytest.param("without_map", marks=pytest.mark.slow)])
def test_quantities_are_corrected_as_in_an_answer(kind):
    surrogate = getattr(estimated, kind)()
    mus, function = samples(surrogate), surrogate.as_jax("quantities")
    found = jax.jit(jax.vmap(function))(mus)
    assert found.keys() == surrogate(mus).quantities.keys()
    for name, values in surrogate(mus).quantities.items():
        assert np.allclose(found[name], values, rtol=1e-11)


@pytest.mark.slow
def test_quantities_have_two_derivatives():
    surrogate, mu, step = estimated.with_map(), np.array([0.9, 1.2]), 1e-4
    wanted = surrogate.as_jax("quantities")
    slope, bend = jax.jit(lambda mu: (jax.jacfwd(wanted)(mu)["average"], jax.hessian(wanted)(mu)["average"]))(mu)
    at = lambda mu: surrogate(mu).quantities["average"]  # noqa: E731
    for i, e in enumerate(step * np.eye(2)):
        assert slope[i] == pytest.approx((at(mu + e) - at(mu - e)) / (2 * step), rel=1e-5)
        assert bend[i, i] == pytest.approx((at(mu + e) - 2 * at(mu) + at(mu - e)) / step**2, rel=1e-4)


def test_quantities_with_a_map_of_their_own():
    a = np.random.default_rng(0).uniform(1, 2, 40)
    fields = {"u": np.outer(a, [1.0, 2.0]), "tip": a**2}
    surrogate = ps.learn(data=ps.Results({"a": a}, fields, quantities={"sum": [1.0, 1.0]}), recipe="polynomial")
    expected = surrogate([1.5]).quantities
    found = surrogate.as_jax("quantities")([1.5])
    assert found.keys() == expected.keys() == {"sum", "tip"}
    assert all(float(found[name]) == pytest.approx(expected[name], rel=1e-11) for name in expected)
    assert np.isnan(surrogate.as_jax("quantities")([3.0])["tip"])


def test_quantities_in_time(line):
    layout = ps.runtime.Layout(("u",), times=np.array([0.0, 1.0]))
    known = Quantities(("force",), np.ones((1, 2, line.basis.n_modes)) * [[1.0], [2.0]], np.ones((1, 2)))
    surrogate, mus = replace(line, layout=layout, quantities=known), np.array([[0.25], [0.5], [1.0]])
    function = surrogate.as_jax("quantities")
    assert np.allclose(function(mus)["force"], surrogate(mus).quantities["force"])
    assert np.allclose(function(mus[1])["force"], surrogate(mus[1]).quantities["force"])
    assert function(mus[1])["force"].shape == (2,)


@pytest.mark.parametrize("kernel", ["matern32", "matern52"])
def test_derivatives_exist_where_a_sample_lies(kernel):
    """√s has none at 0, the kernel has two."""
    mus = np.linspace(0, 1, 9)[:, None]
    surrogate = ps.fit_snapshots(mus, np.sin(3 * mus) * [1.0, 2.0], ps.fitting.GaussianProcess(kernel), level=None)
    rise = (surrogate.gradient([0.5 + 1e-5]) - surrogate.gradient([0.5 - 1e-5]))[:, 0] / 2e-5
    slope = jax.jacfwd(surrogate.as_jax())
    bend, slope = jax.jit(jax.jacfwd(lambda mu: 2 * (slope(mu),), has_aux=True))(mus[4])
    assert np.allclose(slope[:, 0], surrogate.gradient(mus[4])[:, 0], rtol=1e-6)
    assert np.allclose(bend[:, 0, 0], rise, rtol=1e-3)


@pytest.fixture(scope="module")
def line():
    mus = np.linspace(0, 1, 9)[:, None]
    return ps.fit_snapshots(mus, mus * [1.0, 2.0], "linear", level=None)


def test_outside_the_box_there_is_no_number(line):
    for f in (line.as_jax(), jax.jacfwd(line.as_jax()), jax.jacrev(line.as_jax())):
        assert np.isnan(f([1.01])).all()
    assert np.allclose(line.as_jax(extrapolate=True)([1.01]), [1.01, 2.02])


def test_between_choices_there_is_no_number():
    mus = np.tile([0.0, 1.0, 3.0], 6)[:, None]
    line = ps.fit_snapshots(mus, mus * [1.0, 2.0], "linear", level=None, ranges={"a": ps.Choice(0, 1, 3)})
    found = line.as_jax(extrapolate=True)(np.array([[1.0], [2.0], [3.0]]))
    assert np.isnan(found).all(axis=1).tolist() == [False, True, False]
    assert np.allclose(found[2], [3.0, 6.0])


def test_a_restricted_surrogate_gives_its_values(line):
    assert np.allclose(line.restricted(nodes=[1]).as_jax()([0.5]), [1.0])


def test_what_cannot_be_done_is_said(line):
    class Nearest:
        def fit(self, x, y):
            self.x, self.y = x, y
            return self

        def predict(self, x):
            return self.y[np.argmin(np.abs(x - self.x.T), axis=1)]

    mus = np.linspace(0, 1, 9)[:, None]
    with pytest.raises(InputError, match="has no program"):
        ps.fit_snapshots(mus, mus * [1.0, 2.0], Nearest(), level=None).as_jax()
    with pytest.raises(InputError, match="has no quantities"):
        line.as_jax("quantities")
    with pytest.raises(InputError, match=r"output.*'fields'.*values"):
        line.as_jax("fields")
    with pytest.raises(InputError, match=r"shape \(3,\), expected \(1,\)"):
        line.as_jax()(np.ones(3))
    with jax.enable_x64(False), pytest.raises(InputError, match="jax_enable_x64"):
        line.as_jax()([0.5])


def test_numpy_code_on_traced_arrays_writes_where_it_would():
    given = jax.numpy.arange(6.0).reshape(3, 2)
    x, plain = Traced(given, jax_library()), np.arange(6.0).reshape(3, 2)
    for array in (x, plain):
        other = array.copy()
        np.exp(array[:, 1], out=other[:, 1])
        other[0] += 1.0
        other *= 2.0
        array[1, 0] = other[2, 0]
        chosen = array[np.array([0, 2])]  # a copy
        chosen *= 3.0
        other[:2] += chosen
        array += other
    assert np.allclose(x.value, plain, rtol=1e-14)
    assert np.array_equal(given, np.arange(6.0).reshape(3, 2))
    for lost in (np.asarray, float, bool):
        with pytest.raises(TypeError):
            lost(x)
