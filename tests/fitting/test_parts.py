"""Calibrated bounds of quantities, of unknowns and of values at all nodes: over many draws, in files, at points."""

from dataclasses import replace

import numpy as np
import pytest

import estimated
import parasol as ps
from parasol.errors import InputError
from parasol.fitting.calibration import with_parts
from parasol.fitting.units import field_weights
from parasol.runtime.conformal import conformal_bound
from parasol.runtime.layout import Layout
from parasol.runtime.parts import CalibratedParts
from parasol.space.interpolation import interpolation_weights

t = np.linspace(0, 1, 12)
labels = np.repeat([0, 1], 12)
rows = np.vstack([np.ones(24), np.eye(24)[3]])


def truth(mus):
    return np.hstack([1 + mus[:, :1] * t, 1e3 * (2 + mus[:, 1:] * t)])


@pytest.fixture(scope="module")
def plain():
    mus = np.random.default_rng(0).random((60, 2))
    wanted = {"sum": rows[0], "fourth": rows[1]}
    made = ps.fit_snapshots(
        mus, truth(mus), "linear", ranges={"a": (0, 1), "b": (0, 1)}, fields=labels, quantities=wanted, level=None
    )
    return replace(made, layout=Layout(names=("p", "q")))


def noisy(rng, n):
    """Solutions whose errors are near one end and large in one unknown, of any size."""
    mus = rng.random((n, 2))
    errors = rng.standard_normal((n, 24)) * np.r_[1e-2 * t, 100 * (1 - t)] * rng.exponential(size=(n, 1))
    return ps.reduction.as_snapshots(mus, truth(mus) + errors)


def test_each_part_holds_at_its_level_over_many_draws(plain):
    rng, level, n, held = np.random.default_rng(1), 0.8, 9, []
    weights = field_weights(truth(rng.random((50, 2))), labels)
    tested = noisy(rng, 5)
    for _ in range(400):
        fresh = noisy(rng, n + 1)
        known, new = fresh.mus[:n], fresh.mus[n]
        seen = ps.reduction.as_snapshots(known, fresh.solutions[:n])
        errors = ps.accuracy(plain, seen, fields=labels, weights=weights).errors
        made = replace(plain, conformal=conformal_bound(errors, level=level))
        made = with_parts(made, seen, rows, level=level, labels=labels, weights=weights, tested=tested)
        answer, u = made(new), fresh.solutions[n]
        gap = np.abs(answer.values - u)
        off = np.abs(rows @ (answer.values - u))
        relative = [np.linalg.norm(gap[labels == f]) / np.linalg.norm(u[labels == f]) for f in (0, 1)]
        held.append(
            [
                np.all(gap <= answer.band),
                *(off <= list(answer.quantity_bounds.values())),
                *(np.array(relative) <= list(answer.field_bounds.values())),
                np.all(gap <= answer.band / 2),
            ]
        )
    found = np.mean(held, axis=0)
    slack = 3 * np.sqrt(level * (1 - level) / 400)
    assert np.all(np.abs(found[:5] - level) < slack)  # ⌈10 · 0.8⌉ of nine: as often as said, and no more
    assert found[5] < level - slack  # half of it would not do


@pytest.fixture(scope="module")
def learned():
    x = ps.coordinates("x")[0]
    u, (a, b) = ps.unknown("u", x), ps.parameters(a=(0.1, 10.0, "log"), b=(0.0, 3.0))
    problem = ps.Problem(
        ps.Box(0, 1),
        ps.Eq(-u.diff(x, 2) + b * u**3, a * (1 + x)),
        ps.Dirichlet(0),
        quantities={"mean": ps.Average()},
    )
    return ps.learn(problem, 1e-2, n_nodes=30, recipe="polynomial")


def test_a_nonlinear_problem_has_a_band_and_quantities_that_follow_the_error(learned, tmp_path):
    again = ps.load(ps.save(learned, tmp_path / "s.parasol"))
    model = learned.solver
    fresh = ps.solve_many(model, ps.sample(model, 100, design="random", rng=12))
    answer = again(fresh.mus)
    gap = np.abs(answer.values - fresh.solutions)
    assert answer.band.shape == gap.shape
    assert np.mean(np.all(gap <= answer.band, axis=1)) >= 0.9  # 0.95 over all calibration sets
    assert np.array_equal(answer.band, learned(fresh.mus).band)
    off = np.abs(answer.quantities["mean"] - fresh.solutions @ model.quantities.rows[0])
    bounds = answer.quantity_bounds["mean"]
    assert np.mean(off <= bounds) >= 0.9
    by_norm = learned.quantities.bounds(answer.bounds.values)[0, :, 0]  # from the bound of the whole field
    assert np.all(bounds < by_norm)
    assert np.ptp(np.log(np.max(answer.band, axis=1) / np.linalg.norm(answer.coefficients, axis=1))) > 1


def test_bands_at_points_outside_the_box_and_in_single_precision(learned):
    mu, points = [1.0, 1.0], np.array([[0.33], [0.5]])
    some = learned.restricted(nodes=[3, 4])
    assert np.array_equal(some(mu).band, learned(mu).band[[3, 4]])
    at = learned.restricted(points=points)
    assert at(mu).band.shape == (2,)
    assert np.all(at(mu).band >= np.min(learned(mu).band))
    weights = interpolation_weights(learned.layout, points)
    assert weights.min() < 0  # and errors at the nodes may have any signs
    assert np.allclose(at(mu).band, abs(weights) @ learned(mu).band)
    assert np.all(learned([20.0, 1.0], extrapolate=True).band == np.inf)
    assert learned([20.0, 1.0], extrapolate=True).quantity_bounds["mean"] == np.inf
    single = learned(mu, dtype=np.float32)
    assert np.all(single.band > learned(mu).band)


def test_parts_belong_to_a_bound(learned):
    with pytest.raises(InputError, match="come with a conformal bound"):
        replace(learned, conformal=None, difficulty=None)
    with pytest.raises(InputError, match="negative"):
        CalibratedParts(profile=np.array([-1.0]))
    with pytest.raises(InputError, match="shape"):
        replace(learned, parts=CalibratedParts(profile=np.ones(3)))


def test_calibrated_parts_do_not_change_what_a_reduced_model_proves():
    """A proven bound is not zero, and nothing is calibrated of answers that the reduced model has repaired."""
    model, before = estimated.model(), replace(estimated.proven(), solver=estimated.model())
    truth = ps.solve_many(model, ps.sample(model, 30, design="random", rng=7))
    after, mus = ps.calibrate(before, truth), [[0.9, 1.7], [0.1, 2.0], [3.5, 1.1]]
    answer, exact = after(mus), np.array([model.solve(mu).values for mu in mus])
    assert "proven" in answer.bound_kind
    assert np.all(np.abs(answer.values - exact) <= answer.band)
    assert answer.quantity_bound_kind == before(mus).quantity_bound_kind
    for name, bounds in before(mus).quantity_bounds.items():
        assert np.array_equal(answer.quantity_bounds[name], bounds)
    repaired = after(mus, tolerance=1e-9)
    assert repaired.method == ["full solve", "reduced model", "full solve"]
    assert np.all(repaired.band[1] == np.inf)
    assert np.all(repaired.band[::2] == 0)
