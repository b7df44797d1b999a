"""Fields of different units in one array: each is learned to the tolerance, and bounds are those of the worst of them."""

import warnings

import numpy as np
import pytest
import sympy

import parasol as ps
from parasol.fitting.units import field_weights

z = np.linspace(0, 1, 40)


def plate(mus):
    """A displacement of 1e-4 and a stress of 1e8, each of its own shape in space and parameters: (n, 40, 2)."""
    displacement = 1e-4 * np.exp(-((z - 0.2 - 0.6 * mus[:, :1]) ** 2) / 0.02) * (1 + mus[:, 1:])
    stress = 1e8 * (1 + mus[:, :1] * np.sin(3 * z) + mus[:, 1:] * z)
    return np.stack([displacement, stress], axis=-1)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(8)
    return rng.random((200, 2)), rng.random((400, 2))


def errors(surrogate, mus):
    """Of each field, (n, 2)."""
    truth, answer = plate(mus), surrogate(mus, extrapolate=True)
    if surrogate.layout.names == ("u", "sigma"):
        gap = np.stack(list(answer.fields.values()), axis=2) - truth
    else:
        gap = answer.values.reshape(truth.shape) - truth
    return np.linalg.norm(gap, axis=1) / np.linalg.norm(truth, axis=1)


@pytest.mark.parametrize("given", ["last axis", "labels", "learn"])
def test_each_field_is_within_the_bound(samples, given):
    mus, fresh = samples
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.ParasolWarning)
        if given == "last axis":
            found = ps.fit_snapshots(mus, plate(mus), "gaussian process", tolerance=1e-4)
        elif given == "labels":
            flat = plate(mus).reshape(len(mus), -1)
            found = ps.fit_snapshots(mus, flat, "gaussian process", tolerance=1e-4, fields=["u", "sigma"] * 40)
        else:
            fields = dict(zip(("u", "sigma"), np.moveaxis(plate(mus), 2, 0), strict=True))
            found = ps.learn(data=ps.Results(mus, fields), tolerance=1e-2, recipe="gaussian process")
            assert found.facts["learn"]["met"]
    each = errors(found, fresh)
    bound = found(fresh[0]).bound
    assert bound < 1e-2
    assert np.mean(each.max(axis=1) <= bound) > 0.9  # at the level 0.95, of one calibration set
    assert each[:, 0].max() < 0.05  # the displacement; 0.36 in the norm of both


def test_one_norm_of_all_loses_the_small_field(samples):
    """What the bound said before: far below the error of the displacement. A warning says so still."""
    mus, fresh = samples
    with pytest.warns(ps.ParasolWarning, match="fields="):
        found = ps.fit_snapshots(mus, plate(mus).reshape(len(mus), -1), "gaussian process", tolerance=1e-4)
    assert errors(found, fresh)[:, 0].max() > 100 * found(fresh[0]).bound


def test_the_score_is_that_of_the_worst_field(samples):
    mus, fresh = samples
    found = ps.fit_snapshots(mus, plate(mus), "polynomial", tolerance=1e-2)
    truth = ps.reduction.as_snapshots(fresh, plate(fresh).reshape(len(fresh), -1))
    labels = np.tile([0, 1], 40)
    assert ps.accuracy(found, truth, fields=labels).errors == pytest.approx(errors(found, fresh).max(axis=1), rel=1e-6)
    together = ps.accuracy(found, truth).errors
    assert np.all(together <= ps.accuracy(found, truth, fields=labels).errors)
    aside = ps.calibrate(found, truth, level=0.9, fields=labels)
    assert aside.conformal.quantile > ps.calibrate(found, truth, level=0.9).conformal.quantile


def test_a_field_that_vanishes_somewhere_has_a_bound(samples):
    """Relative to nothing every error is infinite; a field is at least a thousandth of its usual size."""
    mus, fresh = samples

    def vanishing(mus):
        out = plate(mus)
        out[:, :, 0] *= np.maximum(mus[:, 1:] - 0.3, 0)
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        found = ps.fit_snapshots(mus, vanishing(mus), "gaussian process", n_modes=12)
    assert np.isfinite(found.conformal.quantile)
    zero = vanishing(mus)
    zero[:, :, 0] = 0
    assert ps.fit_snapshots(mus, zero, "polynomial", n_modes=3)(fresh[0]).bound < 1e-2


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_units_change_nothing(samples, scale):
    mus, fresh = samples
    usual, other = (ps.fit_snapshots(mus, plate(mus) * [1.0, s], "polynomial", n_modes=6) for s in (1.0, scale))
    assert other(fresh[0]).bound == pytest.approx(usual(fresh[0]).bound, rel=1e-6)
    values = other(fresh[0]).values.reshape(40, 2) / [1.0, scale]
    assert values == pytest.approx(usual(fresh[0]).values.reshape(40, 2), rel=1e-6)


def test_quantities_and_weights_go_with_fields(samples):
    mus, fresh = samples
    mean = np.kron(np.full(40, 1 / 40), [1.0, 0.0])
    weights = np.linspace(1, 2, 80)
    options = {"quantities": {"u": mean}, "weights": weights, "n_modes": 10}
    answer = ps.fit_snapshots(mus, plate(mus), "gaussian process", **options)(fresh, extrapolate=True)
    gap = np.abs(answer.quantities["u"] - plate(fresh)[:, :, 0].mean(axis=1))
    assert np.mean(gap <= answer.quantity_bounds["u"]) > 0.9
    assert np.median(answer.quantity_bounds["u"]) < 1e-4  # in the unit of the displacement


def test_wrong_fields():
    mus = np.random.default_rng(0).random((60, 2))
    with pytest.raises(ps.ParasolError, match="one label for each of the 80 values"):
        ps.fit_snapshots(mus, plate(mus).reshape(60, -1), "polynomial", fields=["a", "b"])
    flat = ps.fit_snapshots(mus, plate(mus).reshape(60, -1)[:, ::2], "polynomial")
    with pytest.raises(ps.ParasolError, match="without fields"):
        ps.accuracy(flat, ps.reduction.as_snapshots(mus, plate(mus).reshape(60, -1)[:, ::2]), fields=np.arange(40))


@pytest.mark.slow
def test_unknowns_of_a_system_are_learned_each_in_its_own_unit():
    """−p″ = 1e-6 sin(5 a x), −q″ + q³ = a + b: the first is small, and of another shape."""
    (x,) = ps.coordinates("x")
    a, b = ps.parameters(a=(0.5, 2.0), b=(0.0, 1.0))
    p, q = ps.unknown("p", x), ps.unknown("q", x)
    system = ps.Problem(
        domain=ps.Box((0.0,), (1.0,)),
        equation=[ps.Eq(-p.diff(x, 2), 1e-6 * sympy.sin(5 * a * x)), ps.Eq(-q.diff(x, 2) + q**3, a + b)],
        boundary={"left": [ps.Dirichlet(1e-7), ps.Dirichlet(1)], "right": [ps.Dirichlet(2e-7), ps.Dirichlet(1 + a)]},
    )
    model = ps.discretize(system, ps.scatter(system.domain, n_nodes=30))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.ParasolWarning)
        found = ps.learn(model=model, tolerance=2e-3, recipe="gaussian process")
    fresh = ps.sample(model, 60, design="random", rng=5)
    truth = ps.solve_many(model, fresh).solutions.reshape(60, 2, 30)
    gap = found(fresh).values.reshape(truth.shape) - truth
    each = np.linalg.norm(gap, axis=2) / np.linalg.norm(truth, axis=2)
    assert found.facts["learn"]["met"]
    assert np.mean(each.max(axis=1) <= found.conformal.quantile) > 0.85
    assert each.max() < 1e-2


def test_an_unknown_that_is_nothing_but_rounding_is_not_scaled_up():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 5)
    solutions = np.hstack([rng.random((9, 5)), 1e-8 * rng.random((9, 5)), 1e-13 * rng.random((9, 5))])
    weights = field_weights(solutions, labels, least=1e-9)
    size = np.sqrt([np.mean(np.sum((weights * solutions**2)[:, labels == label], axis=1)) for label in range(3)])
    assert size[:2] == pytest.approx(1.0)
    assert size[2] < 1e-12
    scaled = field_weights(solutions, labels)
    assert np.mean(np.sum((scaled * solutions**2)[:, labels == 2], axis=1)) == pytest.approx(1.0)


def coupled(unit):
    """A linear system of two unknowns, the second measured in another unit, with slopes given for both."""
    x, y = ps.coordinates("x y")
    a, b = ps.parameters(a=(0.5, 2.0), b=(0.5, 3.0))
    p, q = ps.unknowns("p q", x, y)
    return ps.Problem(
        ps.Box((0, 0), (1, 1)),
        [
            ps.Eq(-a * ps.laplacian(p) + q / unit, 1 + x),
            ps.Eq(-ps.laplacian(q) + b * q - a * unit * p, unit * sympy.sin(3 * x * y)),
        ],
        {
            "left": [ps.Dirichlet(1 + y), ps.Neumann(unit * y)],
            "right": [ps.Neumann(x), ps.Dirichlet(unit)],
            "*": [ps.Dirichlet(x), ps.Dirichlet(0)],
        },
        quantities={"p": ps.Average(of="p"), "q": ps.Average(of="q")},
    )


@pytest.mark.slow
def test_proven_bounds_of_a_system_do_not_depend_on_units():
    bounds = []
    for unit in (1.0, 1e-6):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the discretisation error")
            warnings.filterwarnings("error", ".*times smaller than")  # no unknown is
            surrogate = ps.learn(coupled(unit), 1e-3, n_nodes=150, recipe="polynomial", proof=True)
        mus = ps.sample(surrogate.solver, 20, design="random", rng=5)
        answer, truth = surrogate(mus), [surrogate.solver.solve(mu) for mu in mus]
        assert surrogate.facts["learn"]["met"]
        assert answer.bounds.rigorous.all()
        exact = np.array([solution.values for solution in truth])
        for part in np.split(np.arange(exact.shape[1]), 2):  # each alone, not only both together
            gap, size = (np.linalg.norm(v[:, part], axis=1) for v in (answer.values - exact, exact))
            assert np.all(gap <= 2 * answer.bound * size)
        for name, values in answer.quantities.items():
            gap = np.abs(values - [solution.quantities[name] for solution in truth])
            assert np.all(gap <= answer.quantity_bounds[name])
            assert np.max(answer.quantity_bounds[name]) < 0.01 * np.max(np.abs(values))
        bounds.append(answer.bound)
    assert np.allclose(*bounds, rtol=1e-6)


def test_ghosts_weigh_like_their_own_unknown():
    problem = coupled(1e-6)
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150))
    weights = np.repeat([1.0, 1e12], model.n_nodes)
    p, q = np.split(model.layout.weights(weights), 2)
    assert len(p) > model.n_nodes  # there are ghosts
    assert np.all(p == 1.0)
    assert np.all(q == 1e12)


@pytest.mark.parametrize("second", [1e-160, 1e-170])
def test_what_is_too_small_to_be_squared_is_refused(second):
    """Errors came out as zero, and bounds with them."""
    mus = np.random.default_rng(0).uniform(0.5, 2, (30, 1))
    values = np.exp(-mus * np.linspace(0, 1, 6))
    with pytest.raises(ps.ParasolError, match=r"so small that their squares underflow|no direction to keep"):
        ps.fit_snapshots(mus, second * values, "polynomial")
    with pytest.raises(ps.ParasolError, match="so small that its squares underflow"):
        ps.fit_snapshots(mus, np.stack([values, second * values], axis=2), "polynomial")
