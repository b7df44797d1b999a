from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from parasol.errors import NotInstalled, ParasolError
from parasol.runtime import products
from parasol.runtime.basis import Basis
from parasol.runtime.products import MatrixProduct, repeated


def random_basis(rng, n_values=30, n_modes=4, weighted=False):
    weights = rng.uniform(0.1, 10.0, n_values) if weighted else None
    root = np.ones(n_values) if weights is None else np.sqrt(weights)
    modes = np.linalg.qr(rng.standard_normal((n_values, n_modes)))[0] / root[:, None]
    return Basis(modes, weights)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_projection_is_orthogonal_and_pythagoras_holds(seed, weighted):
    rng = np.random.default_rng(seed)
    basis = random_basis(rng, weighted=weighted)
    solutions = rng.standard_normal((5, 30))
    coefficients = basis.project(solutions)
    left_over = solutions - basis.lift(coefficients)
    np.testing.assert_allclose(basis.project(left_over), 0, atol=1e-13)
    np.testing.assert_allclose(basis.project(basis.lift(coefficients)), coefficients, atol=1e-13)
    squares = np.sum(coefficients**2, axis=1) + basis.norm(left_over) ** 2
    np.testing.assert_allclose(squares, basis.norm(solutions) ** 2, rtol=1e-12)


def test_the_error_of_learned_coefficients_splits_into_two_parts():
    rng = np.random.default_rng(0)
    basis = random_basis(rng, weighted=True)
    u, guess = rng.standard_normal(30), rng.standard_normal(4)
    whole = basis.norm(u - basis.lift(guess)) ** 2
    parts = (basis.projection_errors(u) * basis.norm(u)) ** 2 + np.sum((guess - basis.project(u)) ** 2)
    assert whole == pytest.approx(parts, rel=1e-12)


def test_norms_and_errors_are_those_of_the_weights():
    weights = np.array([1.0, 4.0, 9.0])
    basis = Basis(np.array([[1.0], [0.0], [0.0]]), weights)
    assert basis.norm([1.0, 1.0, 1.0]) == pytest.approx(np.sqrt(14))
    np.testing.assert_allclose(basis.projection_errors([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), [np.sqrt(13 / 14), 0])


def test_one_solution_and_many_agree():
    rng = np.random.default_rng(1)
    basis, solutions = random_basis(rng, weighted=True), rng.standard_normal((3, 30))
    for verb in (basis.project, basis.norm, basis.projection_errors):
        np.testing.assert_allclose(verb(solutions[1]), verb(solutions)[1], rtol=1e-13)
    np.testing.assert_allclose(basis.lift(np.ones(4)), basis.lift(np.ones((2, 4)))[0])


def test_rows_in_several_blocks_give_the_same(monkeypatch):
    rng = np.random.default_rng(2)
    basis, solutions = random_basis(rng, weighted=True), rng.standard_normal((7, 30))
    whole = basis.project(solutions), basis.projection_errors(solutions)
    monkeypatch.setattr("parasol.runtime.basis._BLOCK", 60)
    np.testing.assert_allclose(basis.project(solutions), whole[0], rtol=1e-13)
    np.testing.assert_allclose(basis.projection_errors(solutions), whole[1], rtol=1e-13)


def test_truncation_keeps_the_first_modes_and_forgets_the_measured_error():
    modes = np.eye(5)[:, :3]
    basis = Basis(
        modes, hidden=np.arange(6.0).reshape(2, 3), singular_values=np.array([3.0, 2.0, 1.0]), held_out_error=0.1
    )
    less = basis.truncated(2)
    np.testing.assert_array_equal(less.modes, modes[:, :2])
    np.testing.assert_array_equal(less.hidden, [[0, 1], [3, 4]])
    assert less.held_out_error is None
    assert len(less.singular_values) == 3
    with pytest.raises(ParasolError, match="n_modes=4 is more than the 3 modes"):
        basis.truncated(4)


def test_energy_discarded_is_right_where_a_difference_would_cancel():
    s = 10.0 ** -np.arange(0, 14)
    curve = Basis(np.eye(20)[:, :2], singular_values=s).energy_discarded
    assert curve[0] == 1
    # s² falls by 100 each time: the tail beyond d is s_d² · 1/99, less what comes after the last
    expected = np.sqrt(s[:13] ** 2 / 99 / (100 / 99))
    np.testing.assert_allclose(curve[1:12], expected[:11], rtol=1e-3)
    assert curve[13] == pytest.approx(1e-13 * np.sqrt(0.99), rel=1e-6)


def test_energy_that_no_singular_value_accounts_for_is_discarded_too():
    basis = Basis(np.eye(3)[:, :1], singular_values=np.array([4.0]), lost_energy=9.0)
    np.testing.assert_allclose(basis.energy_discarded, [1.0, 0.6])


def test_a_basis_cannot_be_changed():
    basis = Basis(np.eye(3)[:, :1])
    with pytest.raises(ValueError, match="read-only"):
        basis.modes[0, 0] = 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"modes": np.ones((4, 2))}, "not orthonormal"),
        ({"modes": np.eye(3)[:2]}, "Are they transposed"),
        ({"modes": np.eye(3), "weights": np.ones(2)}, "weights has shape"),
        ({"modes": np.eye(3), "weights": np.array([1.0, 0.0, 1.0])}, "1 of 3 weights are not positive"),
        ({"modes": np.full((3, 1), np.nan)}, "NaN"),
        ({"modes": np.eye(3), "hidden": np.ones((2, 2))}, "hidden has shape"),
    ],
)
def test_what_is_no_basis_is_refused(arguments, message):
    with pytest.raises(ParasolError, match=message):
        Basis(**arguments)


def test_solutions_of_another_length_are_refused():
    with pytest.raises(ParasolError, match="solutions has shape"):
        Basis(np.eye(3)[:, :1]).project(np.ones((2, 4)))


def test_a_matrix_product_is_the_same_without_scipy(monkeypatch):
    """Loading and asking need NumPy alone: sums by rows of the matrix, a block of solutions at a time."""
    rng = np.random.default_rng(3)
    part = rng.standard_normal((7, 7)) * (rng.random((7, 7)) < 0.4)
    dense = part @ part.T + np.diag(1 + rng.random(7))
    product, solutions = repeated(MatrixProduct.of(sparse.csr_array(dense)), 3), rng.standard_normal((5, 21))
    wanted = np.einsum("nki,ij,nkj->n", solutions.reshape(5, 3, 7), dense, solutions.reshape(5, 3, 7))
    assert product.energies(solutions) == pytest.approx(wanted, rel=1e-13)

    def absent(name):
        raise NotInstalled(name)

    monkeypatch.setattr(products, "borrowed", absent)
    monkeypatch.setattr(products, "_BLOCK", 4 * len(product.data))
    without = replace(product)
    assert without.energies(solutions) == pytest.approx(wanted, rel=1e-13)
    assert without.applied(solutions[0]) == pytest.approx((solutions[0].reshape(3, 7) @ dense).ravel(), rel=1e-13)
