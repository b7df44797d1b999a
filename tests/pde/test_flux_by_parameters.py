"""The equation's own flux as a quantity where it depends on parameters: in solves, surrogates, files, pages and servers."""

from dataclasses import replace

import httpx
import numpy as np
import pytest
import umbridge
from sympy import Eq, exp, pi, sin

import parasol as ps
from parasol.errors import InputError
from parasol.fitting.fit import surrogate_without_map
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.greedy import search
from parasol.runtime.duals import TYPICAL
from parasol.runtime.quantities import Mixing, Quantities
from parasol.runtime.theta import Theta

x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)
a, b = ps.parameters(a=(0.2, 5.0, "log"), b=(0.5, 2.0))
LAYERS = ps.Box((0, 0), (1, 1)).regions(low=ps.Box((0, 0), (0.5, 1)), high=ps.Box((0.5, 0), (1, 1)))
MUS = np.array([[0.3, 1.5], [4.0, 0.6], [1.0, 1.0]])


def layers(source=1, wanted=("left", "right", "bottom"), **quantities):
    """Conductivities a and b side by side, 0 on the left, 1 on the right, nothing through top and bottom."""
    boundary = {"left": ps.Dirichlet(0), "right": ps.Dirichlet(1), "*": ps.NormalFlux(0)}
    flux = ps.by_region(low=a, high=b) * ps.gradient(u)
    quantities = {part: ps.Flux(part) for part in wanted} | quantities
    return ps.Problem(LAYERS, Eq(-ps.divergence(flux), source), boundary, quantities=quantities)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["stencils", "elements"])
def test_two_layers_with_a_source(method):
    """k u' = c − x with c such that ∫ (c − x) / k = 1: −c leaves on the left, c − 1 on the right."""
    problem = layers(all=ps.Flux(), mean=ps.Average())
    model = ps.discretize(problem, ps.scatter(LAYERS, n_nodes=300), method=method)
    for mu in MUS:
        c = (1 + 0.125 / mu[0] + 0.375 / mu[1]) / (0.5 / mu[0] + 0.5 / mu[1])
        found = model.solve(mu).quantities
        wanted = {"left": -c, "right": c - 1, "bottom": 0, "all": -1}
        assert {name: found[name] for name in wanted} == pytest.approx(wanted, abs=1e-9)
        assert found["mean"] == pytest.approx(model.quantities.rows[-1] @ model.solve(mu).values)


@pytest.mark.parametrize("method", ["stencils", "elements"])
def test_a_coefficient_with_parameters(method):
    """With the conductivities as coefficients it is the equation's own flux; other functions of parameters go their way."""
    k = ps.by_region(low=a, high=b)
    given = {"own": ps.Flux("right", k), "all": ps.Flux(None, k), "square": ps.Flux("left", a * b**2 * (1 + y) + a)}
    problem = layers(wanted=("left", "right"), **given)
    model = ps.discretize(problem, ps.scatter(LAYERS, n_nodes=300), method=method)
    for mu in MUS:
        c = (1 + 0.125 / mu[0] + 0.375 / mu[1]) / (0.5 / mu[0] + 0.5 / mu[1])
        wanted = {"left": -c, "own": c - 1, "all": -1, "square": -c * (1.5 * mu[1] ** 2 + 1)}
        found = model.solve(mu).quantities
        assert {name: found[name] for name in wanted} == pytest.approx(wanted, abs=1e-9)
    for coefficient, message in ((exp(a * y**2), "not as a sum"), (u, "contains an unknown")):
        with pytest.raises(InputError, match=message):
            layers(q=ps.Flux("left", coefficient))
    (other,) = ps.parameters(other=(0.0, 1.0))
    with pytest.raises(InputError, match="depends on other, and the problem does not"):
        layers(q=ps.Flux("left", other))


@pytest.mark.parametrize(("method", "least"), [("stencils", 2.0), ("elements", 1.8)])
def test_against_scikit_fem(method, least):
    """Layers with a source that varies; the flux by scikit-fem is the reaction, which converges twice as fast."""
    problem = layers(4 * sin(pi * y) * exp(x), wanted=("left",))
    true = np.array([reaction(*mu) for mu in MUS])
    errors = []
    for n_nodes in (300, 1200):
        model = ps.discretize(problem, ps.scatter(LAYERS, n_nodes=n_nodes, rng=1), method=method)
        errors.append(np.max(np.abs([model.solve(mu).quantities["left"] for mu in MUS] / true - 1)))
    assert errors[1] < 2e-3
    assert np.log2(errors[0] / errors[1]) > least


def reaction(low, high):
    """The flux through the left side by quartic triangles: the residual of the values there."""
    from skfem import Basis, BilinearForm, ElementTriP4, LinearForm, MeshTri, condense, solve
    from skfem.helpers import dot, grad

    basis = Basis(MeshTri.init_tensor(np.linspace(0, 1, 17), np.linspace(0, 1, 17)).with_defaults(), ElementTriP4())
    form = BilinearForm(lambda u, v, w: np.where(w.x[0] < 0.5, low, high) * dot(grad(u), grad(v))).assemble(basis)
    load = LinearForm(lambda v, w: 4 * np.sin(np.pi * w.x[1]) * np.exp(w.x[0]) * v).assemble(basis)
    left, right = basis.get_dofs("left").all(), basis.get_dofs("right").all()
    values = np.zeros(basis.N)
    values[right] = 1.0
    values = solve(*condense(form, load, x=values, D=np.concatenate([left, right])))
    return float(np.sum((form @ values - load)[left]))


def test_factors_that_mix_parameters_and_coordinates_separate_or_are_refused():
    """u = x − x² / 2 has the flux (a + b x²)(1 − x): a on the left side, where the normal is −1."""
    square = ps.Box((0, 0), (1, 1))
    exact, k = x - x**2 / 2, a + b * x**2
    source = -(k * exact.diff(x)).diff(x)
    equation = Eq(-ps.divergence(k * ps.gradient(u)), source)
    problem = ps.Problem(
        square, equation, ps.Dirichlet(exact), quantities={"left": ps.Flux("left"), "top": ps.Flux("top")}
    )
    model = ps.discretize(problem, ps.scatter(square, n_nodes=200))
    assert model.quantities.mixing.theta.n_terms == 4
    for mu in MUS:
        assert list(model.solve(mu).quantities.values()) == pytest.approx([-mu[0], 0], abs=1e-7)
    with pytest.raises(InputError, match=r"depends on a not as a sum.*coefficient=\.\.\."):
        ps.Problem(
            square, Eq(-ps.divergence(exp(a * x**2) * ps.gradient(u)), 1), ps.Dirichlet(0), quantities={"q": ps.Flux()}
        )


def test_in_time():
    """u = exp(−a π² t) sin(πx) in the heat equation has the flux −a π exp(−a π² t) through the left side."""
    t = ps.time()
    w = ps.unknown("w", x, y, t)
    boundary = {"left": ps.Dirichlet(0), "right": ps.Dirichlet(0), "*": ps.NormalFlux(0)}
    problem = ps.Problem(
        ps.Box((0, 0), (1, 1)),
        Eq(w.diff(t), ps.divergence(a * ps.gradient(w, x, y), x, y)),
        boundary,
        initial=sin(pi * x),
        times=[0.0, 0.02, 0.05],
        quantities={"left": ps.Flux("left")},
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))
    for mu in ([0.5], [2.0]):
        found = model.solve(mu, tolerance=1e-6)
        wanted = -mu[0] * np.pi * np.exp(-mu[0] * np.pi**2 * found.times)
        assert found.quantities["left"] == pytest.approx(wanted, rel=2e-3)


# ---- surrogates -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def grown():
    """The reduced model of few solves: errors are far above rounding."""
    problem = layers(4 * sin(pi * y) * exp(x), wanted=("left", "right"), mean=ps.Average())
    growing = ByEstimate(ps.discretize(problem, ps.scatter(LAYERS, n_nodes=250)))
    with pytest.warns(ps.ParasolWarning):
        found = search(growing, aim=1e-12, most=3)
    growing.complete()
    mus = growing.model.sample(4, rng=3)
    solutions = np.array([growing.model.solve(mu).unknowns for mu in mus])
    return growing.duals.checked(growing.sealed(found.basis), mus, solutions)


@pytest.fixture(scope="module", params=["reduced model", "map"])
def surrogate(request, grown):
    return (
        surrogate_without_map(grown) if request.param == "reduced model" else ps.fit(grown, "polynomial", n_labels=200)
    )


def test_corrections_and_bounds_of_quantities(surrogate, grown):
    """Against the quantities of full solves: the residual makes them better by far, and bounds hold."""
    mus = grown.model.sample(20, rng=1)
    answer, plain = surrogate(mus), replace(surrogate, reduced=None, conformal=None) if surrogate.map else None
    full = [grown.model.solve(mu).quantities for mu in mus]
    assert surrogate.quantities.mixing is not None
    for name in answer.quantities:
        true = np.array([one[name] for one in full])
        error = np.abs(answer.quantities[name] - true)
        assert np.all(error <= answer.quantity_bounds[name] + 1e-11)
        before = np.abs(
            surrogate.quantities(answer.coefficients, mus)[answer.surrogate.quantities.names.index(name), :, 0] - true
        )
        assert np.median(error) < 0.1 * np.median(before)
        assert np.all(error <= TYPICAL * grown.duals.output_ratio * answer.quantity_estimates[name] + 1e-11)
        if plain is not None:
            assert plain(mus).quantities[name] == pytest.approx(true, abs=np.max(before) * 1.01)
    norms = surrogate.quantities.bounds(np.full(len(mus), 1e-3), mus)
    rows = np.array([[grown.model.quantities.of(row, mu) for row in np.eye(grown.model.n_nodes)] for mu in mus[:2]])
    exact = 1e-3 * np.linalg.norm(rows, axis=1)
    assert np.all(exact * (1 - 1e-12) <= norms[:, :2, 0].T)  # the sum of norms is no less than the norm of the sum
    assert np.all(2 * exact >= norms[:, :2, 0].T)


def test_a_file_and_a_full_solve(surrogate, grown, tmp_path):
    mus = grown.model.sample(5, rng=2)
    loaded = ps.load(ps.save(surrogate, tmp_path / "layers.parasol"))
    for name, values in surrogate(mus).quantities.items():
        assert np.array_equal(loaded(mus).quantities[name], values)
        assert np.array_equal(loaded(mus).quantity_bounds[name], surrogate(mus).quantity_bounds[name])
    exact = surrogate(mus[0], tolerance=1e-13)
    assert exact.method == "full solve"
    assert exact.quantities == pytest.approx(grown.model.solve(mus[0]).quantities, rel=1e-12)


def test_a_server_and_um_bridge(surrogate):
    mu, step = MUS[0], 1e-4
    with ps.serve(surrogate, port=0, background=True) as server:
        got = httpx.post(
            f"{server.address}/v1/quantities", json={"mus": MUS.tolist(), "bounds": True}, timeout=30
        ).json()
        answer = surrogate(MUS)
        for name, values in answer.quantities.items():
            assert np.allclose(got["quantities"][name], values, rtol=1e-9)
            assert np.allclose(got["quantity_bounds"][name], answer.quantity_bounds[name], rtol=1e-9)
        model = umbridge.HTTPModel(server.address, "quantities")
        assert model.get_output_sizes() == [3]
        value = lambda at: np.array(model([at.tolist()])[0])  # noqa: E731
        assert np.allclose(
            value(mu), surrogate.quantities(surrogate.coefficients(mu)[None], mu[None])[:, 0, 0], rtol=1e-12
        )
        steps = step * np.eye(2)
        slopes = np.array([(value(mu + e) - value(mu - e)) / (2 * step) for e in steps]).T
        sens, vec = np.array([1.0, -2.0, 0.5]), np.array([0.3, -0.7])
        assert np.allclose(model.gradient(0, 0, [mu.tolist()], sens.tolist()), sens @ slopes, rtol=1e-4)
        assert np.allclose(model.apply_jacobian(0, 0, [mu.tolist()], vec.tolist()), slopes @ vec, rtol=1e-4)
        if surrogate.map is not None:
            pull = lambda at: np.array(model.gradient(0, 0, [at.tolist()], sens.tolist()))  # noqa: E731
            along = (pull(mu + step * vec) - pull(mu - step * vec)) / (2 * step)
            found = model.apply_hessian(0, 0, 0, [mu.tolist()], sens.tolist(), vec.tolist())
            assert np.allclose(found, along, rtol=1e-3, atol=1e-4 * np.abs(along).max())


def test_parts_that_do_not_fit_are_refused():
    from parasol.runtime.formulas import Formula

    theta = Theta((Formula("a", ("a",)), Formula("1", ("a",))), (), 1)
    with pytest.raises(InputError, match="counted from 0"):
        Mixing(theta, np.array([0, 2]))
    with pytest.raises(InputError, match="3 quantities are mixed from parts of 2"):
        Quantities(("a", "b", "c"), np.ones((2, 1, 1)), np.ones((2, 1)), Mixing(theta, np.array([0, 1])))
    with pytest.raises(InputError, match="Give the parameters too"):
        Quantities(("a",), np.ones((2, 1, 1)), np.ones((2, 1)), Mixing(theta, np.array([0, 0])))(np.ones((1, 1)))
