import numpy as np
import pytest
from scipy import sparse

import parasol as ps
from parasol.checks import ParasolError
from parasol.pde.sparse_direct import SingularMatrixError, factorize
from parasol.pde.sparse_pattern import Pattern, nested_dissection


@pytest.fixture(scope="module")
def model():
    return ps.discretize(ps.load_problem("helmholtz"), ps.scatter(ps.load_problem("helmholtz").domain, n_nodes=600))


def pattern_of(matrix, points=None):
    matrix = matrix.tocsr()
    points = np.arange(float(matrix.shape[0]))[:, None] if points is None else points
    return Pattern(matrix.indices, matrix.indptr, points), matrix.data


def test_factors_agree_with_a_dense_solve(model):
    mu = np.array([0.3, 1.0])
    matrix = model.operator(mu).toarray()
    right = np.random.default_rng(0).standard_normal((model.n_unknowns, 3))
    np.testing.assert_allclose(model.factors(mu).solve(right), np.linalg.solve(matrix, right), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(
        model.factors(mu).solve(right[:, 0]), np.linalg.solve(matrix, right[:, 0]), rtol=1e-7, atol=1e-10
    )


def test_value_rows_are_eliminated(model):
    assert np.count_nonzero(model.terms.pattern.stated) == model.nodes.n_boundary
    assert len(model.terms.pattern.order) == model.nodes.n_interior


def test_dissection_is_a_permutation_and_fills_less_than_the_natural_order():
    rng = np.random.default_rng(0)
    ticks = np.arange(24)
    points = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)[rng.permutation(24**2)]
    near = np.max(np.abs(points[:, None] - points[None]), axis=-1) <= 1
    graph = sparse.csr_array(near.astype(float))
    order = nested_dissection(graph, points.astype(float))
    assert sorted(order) == list(range(24**2))

    def fill(p):
        matrix = (graph + 20 * sparse.eye_array(24**2)).tocsr()[p][:, p].tocsc()
        return sparse.linalg.splu(matrix, permc_spec="NATURAL", options={"SymmetricMode": True}).nnz

    assert fill(order) < 0.5 * fill(np.arange(24**2))


def test_points_that_coincide_do_not_stop_the_dissection():
    graph = sparse.csr_array(np.ones((100, 100)))
    assert sorted(nested_dissection(graph, np.zeros((100, 2)))) == list(range(100))


@pytest.mark.parametrize(
    "matrix", [np.diag([1.0, 2.0, 0.0]), np.ones((4, 4)), np.array([[1.0, 2.0], [2.0, 4.0 + 1e-16]])]
)
def test_singular_matrices_are_refused(matrix):
    with pytest.raises(SingularMatrixError):
        factorize(
            *pattern_of(
                sparse.csr_array(matrix)
                if matrix[-1, -1]
                else sparse.csr_array((np.array([1.0, 2.0, 0.0]), [0, 1, 2], [0, 1, 2, 3]))
            )
        )


def test_a_zero_diagonal_falls_back_to_full_pivoting():
    matrix = sparse.csr_array(np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 2.0], [0.5, 2.0, 0.0]]))
    right = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(factorize(*pattern_of(matrix)).solve(right), np.linalg.solve(matrix.toarray(), right))


def test_entries_that_are_not_finite_are_refused():
    matrix = sparse.csr_array(np.array([[np.nan, 1.0], [1.0, 2.0]]))
    with pytest.raises(SingularMatrixError, match="NaN"):
        factorize(*pattern_of(matrix))


def test_backends_agree(model):
    pytest.importorskip("pymklpardiso")
    mu = np.array([0.3, 1.0])
    load = model.load(mu)
    data = model.operator(mu).data
    found = factorize(model.terms.pattern, data, backend="mkl")
    assert found.backend == "mkl"
    np.testing.assert_allclose(found.solve(load), model.factors(mu).solve(load), rtol=1e-8, atol=1e-12)


def test_mkl_factors_stay_valid_while_others_are_made(model):
    pytest.importorskip("pymklpardiso")
    mus = np.array([[0.3, 1.0], [2.0, 0.5], [4.0, 2.0]])
    load = model.load(mus[0])
    kept = [factorize(model.terms.pattern, model.operator(mu).data, backend="mkl") for mu in mus]
    again = [
        factorize(model.terms.pattern, model.operator(mu).data, backend="mkl").solve(load) for mu in mus
    ]  # analysis reused
    for factors, other, mu in zip(kept, again, mus, strict=True):
        np.testing.assert_allclose(factors.solve(load), model.factors(mu).solve(load), rtol=1e-7, atol=1e-11)
        np.testing.assert_allclose(other, model.factors(mu).solve(load), rtol=1e-7, atol=1e-11)


def test_unknown_backend():
    with pytest.raises(ParasolError, match="auto, direct, iterative, superlu, mkl"):
        factorize(*pattern_of(sparse.eye_array(3).tocsr()), backend="cholmod")


def test_constant_matrices_are_factorised_once():
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))
    first, second = model.sample(2)
    assert model.factors(first) is model.factors(second)


def test_factors_are_shared_across_parameters_that_leave_the_matrix_alone():
    x, t = *ps.coordinates("x"), ps.time()
    u = ps.unknown("u", x, t)
    (source,) = ps.parameters(source=(0.0, 1.0))
    problem = ps.Problem(
        ps.Box(0, 1), ps.Eq(u.diff(t), u.diff(x, 2) + source), ps.Dirichlet(0), initial=0, times=[0, 1]
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=60))
    first, second = model.system([0.2]), model.system([0.8])
    factors = first.factorize(first.damping + 0.1 * first.stiffness)
    assert second.factorize(second.damping + 0.1 * second.stiffness) is factors
    assert second.factorize(second.damping + 0.2 * second.stiffness) is not factors


def test_factors_are_one_s_own_where_another_thread_factorises_meanwhile(monkeypatch):
    problem = ps.load_problem("heat")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=60))
    system = model.system(model.vector())
    mine, other = system.damping + 0.1 * system.stiffness, system.damping + 0.2 * system.stiffness
    system.factorize(mine)
    equal = np.array_equal

    def interrupted(*arrays):
        result = equal(*arrays)
        model.terms.pattern.last[:] = [factorize(model.terms.pattern, other)]  # what another thread would do
        return result

    monkeypatch.setattr(np, "array_equal", interrupted)
    assert equal(system.factorize(mine).matrix.data, mine)
