"""Counted sizes lie below the sharper bounds, and those below the paper's; the ε-chain holds for real matrices."""

from itertools import product
from math import log2

import numpy as np
import pytest

from parasol.checks import ParasolError
from parasol_lab.theorem.networks.bounds import (
    KINDS,
    SizeBound,
    accuracies,
    inverse_bound,
    map_bound,
    matrix_product_bound,
    power_bound,
)
from parasol_lab.theorem.networks.inverse import inverse, inverse_size, n_factors, power_size
from parasol_lab.theorem.networks.products import matrix_product_size
from parasol_lab.theorem.networks.sizes import affine_size, parallel_size, sparse_concatenate_size

COUNTED = (("paper", "counting"), ("shared", "shared"))


def below(small, large) -> bool:
    return small.depth <= large.depth and small.n_weights <= large.n_weights


def test_products_at_a_power_of_four_are_one_level_below_their_bound():
    counted = matrix_product_size(2, 4, 2, 8 * 4.0**-6, 1.0, 1.0)
    assert (counted.depth, counted.n_weights) == (5 + 2, 16 * (14 * 5 + 8))
    bound = matrix_product_bound(2, 4, 2, accuracy=8 * 4.0**-6)
    assert (bound.depth, bound.n_weights) == (6 + 2, 16 * (14 * 6 + 8))


@pytest.mark.parametrize("z", [0.5, 1.0, 30.0])
def test_products_lie_below_both_bounds(z):
    for m, n, k, accuracy in product((1, 3), (1, 20), (1, 3), (0.25, 0.1, 1e-3, 1e-6)):
        counted = matrix_product_size(m, n, k, accuracy, z, z)
        bound = matrix_product_bound(m, n, k, accuracy=accuracy, z_a=z, z_b=z)
        assert below(counted, bound)
        assert below(bound, matrix_product_bound(m, n, k, accuracy=accuracy, z_a=z, z_b=z, kind="theorem"))


def test_powers_lie_below_their_bound():
    for n, doublings, accuracy in product((1, 2, 5, 17), (1, 2, 5), (0.25, 1e-2, 1e-5)):
        assert below(power_size(n, doublings, accuracy), power_bound(n, doublings, accuracy=accuracy))


@pytest.mark.parametrize(("powers", "kind"), COUNTED)
def test_inverses_lie_below_the_sharper_bound_and_that_below_the_papers(powers, kind):
    for n, delta, accuracy in product((1, 2, 5, 17), (0.9, 0.5, 0.05, 1e-3), (0.249, 1e-2, 1e-6)):
        bound = inverse_bound(n, delta, accuracy, kind=kind)
        assert below(inverse_size(n, delta, accuracy, powers), bound), (n, delta, accuracy)
        assert below(bound, inverse_bound(n, delta, accuracy, kind="theorem"))
        if powers == "shared":
            assert below(inverse_size(n, delta, accuracy, powers, symmetric=True), bound)


@pytest.mark.parametrize(("powers", "kind"), COUNTED)
def test_a_built_inverse_lies_within_three_times_of_its_bound(powers, kind):
    network, bound = inverse(3, 0.2, 0.01, powers), inverse_bound(3, 0.2, 0.01, kind=kind)
    assert network.depth <= bound.depth <= 3 * network.depth
    assert network.n_weights <= bound.n_weights <= 3 * network.n_weights


@pytest.mark.parametrize("delta", [0.9, 0.5, 0.1, 1e-2, 1e-4, 1e-6])
def test_the_tolerances_of_shared_powers_leave_half_of_the_accuracy(delta):
    for accuracy in (0.25, 1e-2, 1e-8):
        steps = n_factors(delta, accuracy)
        eta = accuracy * delta / (8 * steps)
        sigma = eta * delta
        q, of_power, of_product = 1 - delta, 0.0, 0.0
        for _ in range(steps - 1):  # the recursions of Proposition B in docs/theorem.md
            of_power, q = sigma + (2 * q + of_power) * of_power, q**2
            assert of_power <= 2.3 * sigma / delta
            assert q + of_power <= 1
            of_product = eta + (1 + q + of_power) * of_product + (1 - q) / delta * of_power
        assert of_product < accuracy / 2
        assert (1 - delta) ** (2**steps) / delta <= accuracy / 2


def test_the_lemmas_as_the_paper_cites_them_prove_a_factor_4_per_doubling_and_no_less():
    n, delta, accuracy = 5, 0.05, 0.01
    steps = n_factors(delta, accuracy)
    by_lemmas = [n * n + n]
    for i in range(2, steps + 1):
        share = 5.0 ** (i - steps - 1) * accuracy / 2
        times = matrix_product_bound(
            n, n, n, accuracy=share, z_a=3 + accuracy + 1 / delta, z_b=3 + accuracy + 1 / delta
        )
        own = power_bound(n, i - 1, accuracy=delta * share)
        waiting = 16 * n * n * (own.depth + 1)
        by_lemmas.append(2 * times.n_weights + 4 * by_lemmas[-1] + 8 * (n * n + n) + 8 * own.n_weights + waiting)
    counting, printed = (inverse_bound(n, delta, accuracy, kind=kind).n_weights for kind in ("counting", "theorem"))
    assert by_lemmas[-1] > 4 ** (steps - 2) * by_lemmas[1] > 100 * counting
    assert by_lemmas[-1] > printed  # so the printed induction, with factors 2, is not what the lemmas give


def test_growth_in_the_accuracy_is_quadratic_for_the_paper_and_nearly_linear_for_us():
    digits = np.array([60, 120, 240, 480, 960])
    slopes = {}
    for kind in KINDS:
        weights = [inverse_bound(8, 0.5, 2.0**-t, kind=kind).n_weights for t in digits.tolist()]
        slopes[kind] = np.polyfit(np.log(digits), np.log(weights), 1)[0]
    assert 1.9 < slopes["theorem"] < 2.1
    assert 2.1 < slopes["kutyniok"] < 2.6
    assert 1.2 < slopes["counting"] < 1.5
    assert 1.0 < slopes["shared"] < 1.2
    assert slopes["requ"] < 0.5
    t = 2.0**-960
    assert inverse_bound(8, 0.5, t).n_weights / (n_factors(0.5, t) * 8**3 * 960) == pytest.approx(14, rel=0.05)


@pytest.mark.parametrize(("alpha", "beta", "gamma"), [(1.0, 0.5, 1.0), (2400.0, 3.0, 200.0), (0.02, 0.01, 0.05)])
@pytest.mark.parametrize("relaxation", [1.0, 2.0])
def test_parts_that_err_as_much_as_the_chain_allows_give_coefficients_within_the_accuracy(
    alpha, beta, gamma, relaxation
):
    rng, accuracy = np.random.default_rng(0), 0.1
    chain = accuracies(alpha, beta, gamma, accuracy, relaxation=relaxation)
    rows, n, worst = 12, 4, 0.0

    def noise(m, k, size):
        u, _, v = np.linalg.svd(rng.standard_normal((m, k)), full_matrices=False)
        return size * (u @ v)

    for _ in range(50):
        q = np.linalg.qr(rng.standard_normal((rows, n)))[0]
        v = np.linalg.qr(rng.standard_normal((n, n)))[0]
        b = q @ np.diag([beta, alpha, *rng.uniform(beta, alpha, n - 2)]) @ v
        f = q @ v @ rng.standard_normal(n)  # in the range of B, where the coefficients are largest
        f *= gamma / np.linalg.norm(f)
        near = b + noise(rows, n, chain.gram_operator)
        gram = (b + noise(rows, n, chain.gram_operator)).T @ near + noise(n, n, chain.gram)
        iteration = np.eye(n) - chain.scale * gram
        assert np.linalg.norm(iteration, 2) <= 1 - chain.delta
        inverted = chain.scale * (np.linalg.inv(np.eye(n) - iteration) + noise(n, n, chain.neumann))
        load = f + noise(rows, 1, chain.load)[:, 0]
        moments = (b + noise(rows, n, chain.operator)).T @ load + noise(n, 1, chain.moments)[:, 0]
        c = inverted @ moments + noise(n, 1, chain.coefficients)[:, 0]
        worst = max(worst, np.linalg.norm(c - np.linalg.lstsq(b, f, rcond=None)[0]))
    assert accuracy / 5 < worst <= accuracy


def test_the_chain_is_the_papers_but_for_its_caps_and_its_scale():
    chain = accuracies(3.0, 0.5, 2.0, 0.01, relaxation=1)
    assert chain.gram_operator == pytest.approx(0.01 * 0.5**4 / (144 * 3.0**2 * 2.0))
    assert chain.scale == pytest.approx(1 / 9.25)
    assert chain.delta == pytest.approx(0.25 / 9.25 / 2)
    small = accuracies(0.02, 0.01, 0.05, 0.1)  # ε / (6 α γ) = 16.7, which no network for an inverse accepts
    assert small.inverse == 0.25
    assert max(small.moments, small.gram, small.neumann) <= 0.25


def counted_map(powers, n, rows, alpha, beta, gamma, accuracy, n_terms):
    """The network of the theorem put together from counted parts, B and f affine in the parameters."""
    chain = accuracies(alpha, beta, gamma, accuracy, relaxation=2 if powers == "shared" else 1)
    z_f = (alpha + chain.operator, gamma + chain.load)
    z_c = (chain.inverse + beta**-2, 2 * alpha * gamma)
    if powers == "paper":
        z_f, z_c = (sum(z_f),) * 2, (sum(z_c),) * 2
    z_b = alpha + chain.gram_operator
    b, f = affine_size(rows * n, rows * n * n_terms), affine_size(rows, rows, rows)
    times = matrix_product_size(n, rows, n, chain.gram, z_b, z_b)
    gram = sparse_concatenate_size(times, parallel_size(b, b))
    inverted = sparse_concatenate_size(inverse_size(n, chain.delta, chain.neumann, powers), gram)
    moments = sparse_concatenate_size(matrix_product_size(n, rows, 1, chain.moments, *z_f), parallel_size(b, f))
    last = matrix_product_size(n, n, 1, chain.coefficients, *z_c)
    return sparse_concatenate_size(last, parallel_size(inverted, moments))


@pytest.mark.parametrize(("powers", "kind"), COUNTED)
def test_the_whole_map_lies_below_the_sharper_bound_and_that_below_the_papers(powers, kind):
    for n, more, kappa, accuracy in product((1, 2, 6), (0, 40), (1.05, 3.0, 30.0), (0.2, 1e-3)):
        rows, n_terms = n + more, 3
        problem = dict(n_modes=n, n_rows=rows, alpha=1.0, beta=1 / kappa, gamma=1.0, accuracy=accuracy)
        sizes = dict(operator=SizeBound(1, rows * n * n_terms), load=SizeBound(1, 2 * rows))
        bound = map_bound(kind, **problem, **sizes)
        assert below(counted_map(powers, n, rows, 1.0, 1 / kappa, 1.0, accuracy, n_terms), bound), problem
        assert below(bound, map_bound("theorem", **problem, **sizes))


def test_the_shallower_network_of_the_parameters_waits_for_the_deeper():
    problem = dict(n_modes=4, n_rows=9, alpha=1.0, beta=0.4, gamma=1.0, accuracy=0.01)
    flat = map_bound("shared", **problem, operator=SizeBound(1, 100), load=SizeBound(1, 10))
    operator = map_bound("shared", **problem, operator=SizeBound(21, 100), load=SizeBound(1, 10))
    load = map_bound("shared", **problem, operator=SizeBound(1, 100), load=SizeBound(21, 10))
    assert (operator.depth, load.depth) == (flat.depth + 20, flat.depth)
    # 36 numbers of B wait 20 layers, and the bound lets the 16 of the inverse wait as well
    assert load.n_weights == flat.n_weights + 2 * 36 * (20 + 2) + 2 * 16 * 20
    assert flat.n_weights < operator.n_weights + 2 * 16 * 20


def test_bounds_come_in_the_order_of_their_exponents():
    problem = dict(n_modes=17, n_rows=52, alpha=1.0, beta=0.03, gamma=1.0, accuracy=0.01)
    sizes = dict(operator=SizeBound(1, 3 * 52 * 17), load=SizeBound(1, 52))
    weights = [
        map_bound(kind, **problem, **sizes).n_weights for kind in ("requ", "shared", "counting", "theorem", "kutyniok")
    ]
    assert weights == sorted(weights)
    assert weights[3] > 100 * weights[2]
    more_rows = map_bound("shared", **{**problem, "n_rows": 1036}, **sizes).n_weights
    assert log2(more_rows / weights[1]) < log2(1036 / 52)  # N costs, but not alone


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": 0.3}, "accuracy must lie in"),
        ({"accuracy": 0.0}, "accuracy must lie in"),
        ({"beta": 1.0}, "must lie below alpha"),
        ({"beta": 0.0}, "beta must be positive"),
        ({"gamma": float("nan")}, "gamma must be positive"),
        ({"n_rows": 3}, "n_rows=3 is below n_modes=4"),
        ({"kind": "sharp"}, "kind='sharp' is unknown"),
    ],
)
def test_wrong_inputs_say_what_to_do(change, message):
    given = dict(kind="shared", n_modes=4, n_rows=9, alpha=1.0, beta=0.4, gamma=1.0, accuracy=0.01)
    with pytest.raises(ParasolError, match=message):
        map_bound(**{**given, **change}, operator=SizeBound(1, 100), load=SizeBound(1, 10))


def test_wrong_gaps_and_relaxations_are_refused():
    with pytest.raises(ParasolError, match="delta must lie in"):
        inverse_bound(3, 1.0, 0.1)
    with pytest.raises(ParasolError, match="relaxation must lie in"):
        accuracies(1.0, 0.5, 1.0, 0.1, relaxation=3.0)
