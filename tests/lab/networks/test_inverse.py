"""Powers and inverses: within their accuracy in the worst cases, as large as said before they are built."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parasol.checks import ParasolError
from parasol_lab.theorem.networks.arithmetic import (
    MAX_LEVELS,
    inverse,
    inverse_size,
    power,
    power_size,
    size_of,
    unpack,
)
from parasol_lab.theorem.networks.assembly import BUILD
from parasol_lab.theorem.networks.inverse import _shared, n_factors
from parasol_lab.theorem.networks.schedule import Schedule, least_levels, trace


def symmetric(rng, n, norm, count=60):
    """Symmetric matrices of one norm: eigenvalues at ±norm, all at one end, spread between."""
    made = []
    for i in range(count):
        q, _ = np.linalg.qr(rng.standard_normal((n, n)))
        ends = norm * np.sign(rng.standard_normal(n))
        values = [np.full(n, norm), np.full(n, -norm), ends, np.append(norm, rng.uniform(-norm, norm, n - 1))][i % 4]
        made.append(q @ np.diag(values) @ q.T)
    return np.array(made)


def general(rng, n, norm, count=60):
    """Matrices of one spectral norm: random, of rank one, multiples of orthogonal ones, a Jordan block."""
    made = rng.standard_normal((count, n, n))
    made[::4] = made[::4, :, :1] * made[::4, :1, :]
    made[1::4] = np.linalg.qr(made[1::4])[0]
    made[2] = np.eye(n) + np.eye(n, k=1)
    return made * (norm / np.linalg.norm(made, 2, axis=(1, 2)))[:, None, None]


def vec(matrices):
    return np.swapaxes(matrices, 1, 2).reshape(len(matrices), -1)


def upper(matrices):
    n = matrices.shape[1]
    return np.array([[a[i, j] for j in range(n) for i in range(j + 1)] for a in matrices])


def worst(net, n, delta, *, packed=False):
    rng = np.random.default_rng(n)
    a = symmetric(rng, n, 1 - delta)
    if not packed:
        a = np.concatenate([a, general(rng, n, 1 - delta)])
    found, a = answers(net, a, packed=packed), np.eye(n) - a
    return np.max(np.linalg.norm(found - np.linalg.inv(a), 2, axis=(1, 2)))


def answers(net, a, *, packed):
    out = net(upper(a)) @ unpack(a.shape[1]).T if packed else net(vec(a))
    return np.swapaxes(out.reshape(a.shape), 1, 2)


# n, delta, accuracy; then L and M of the paper's construction, of shared powers, and of those for symmetric matrices.
# The notes had (26, 4820), (66, 72 462), (104, 730 090), (137, 1 112 160) for the first and (23, 3624), (59, 38 436),
# (91, 302 280), (119, 395 470) for the second, with 16 weights for a level of a product instead of 14.
TABLE = [
    (2, 0.5, 0.1, (25, 3704), (16, 1822), (9, 558)),
    (3, 0.2, 0.01, (65, 59_295), (46, 24_195), (36, 10_578)),
    (5, 0.05, 0.1, (103, 616_205), (69, 183_700), (48, 65_735)),
    (5, 0.05, 0.01, (136, 942_655), (90, 243_190), (57, 79_215)),
]


@pytest.mark.parametrize(("n", "delta", "accuracy", "paper", "shared", "halved"), TABLE)
def test_table_of_inverses(n, delta, accuracy, paper, shared, halved):
    for powers, packed, want in (("paper", False, paper), ("shared", False, shared), ("shared", True, halved)):
        net = inverse(n, delta, accuracy, powers, symmetric=packed)
        size = inverse_size(n, delta, accuracy, powers, symmetric=packed)
        assert (net.depth, net.n_weights) == want
        assert size == size_of(net, size.levels)
        assert worst(net, n, delta, packed=packed) <= accuracy


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize(("delta", "accuracy"), [(0.9, 0.2), (0.5, 1e-6), (0.1, 0.2), (0.02, 1e-4)])
def test_inverse_keeps_its_accuracy_and_its_size(n, delta, accuracy):
    for packed in (False, True):
        net, size = inverse(n, delta, accuracy, symmetric=packed), inverse_size(n, delta, accuracy, symmetric=packed)
        assert size == size_of(net, size.levels)
        assert worst(net, n, delta, packed=packed) <= accuracy
        assert least_levels(n, delta, accuracy, packed).n_factors <= n_factors(delta, accuracy) + 1


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.sampled_from([0.5, 0.2, 0.05]), st.integers(1, 4), st.booleans(), st.data())
def test_bound_of_any_schedule_holds(n, delta, steps, packed, data):
    levels = st.lists(st.integers(1, 5), min_size=steps, max_size=steps).map(tuple)
    schedule = Schedule(n, delta, data.draw(levels), data.draw(levels), packed)
    assert worst(_shared(BUILD, schedule), n, delta, packed=packed) <= trace(schedule).bound * (1 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.sampled_from([0.5, 0.2, 0.05]), st.integers(1, 4), st.data())
def test_contraction_of_any_schedule_holds(n, delta, steps, data):
    levels = st.lists(st.integers(1, 5), min_size=steps, max_size=steps).map(tuple)
    schedule = Schedule(n, delta, data.draw(levels), data.draw(levels), True)
    a = symmetric(np.random.default_rng(n), n, 1 - delta)
    left = np.eye(n) - answers(_shared(BUILD, schedule), a, packed=True) @ (np.eye(n) - a)
    assert np.max(np.linalg.norm(left, 2, axis=(1, 2))) <= trace(schedule).contraction * (1 + 1e-12)


def test_a_contraction_takes_fewer_doublings_than_an_accuracy():
    coarse, fine = least_levels(6, 1e-3, 0.3, True, True), least_levels(6, 1e-3, 0.3, True)
    assert trace(coarse).contraction <= 0.3 < trace(coarse).bound
    assert coarse.n_factors < fine.n_factors


def test_bound_is_the_remainder_when_products_are_exact():
    fine = (MAX_LEVELS,) * 3
    assert np.isclose(trace(Schedule(2, 0.3, fine, fine)).bound, 0.7**16 / 0.3, rtol=1e-9)


def test_no_level_of_a_schedule_can_go():
    schedule = least_levels(4, 0.1, 1e-3)
    assert trace(schedule).bound <= 1e-3
    for name in ("squares", "products"):
        levels = getattr(schedule, name)
        for i in range(len(levels)):
            fewer = (*levels[:i], levels[i] - 1, *levels[i + 1 :])
            shorter = {"squares": schedule.squares, "products": schedule.products, name: fewer}
            assert trace(Schedule(4, 0.1, **shorter)).bound > 1e-3 or levels[i] == 1


def test_paper_takes_the_factors_its_remainder_needs():
    for delta in (0.9, 0.5, 0.1, 1e-3):
        for accuracy in (0.2, 1e-3, 1e-8):
            assert (1 - delta) ** (2.0 ** n_factors(delta, accuracy)) / delta <= accuracy / 2


@pytest.mark.parametrize("exponent", [0, 1, 2, 4])
@pytest.mark.parametrize("accuracy", [0.2, 1e-4])
def test_powers(exponent, accuracy):
    n, rng = 3, np.random.default_rng(0)
    a = np.concatenate([symmetric(rng, n, 1.0), general(rng, n, 1.0)])
    net, size = power(n, exponent, accuracy), power_size(n, exponent, accuracy)
    found = np.swapaxes(net(vec(a)).reshape(len(a), n, n), 1, 2)
    errors = np.linalg.norm(found - np.linalg.matrix_power(a, 2**exponent), axis=(1, 2))
    assert np.max(errors) <= (accuracy if exponent else 0.0)
    assert size == size_of(net, size.levels)


def test_weights_grow_with_the_cube_of_n_and_slowly_with_the_accuracy():
    ns = np.array([16, 32, 64])
    sizes = [inverse_size(int(n), 0.1, 1e-3) for n in ns]
    per_level = [s.n_weights / s.levels for s in sizes]
    assert abs(np.polyfit(np.log(ns), np.log(per_level), 1)[0] - 3) < 0.05
    digits = np.array([2, 4, 8])
    few = [inverse_size(8, 0.1, 10.0**-k).n_weights for k in digits]
    slope = np.polyfit(np.log(digits), np.log(few), 1)[0]
    assert 0.5 < slope < 1.1  # log(1/ε) · loglog(1/ε) at most, where the paper's bound has the square of log(1/ε)


def test_seventeen_modes_are_built_fast_and_small():
    size = inverse_size(17, 1.2e-3, 1e-3, symmetric=True)
    net = inverse(17, 1.2e-3, 1e-3, symmetric=True)
    assert net.n_weights == size.n_weights == 9_794_312
    assert net.n_bytes < 100e6 < size.n_bytes
    a = symmetric(np.random.default_rng(0), 17, 1 - 1.2e-3, 4)
    found = answers(net, a, packed=True)
    assert np.max(np.linalg.norm(found - np.linalg.inv(np.eye(17) - a), 2, axis=(1, 2))) <= 1e-3


def test_mistakes_are_told():
    with pytest.raises(ParasolError, match=r"delta=1.5 is not in \(0, 1\)"):
        inverse(2, 1.5, 0.1)
    with pytest.raises(ParasolError, match="delta must be positive"):
        inverse(2, 0.0, 0.1)
    with pytest.raises(ParasolError, match="accuracy must be positive"):
        inverse(2, 0.1, -0.1)
    with pytest.raises(ParasolError, match="powers='mine' is unknown"):
        inverse(2, 0.1, 0.1, "mine")
    with pytest.raises(ParasolError, match=r"not in \(0, 1/4\), where the paper's proof holds"):
        inverse(2, 0.1, 0.3, "paper")
    with pytest.raises(ParasolError, match="does not use symmetry"):
        inverse(2, 0.1, 0.1, "paper", symmetric=True)
    with pytest.raises(ParasolError, match="at least 0, got -1"):
        power(2, -1, 0.1)
    with pytest.raises(ParasolError, match=r"accuracy=1.0 is not in \(0, 1\)"):
        power(2, 1, 1)


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda accuracy: inverse(2, 1e-4, accuracy), lambda accuracy: inverse_size(2, 1e-4, accuracy)),
        (
            lambda accuracy: inverse(2, 1e-4, accuracy, symmetric=True),
            lambda accuracy: inverse_size(2, 1e-4, accuracy, symmetric=True),
        ),
        (lambda accuracy: inverse(2, 0.3, accuracy, "paper"), lambda accuracy: inverse_size(2, 0.3, accuracy, "paper")),
        (lambda accuracy: power(2, 3, accuracy), lambda accuracy: power_size(2, 3, accuracy)),
    ],
)
def test_the_smallest_accuracy_that_float64_reaches_is_told_and_works(make, size):
    with pytest.raises(ParasolError, match=f"float64 resolves {MAX_LEVELS}") as told:
        make(1e-14)
    assert size(1e-14).levels > MAX_LEVELS  # what cannot be built is counted all the same
    advice = float(re.search(r"accuracy >= ([0-9.e+-]*[0-9])", str(told.value)).group(1))
    assert size(advice).levels in (MAX_LEVELS - 1, MAX_LEVELS)  # the paper's l jumps by one
    assert make(advice).n_weights == size(advice).n_weights
    assert size(advice / 8).levels > MAX_LEVELS


def test_where_the_paper_cannot_be_held_the_other_construction_is_advised():
    with pytest.raises(ParasolError, match=r"needs 34 levels .* Use powers='shared'"):
        inverse(17, 1.2e-3, 1e-3, "paper")
    assert inverse_size(17, 1.2e-3, 1e-3, "paper").levels == 34
