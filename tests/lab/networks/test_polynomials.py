"""Polynomials and reciprocals of parameters: within their accuracy, exact where degree one, as large as said."""

import re

import numpy as np
import pytest

from parasol.checks import ParasolError
from parasol_lab.theorem.networks.arithmetic import (
    MAX_LEVELS,
    polynomial,
    polynomial_size,
    reciprocal,
    reciprocal_size,
    size_of,
)

CASES = {
    "square": ([{(2,): 1.0}], [[0.0, 2.0]]),
    "cubic": ([{(3,): 1.0, (1,): -2.0, (0,): 0.5}], [[-1.0, 2.0]]),
    "several": ([{(2, 0): 2.0, (0, 0): 1.0}, {(0, 1): 1.0, (3, 2): -4.0}, {(1, 1): 1.0}], [[0.0, 1.0], [-2.0, 3.0]]),
    "high": ([{(5,): 1.0, (1,): 2.0}, {(8,): 0.5, (0,): 3.0}], [[-1.5, 1.0]]),
    "three": ([{(7, 1, 0): 1.0, (0, 0, 1): 1.0, (0, 2, 2): 0.3}], [[0.0, 2.0], [1.0, 2.0], [-0.5, 0.25]]),
    "some of degree one": ([{(1, 0): 3.0}, {(1, 1): 1.0}, {}], [[0.0, 2.0], [0.0, 0.0]]),
}


def values(terms, x):
    return np.array([sum((c * np.prod(x**e, axis=1) for e, c in p.items()), np.zeros(len(x))) for p in terms]).T


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("accuracy", [0.3, 1e-2, 1e-6])
def test_polynomials(name, accuracy):
    terms, box = CASES[name]
    ends, rng = np.array(box), np.random.default_rng(0)
    corners = np.stack(np.meshgrid(*ends), axis=-1).reshape(-1, len(ends))
    x = np.vstack([rng.uniform(ends[:, 0], ends[:, 1], (3000, len(ends))), corners])
    net, size = polynomial(terms, box, accuracy), polynomial_size(terms, box, accuracy)
    assert np.max(np.abs(net(x) - values(terms, x))) <= accuracy
    assert size == size_of(net, size.levels)


def test_degree_one_is_one_exact_layer():
    terms = [{(1, 0): 0.1, (0, 0): -3.0}, {(0, 1): 7.0}, {(0, 0): 2.0}]
    net = polynomial(terms, [[0.3, 1.7], [-2.0, 5.0]], 1e-12)
    x = np.random.default_rng(0).uniform(0.3, 1.7, (100, 2))
    assert np.array_equal(net.weights[0].toarray(), [[0.1, 0.0], [0.0, 7.0], [0.0, 0.0]])
    assert np.allclose(net(x), values(terms, x), rtol=1e-15, atol=1e-15)
    assert (net.depth, net.n_weights) == (1, 4)
    assert size_of(net) == polynomial_size(terms, [[0.3, 1.7], [-2.0, 5.0]], 1e-12)


def test_monomials_are_computed_once_and_in_few_stages():
    box, accuracy = [[-1.0, 1.0]], 1e-3
    one = polynomial_size([{(8,): 1.0}], box, accuracy)
    two = polynomial_size([{(8,): 1.0}, {(8,): 1.0}], box, accuracy)
    assert one.depth == 3 * (one.levels + 2)  # x², x⁴, x⁸
    assert two.n_weights - one.n_weights == 3  # one more row in the last layer
    ninth = polynomial_size([{(9,): 1.0}], box, accuracy)
    assert ninth.depth == 4 * (ninth.levels + 2)


@pytest.mark.parametrize(("low", "high"), [(1.0, 4.0), (0.1, 10.0), (-3.0, -1.0), (1.0, 1.01)])
@pytest.mark.parametrize("accuracy", [0.3, 1e-2, 1e-6])
def test_reciprocal(low, high, accuracy):
    net, size = reciprocal(low, high, accuracy), reciprocal_size(low, high, accuracy)
    x = np.linspace(low, high, 2001)[:, None]
    assert np.max(np.abs(net(x) - 1 / x)) <= accuracy
    assert size == size_of(net, size.levels)


def test_mistakes_are_told():
    with pytest.raises(ParasolError, match=r"no bound on \[-1.0, 2.0\]"):
        reciprocal(-1, 2, 0.1)
    with pytest.raises(ParasolError, match="low < high"):
        reciprocal(2, 1, 0.1)
    with pytest.raises(ParasolError, match="2 whole numbers"):
        polynomial([{(1,): 1.0}], [[0, 1], [0, 1]], 0.1)
    with pytest.raises(ParasolError, match="whole numbers of at least 0"):
        polynomial([{(-1,): 1.0}], [[1, 2]], 0.1)
    with pytest.raises(ParasolError, match=r"exponents \(1,\) is nan"):
        polynomial([{(1,): np.nan}], [[1, 2]], 0.1)
    with pytest.raises(ParasolError, match="no polynomials"):
        polynomial([], [[1, 2]], 0.1)
    with pytest.raises(ParasolError, match="box has shape"):
        polynomial([{(1,): 1.0}], [1, 2], 0.1)
    with pytest.raises(ParasolError, match=f"float64 resolves {MAX_LEVELS}") as told:
        polynomial([{(2,): 1.0}], [[0, 100]], 1e-14)
    advice = float(re.search(r"accuracy >= (\S+)\.$", str(told.value)).group(1))
    assert polynomial_size([{(2,): 1.0}], [[0, 100]], advice).levels == MAX_LEVELS
