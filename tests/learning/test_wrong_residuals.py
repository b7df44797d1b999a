"""Residuals of somebody's solver that are no numbers are not taken for zero."""

import numpy as np
import pytest

from parasol.errors import NoCertificate
from parasol.learning.by_residual import checked_residual
from parasol.reduction.snapshots import as_snapshots

TRAIN = as_snapshots([[1.0], [2.0]], [[1.0, 1.0], [0.5, 0.5]])


def good(mu, u):
    return mu[0] * u - 1.0


@pytest.mark.parametrize("lost", [np.nan, np.ma.masked])
@pytest.mark.parametrize("where", [0.0, 1.0, 0.5])
def test_a_residual_that_is_missing(lost, where):
    def residual(mu, u):
        found = np.ma.array(good(mu, u))
        if u[0] == where:
            found[0] = lost
        return found

    with pytest.raises(NoCertificate):
        checked_residual(residual, TRAIN)
    assert checked_residual(good, TRAIN)(np.array([2.0]), np.ones(2)).tolist() == [1.0, 1.0]
