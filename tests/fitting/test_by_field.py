"""A basis and a map for each field where that errs less: joined, it answers as the fits of single fields do."""

import warnings

import numpy as np
import pytest

import parasol as ps
from parasol.fitting.data import fit_snapshots

X = np.linspace(0, 1, 60)
BOX = {"c": (0.2, 0.8), "w": (0.1, 0.4), "e": (1e-3, 0.1)}
LABELS = np.repeat([0, 1], [60, 40])


def fields(mus):
    """One is smooth in e, the other in log e, and a million times larger."""
    smooth = 2 + mus[:, :1] * np.cos(60 * mus[:, 2:] * X)
    other = np.exp(mus[:, 1:2]) + np.cos(1.5 * np.log(mus[:, 2:]) * X[:40])
    return smooth, 1e6 * other


def drawn(n, seed=0):
    low, high = np.array(list(BOX.values())).T
    return np.random.default_rng(seed).uniform(low, high, (n, 3))


def errors(found, truth):
    return np.mean(np.linalg.norm(found - truth, axis=1) / np.linalg.norm(truth, axis=1))


@pytest.fixture(scope="module")
def fitted():
    mus = drawn(70)
    own = [fit_snapshots(mus, part, tolerance=1e-4, ranges=BOX) for part in fields(mus)]
    return fit_snapshots(mus, np.hstack(fields(mus)), tolerance=1e-4, ranges=BOX, fields=LABELS), own


@pytest.mark.slow
def test_each_answers_as_if_it_were_alone(fitted):
    joined, own = fitted
    assert joined.basis.method == "POD of each field"
    assert joined.basis.n_modes == sum(part.basis.n_modes for part in own)
    mus = drawn(50, seed=1)
    found = joined(mus).values
    np.testing.assert_allclose(found[:, :60], own[0](mus).values, rtol=1e-4)
    np.testing.assert_allclose(found[:, 60:], own[1](mus).values, rtol=1e-4, atol=10)
    shared = joined.facts["choice"]["one_basis"]  # logarithms of e spoil one field, none of them the other
    assert errors(found[:, :60], fields(mus)[0]) < 0.1 * shared
    assert errors(found[:, 60:], fields(mus)[1]) < 0.1 * shared


def test_logarithms_are_those_of_each_field(fitted):
    joined, own = fitted
    assert own[1].features.logs[2]
    assert not own[0].features.logs.any()
    assert not joined.features.logs.any()
    assert joined.facts["logarithms"] == ["e"]


def test_energies_are_those_of_all_fields(fitted):
    basis = fitted[0].basis
    n = basis.n_snapshots
    assert n == 51  # 19 were kept aside
    assert basis.total_energy == pytest.approx(2 * n, rel=1e-9)  # each field is 1 in the mean of squares
    assert np.all(np.diff(basis.singular_values) <= 0)
    left = basis.projection_errors(np.hstack(fields(drawn(70)))) ** 2
    assert basis.energy_discarded[-1] == pytest.approx(np.sqrt(np.mean(left)), rel=0.5)


def test_gradients_files_and_bounds(fitted, tmp_path):
    joined, _ = fitted
    mu = drawn(1, seed=3)[0]
    slopes = joined.basis.modes @ joined.jacobian(mu)
    for j, step in enumerate(1e-4 * mu):  # processes of large weights: the differences of smaller steps are rounding
        ends = [np.split(joined(mu + sign * step * np.eye(3)[j]).values, [60]) for sign in (1, -1)]
        for found, above, below in zip(np.split(slopes[:, j], [60]), *ends, strict=True):
            size = np.abs(above).max() / mu[j]
            np.testing.assert_allclose(found, (above - below) / (2 * step), atol=1e-4 * size)
    ps.save(joined, tmp_path / "both.parasol")
    assert np.array_equal(ps.load(tmp_path / "both.parasol")(mu).values, joined(mu).values)
    mus = drawn(200, seed=4)
    truth = ps.reduction.as_snapshots(mus, np.hstack(fields(mus)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of the new lie just outside the samples
        held = ps.accuracy(joined, truth, fields=LABELS).errors <= joined.certify(mus, extrapolate=True).relative
    assert np.mean(held) > 0.88  # asked: 0.95


def test_polynomials_and_matrices_of_fields_are_joined_as_they_are():
    """Each ends in a matrix of its own; one of them knows a logarithm that the other does not."""
    mus, new = drawn(80), drawn(20, seed=1)

    def truth(mus):
        c, _, e = mus.T[:, :, None]
        return np.hstack([2 + c * X + c**2 * X**2 + 30 * e * (1 - X), 1e6 * (9 + np.log(e) * X[:40] + c * X[:40] ** 2)])

    surrogate = fit_snapshots(mus, truth(mus), tolerance=1e-9, ranges=BOX, fields=LABELS)
    assert [part["map"] for part in surrogate.facts["choice"]["fields"]] == ["polynomial", "linear"]
    assert surrogate.facts["logarithms"] == ["e"]
    np.testing.assert_allclose(surrogate(new, extrapolate=True).values, truth(new), rtol=1e-9)


def test_learn_says_it_of_each_field_by_its_name():
    mus = drawn(70)
    smooth, other = fields(mus)
    table = {name: mus[:, j] for j, name in enumerate(BOX)}
    results = ps.Results(table, {"u": smooth[:, :40], "v": other}, points=X[:40, None])
    surrogate = ps.learn(data=results, tolerance=1e-3, parameters=BOX)
    note = next(note for note in surrogate.facts["learn"]["notes"] if "each field has a basis" in note)
    assert ": u gaussian process" in note
    assert "; v " in note


def test_one_basis_where_fields_have_the_same_coefficients():
    mus = drawn(40)
    values = np.hstack([np.outer(np.exp(mus[:, 0] * mus[:, 1]), shape(np.pi * X)) for shape in (np.sin, np.cos)])
    surrogate = fit_snapshots(mus, values, tolerance=1e-3, ranges=BOX, fields=np.repeat([0, 1], 60))
    assert surrogate.basis.n_modes == 1
    assert "fields" not in surrogate.facts["choice"]
