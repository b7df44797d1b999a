import numpy as np
import pytest

import parasol as ps
from parasol.checks import ParasolError
from parasol.reduction.pod import pod
from parasol.reduction.weights import time_weights, value_weights


def test_time_weights_integrate_straight_lines_exactly():
    times = np.array([0.0, 0.1, 0.4, 1.0, 3.0])
    assert time_weights(times) @ (2 * times + 1) == pytest.approx(12.0)
    assert time_weights([5.0]).tolist() == [1.0]
    with pytest.raises(ParasolError, match="times must increase"):
        time_weights([0.0, 1.0, 1.0])


def test_values_in_time_and_of_several_unknowns():
    problem = ps.load_problem("gray-scott")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150))
    times = np.array([0.0, 1.0, 4.0])
    weights = value_weights(model, times)
    assert weights.shape == (3 * 2 * 150,)
    # u = t, v = 2: ∫∫ t² + 4 by the trapezoidal rule in time on the unit square
    values = np.stack([np.concatenate([np.full(150, t), np.full(150, 2.0)]) for t in times]).ravel()
    assert weights @ values**2 == pytest.approx(0.5 * 1 + 1.5 * (1 + 16) + 4 * 4, rel=1e-9)


def test_the_norm_of_a_weighted_basis_is_an_integral():
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=400))
    rows = np.stack([np.cos(k * model.nodes.points[:, 0]) for k in range(4)])
    basis = pod(rows, n_modes=2, weights=value_weights(model))
    assert basis.norm(np.ones(400)) == pytest.approx(np.sqrt(0.65 * np.pi), rel=1e-3)


def test_what_does_not_fit_is_refused():
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200))
    with pytest.raises(ParasolError, match="this one is steady"):
        value_weights(model, [0.0, 1.0])
