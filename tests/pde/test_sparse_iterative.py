"""Iterative solves: as accurate as direct ones, over the catalogue, transposed, in Newton and in time; with a word where they stall."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import parasol as ps
from parasol.errors import ParasolWarning, SolveFailed
from parasol.pde import sparse_direct
from parasol.pde.catalogue import problem_names
from parasol.pde.discretize import discretize_with
from parasol.pde.sparse_direct import (
    Factors,
    IterativeFactors,
    SingularMatrixError,
    chosen_solver,
    factorize,
    random_signs,
)
from parasol.pde.sparse_iterative import Krylov, Stalled, gmres
from parasol.pde.sparse_pattern import Pattern


def copied(model):
    """The pattern of a model, without the factors that it keeps."""
    return replace(model.terms.pattern, last=[], _idle=[])


def both(name, n_nodes, **options):
    """The problem by elimination, and by iterations, on the same nodes."""
    problem = ps.load_problem(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)
        direct = discretize_with(problem, ps.Settings(n_nodes=n_nodes), **options)
        return direct, replace(direct, solver="iterative", terms=replace(direct.terms, pattern=copied(direct)))


def difference(first, second):
    """The largest over the unknown functions, relative to their sizes."""
    gaps = [np.max(np.abs(second.fields[k] - u)) / np.max(np.abs(u)) for k, u in first.fields.items()]
    return max(gaps)


@pytest.fixture(scope="module")
def flower():
    return both("helmholtz", 500)


@pytest.fixture(scope="module")
def ball():
    return both("schrodinger", 600)


# ---- as accurate as elimination --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["elasticity", "bratu"])
def test_iterative_solutions_are_the_direct_ones(name):
    direct, iterative = both(name, 300)
    mu = direct.parameters.bounds[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)
        first, second = direct.solve(mu), iterative.solve(mu)
    assert difference(first, second) < 1e-8
    assert second.residual_norm < 1e-13 or second.history
    assert second.backend.startswith("iterative: GMRES with multigrid")


@pytest.mark.slow
@pytest.mark.parametrize("name", problem_names())
def test_iterative_solutions_are_the_direct_ones_over_the_catalogue(name):
    direct, iterative = both(name, 3000)
    low, high = direct.parameters.bounds
    for mu in (direct.vector(), low, high) if not direct.parameters.functions else (direct.vector(rng=1),):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)
            options = {} if direct.problem.time is None else {"times": [0.0, 0.02], "step": 0.002}
            try:
                expected = direct.solve(mu, **options)
            except SolveFailed:  # bratu has no solution above 2, and neither way may find one
                with pytest.raises(SolveFailed):
                    iterative.solve(mu, **options)
            else:
                assert difference(expected, iterative.solve(mu, **options)) < 1e-8


def test_in_space_and_in_the_plane_residuals_are_rounding(flower, ball):
    for direct, iterative in (flower, ball):
        mu = direct.vector(rng=2)
        first, second = direct.solve(mu), iterative.solve(mu)
        assert difference(first, second) < 1e-11
        assert second.residual_norm <= 4 * max(first.residual_norm, np.finfo(float).eps)


def test_a_solution_that_does_not_solve_its_equations_is_refused(flower, monkeypatch):
    model, solve, rng = flower[0], Factors.solve, np.random.default_rng(4)

    def rough(self, right, **options):  # too little for the known answer to be lost
        found = solve(self, right, **options)
        return found * (1 + rng.uniform(-5e-4, 5e-4, found.shape))

    monkeypatch.setattr(Factors, "solve", rough)
    with pytest.raises(SingularMatrixError, match="solved only to a residual of"):
        model.solve(model.vector())


def test_transposed_solves(flower):
    iterative = flower[1]
    mu, right = iterative.vector(), np.random.default_rng(3).standard_normal((iterative.n_unknowns, 2))
    first, second = (m.factors(mu).solve_transposed(right) for m in flower)
    np.testing.assert_allclose(second, first, atol=1e-10 * np.max(np.abs(first)))
    assert isinstance(iterative.factors(mu), IterativeFactors)


@pytest.mark.slow
def test_estimates_are_the_same(flower):
    mu = flower[0].vector()
    first, second = (m.solve(mu).discretisation for m in flower)
    assert second == pytest.approx(first, rel=1e-6)
    assert flower[0].factors(mu).sign == flower[1].factors(mu).sign != 0


def test_steps_in_time():
    direct, iterative = both("heat", 300)
    options = {"times": [0.0, 0.01], "step": 0.002}
    first, second = (m.solve(direct.vector(), **options) for m in (direct, iterative))
    np.testing.assert_allclose(second.values, first.values, atol=1e-10 * np.max(np.abs(first.values)))


@pytest.mark.slow
def test_bounds_of_iterative_solves_are_those_of_direct_ones():
    models = both("helmholtz", 300)
    mus = ps.sample(models[0], 6)
    bases = [ps.pod(ps.solve_many(m, mus), n_modes=4) for m in models]
    reduced = [ps.reduce(m, basis, n_anchors=1) for m, basis in zip(models, bases, strict=True)]
    first, second = (r.solve(mus[:3] * 1.01).bounds.relative for r in reduced)
    np.testing.assert_allclose(second, first, rtol=1e-4)


def test_the_sign_of_an_equation_does_not_matter():
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    problem = ps.Problem(
        domain=ps.Disc(), equation=ps.Eq(u.diff(x, 2) + u.diff(y, 2), -1 + 0 * x), boundary=ps.Dirichlet(0)
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=600), solver="iterative")
    found = model.solve()
    assert found.backend.startswith("iterative")
    np.testing.assert_allclose(found.values, (1 - np.sum(model.nodes.points**2, axis=1)) / 4, atol=1e-10)


# ---- what is asked for, and what is said -----------------------------------------------------------------------------
def test_the_choice_by_size_and_dimension():
    assert [chosen_solver("auto", 50_000, d) for d in (1, 2, 3)] == ["superlu", "superlu", "iterative"]
    assert chosen_solver("auto", 300_000, 2) == chosen_solver("auto", 300_000, None) == "iterative"
    assert chosen_solver("iterative", 10, 1) == "iterative"


def test_a_guess_spares_iterations_and_does_not_change_the_answer(flower):
    _, model = flower
    mu = model.vector()

    def count(guess):
        model.terms.pattern.last.clear()
        found = model.solve(mu, guess=guess)
        return found.values, int(found.backend.rpartition(", ")[2].split()[0])

    values, without = count(None)
    again, fewer = count(values * (1 + 1e-6))
    assert fewer < without
    np.testing.assert_allclose(again, values, rtol=0, atol=1e-11 * np.max(np.abs(values)))
    assert np.array_equal(count(1e9 * values)[0], values)  # worse than zero


def test_answers_do_not_depend_on_what_was_solved_before(flower):
    _, model = flower
    mus = ps.sample(model, 3)
    there = [model.solve(mu).values for mu in mus]
    back = [model.solve(mu).values for mu in mus[::-1]][::-1]
    assert all(np.array_equal(a, b) for a, b in zip(there, back, strict=True))


def hostile(n=400):
    """A well-conditioned matrix that no multigrid suits: an orthogonal one, rows exchanged."""
    rng = np.random.default_rng(0)
    matrix = sparse.csr_array(np.linalg.qr(rng.standard_normal((n, n)))[0])
    return Pattern(matrix.indices, matrix.indptr, rng.random((n, 2))), matrix


def test_where_iterations_stall_the_direct_solver_takes_over_and_says_so():
    pattern, matrix = hostile()
    with pytest.warns(ParasolWarning, match="iterations stalled .*: solved directly instead"):
        factors = factorize(pattern, matrix.data, backend="iterative")
    assert factors.method == "superlu, iterations stalled"
    known = random_signs(matrix.shape[0])
    np.testing.assert_allclose(factors.solve(matrix @ known), known, atol=1e-10)


def test_a_right_hand_side_that_stalls_is_solved_directly_too(flower, monkeypatch):
    _, model = flower
    factors = factorize(model.terms.pattern, model.operator(model.vector()).data, backend="iterative")
    monkeypatch.setattr("parasol.pde.sparse_iterative._MOST_CYCLES", 1)
    monkeypatch.setattr("parasol.pde.sparse_iterative._CYCLE", 2)
    right = np.ones(model.n_unknowns)
    with pytest.warns(ParasolWarning, match="solved directly instead"):
        values = factors.solve(right)
    assert "iterations stalled" in factors.method
    np.testing.assert_allclose(factors.matrix @ values, right, atol=1e-8)


def test_what_gains_nothing_above_rounding_is_no_solution(monkeypatch):
    krylov = Krylov(hostile()[1], np.zeros(400))
    with pytest.raises(Stalled, match="relative residual"):
        krylov.solve(np.ones(400))
    monkeypatch.setattr("parasol.pde.sparse_iterative.gmres", lambda matrix, precondition, right, aim: (0 * right, 1))
    near = random_signs(400) * (1 + 1e-12 * np.arange(400.0) / 400)
    with pytest.raises(Stalled, match="relative residual"):
        krylov.solve(krylov.block @ random_signs(400), guess=near)


def test_elimination_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(sparse_direct, "memory_bytes", lambda: 1e6)
    pattern, matrix = hostile()
    with pytest.raises(SolveFailed, match=r"iterations stalled .* needs about .* GB .* Use fewer nodes"):
        factorize(pattern, matrix.data, backend="iterative")


def test_a_preconditioner_that_grows_beyond_all_numbers_ends_the_cycle():
    right = np.arange(1.0, 6.0)
    change, count = gmres(np.diag(right), lambda r: 1e200 * r, right, 1e-12)  # entries are finite, their norms are not
    assert not np.any(change)
    assert count == 1


def test_conditions_on_slopes_in_space_where_most_rows_touch_a_ghost():
    x, y, z = ps.coordinates("x y z")
    u = ps.unknown("u", x, y, z)
    problem = ps.Problem(ps.Ball((0.0, 0.0, 0.0), 1.0), ps.Eq(-ps.laplacian(u) + u, x), ps.Neumann(x))
    direct = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=800), solver="direct")
    found = replace(direct, solver="iterative", terms=replace(direct.terms, pattern=copied(direct))).solve()
    assert found.backend.startswith("iterative")
    assert difference(direct.solve(), found) < 1e-11


def test_right_hand_sides_of_zeros_and_of_what_is_not_finite(flower):
    factors = flower[1].factors(flower[1].vector())
    zero = np.zeros(flower[1].n_unknowns)
    assert not np.any(factors.solve(zero))
    assert not np.any(factors.solve_transposed(zero))
    assert np.any(np.isnan(factors.solve(zero + np.nan)))


@pytest.mark.parametrize("backend", ["superlu", "iterative"])
def test_a_singular_matrix_is_refused_with_its_reason(backend):
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    equation = ps.Eq(-u.diff(x, 2) - u.diff(y, 2), x)
    problem = ps.Problem(domain=ps.Disc(), equation=equation, boundary=ps.Neumann(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=500), solver="iterative")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)
        with pytest.raises(SingularMatrixError, match="only up to a constant"):
            factorize(model.terms.pattern, model.operator(model.vector()).data, backend=backend)


def test_matrices_of_ones_own():
    n = 60
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    plane = sparse.csr_array(sparse.kron(line, sparse.eye_array(n)) + sparse.kron(sparse.eye_array(n), line))
    (a,) = ps.parameters(a=(1.0, 3.0))
    terms = {1: plane, a: sparse.eye_array(n * n).tocsr()}
    found = [ps.AffineModel(terms, {1: np.ones(n * n)}, solver=s).solve([2.0]) for s in ("direct", "iterative")]
    assert found[1].backend.startswith("iterative")
    assert difference(*found) < 1e-11
