"""Problems without a unique solution, with a solution that is zero, or badly scaled: each told for what it is."""

import re
import warnings

import numpy as np
import pytest
import sympy as sp
from scipy import sparse

import parasol as ps
from parasol.checks import ParasolError
from parasol.learning.run import learn
from parasol.pde.sparse_direct import factorize
from parasol.pde.sparse_pattern import Pattern

(x,) = ps.coordinates("x")
u = ps.unknown("u", x)
v, w = ps.unknowns("v w", x)
line = ps.Box([0.0], [1.0])
(k,) = ps.parameters(k=(5.0, 15.0))
(z,) = ps.parameters(z=(0.0, 1.0))
(q,) = ps.parameters(q=(-1.0, 1.0))

ZERO = ps.Problem(line, ps.Eq(-k * u.diff(x, 2), 0), ps.Dirichlet(0))
SLOPES = ps.Problem(line, ps.Eq(-k * u.diff(x, 2), 1), ps.Neumann(0))
SECOND = ps.Problem(line, [ps.Eq(-k * v.diff(x, 2), 1), ps.Eq(-w.diff(x, 2) + v, 1)], [ps.Dirichlet(0), ps.Neumann(0)])
NO_REACTION = ps.Problem(line, ps.Eq(-u.diff(x, 2) + z * u, 1), ps.Neumann(0))
RESONANT = ps.Problem(line, ps.Eq(-u.diff(x, 2) - k * u, 1), ps.Dirichlet(0))
NO_OPERATOR = ps.Problem(line, ps.Eq(-q * u.diff(x, 2), 1), ps.Dirichlet(0))
NO_CONDITION = ps.Problem(line, ps.Eq(-u.diff(x, 2), 1), ps.Robin(q, 0, 1))
NONLINEAR = ps.Problem(line, ps.Eq(-u.diff(x, 2) + k * u.diff(x) ** 2, 1), ps.Neumann(0))


def model_of(problem):
    return ps.discretize(problem, ps.scatter(line, n_nodes=50))


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (SLOPES, "at k=10: the equation and the conditions determine the unknown only up to a constant"),
        (SECOND, "at k=10: the equation and the conditions determine unknown number 2 only up to a constant"),
        (NO_OPERATOR, "at q=0: 48 of the 50 equations have no term with an unknown left"),
        (NO_CONDITION, "at q=0: a row of the matrix is zero, such as that of a condition"),
        (NONLINEAR, "Newton's matrix is singular: linearised there, .* only up to a constant"),
    ],
)
def test_the_reason_is_named_at_once(problem, message):
    model = model_of(problem)
    with pytest.raises(ParasolError, match=message):
        model.solve()
    if problem.linear:
        with pytest.raises(ParasolError, match=message.partition(": ")[2]):
            ps.greedy(model, tolerance=1e-3)


def test_a_resonance_is_named():
    model = model_of(RESONANT)
    free = ~model.terms.pattern.stated
    at = np.min(np.linalg.eigvals(model.operator([0.0]).toarray()[np.ix_(free, free)]).real)
    assert abs(at - np.pi**2) < 1e-6
    with pytest.raises(ParasolError, match=r"at k=9\.8696: the problem has no unique solution.* resonance"):
        model.solve([at])
    near = model.solve([at * (1 + 1e-6)])  # large, and right: 2/π ∫ sin · sin / (λ − k)
    np.testing.assert_allclose(np.max(np.abs(near.values)), 4 / np.pi / (1e-6 * at), rtol=1e-3)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (ZERO, "all sources and boundary values are zero"),
        (SLOPES, "only up to a constant"),
        (NO_REACTION, "at z=0: .* only up to a constant"),
        (NO_OPERATOR, "at q=0: 48 of the 50 equations"),
    ],
)
def test_learning_says_it_before_it_begins(problem, message):
    with pytest.raises(ParasolError, match=message):
        learn(model_of(problem), 1e-2, solves=40, recipe="polynomial")


def test_learning_across_a_resonance_says_so():
    """It is not refused: a discrete operator may have a root that the equation has not."""
    with pytest.warns(ps.ParasolWarning):
        surrogate = learn(model_of(RESONANT), 1e-2, solves=40, recipe="polynomial")
    words = " ".join([surrogate.facts["learn"].get("limit", ""), *surrogate.facts["learn"]["notes"]])
    assert "between k=10 and k=5 the discrete problem is singular (the determinant changes its sign near k=9.8" in words


def test_zero_is_a_solution_and_nothing_to_build_from():
    cubic = ps.Problem(line, ps.Eq(-u.diff(x, 2) + k * u**3, 0), ps.Dirichlet(0))
    for problem in (ZERO, cubic):
        model = model_of(problem)
        found = model.solve()
        assert not np.any(found.values)
        assert found.residual_norm == 0.0
        with pytest.raises(ParasolError, match="all snapshots are zero"):
            ps.pod(ps.solve_many(model, [[6.0], [8.0]]), tolerance=1e-3)
    with pytest.raises(ParasolError, match="all sources and boundary values are zero"):
        ps.greedy(model_of(ZERO), tolerance=1e-3)


@pytest.mark.parametrize(("size", "row"), [(1e-12, 1.0), (1e12, 1.0), (1.0, 1e-12), (1e-9, 1e9), (1e30, 1e-8)])
def test_a_linear_system_is_solved_in_any_units(size, row):
    exact = [2 + sp.sin(2 * x), size * (1 + sp.exp(x))]

    def operators(v, w):
        return [-v.diff(x, 2) + w / size, row * (-w.diff(x, 2) + w - size * v.diff(x))]

    eqs = [ps.Eq(left, right) for left, right in zip(operators(v, w), operators(*exact), strict=True)]
    (outward,) = ps.normal(x)
    model = model_of(ps.Problem(line, eqs, [ps.Robin(1, 1, e + e.diff(x) * outward) for e in exact]))
    found = model.solve()
    for name, e in zip("vw", exact, strict=True):
        np.testing.assert_allclose(found.fields[name], sp.lambdify(x, e)(model.nodes.points[:, 0]), rtol=1e-9)
    assert found.residual_norm < 1e-13


@pytest.mark.parametrize("seed", range(6))
def test_the_sign_of_the_determinant(seed):
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((9, 9)) * 10.0 ** rng.integers(-5, 5, 9)
    np.fill_diagonal(dense[:4, :4], 0.0)  # rows have to be exchanged
    dense[4] = 0.0
    dense[4, 4] = -2.0  # a stated unknown
    matrix = sparse.csr_array(dense)
    factors = factorize(Pattern(matrix.indices, matrix.indptr, np.arange(9.0)[:, None]), matrix.data)
    assert factors.sign == np.linalg.slogdet(dense)[0]
    right = rng.standard_normal(9)
    np.testing.assert_allclose(factors.solve(right), np.linalg.solve(dense, right), rtol=1e-9)
    np.testing.assert_allclose(factors.solve_transposed(right), np.linalg.solve(dense.T, right), rtol=1e-9)


def test_digits_lost_near_a_resonance_are_said():
    problem = ps.Problem(line, ps.Eq(-u.diff(x, 2) - k * u, 1 + x), ps.Dirichlet(1 + x))
    model = ps.discretize(problem, ps.scatter(line, n_nodes=100))
    for distance, expected in ((1.0, 0.0), (1e-4, 0.0), (1e-7, 2e-6), (1e-8, 2e-5)):
        mu = [np.pi**2 + distance]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = model.solve(mu)
        said = [str(w.message) for w in caught]
        assert len(said) == (expected > 0), distance
        # the same matrix and load in long double
        exact, matrix = found.unknowns.astype(np.longdouble), model.operator(mu).toarray().astype(np.longdouble)
        for _ in range(20):
            exact += model.factors(mu).solve(np.asarray(model.load(mu) - matrix @ exact, dtype=float))
        lost = float(np.max(np.abs(found.unknowns - exact)) / np.max(np.abs(exact)))
        assert lost < max(10 * expected, 1e-7)
        if said:
            assert f"at k={mu[0]:g} has lost digits" in said[0]
            estimate = float(re.findall(r"about (\S+) of it", said[0])[0])
            assert expected / 20 < estimate < 20 * expected


def test_an_unknown_that_is_rounding_alone_is_no_loss_of_digits():
    # w vanishes, but for the rounding of terms of size 300
    system = [ps.Eq(-v.diff(x, 2), 0), ps.Eq(-w.diff(x, 2) + w + v.diff(x), 300)]
    problem = ps.Problem(line, system, [ps.Dirichlet(300 * (1 + x)), ps.Dirichlet(0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.ParasolWarning)
        found = ps.discretize(problem, ps.scatter(line, n_nodes=100)).solve()
    assert np.max(np.abs(found.fields["w"])) < 1e-9
