"""What a check says of a promise, from its points alone: who may miss, how often, and what is drawn and written of it."""

import numpy as np
import pytest
from scipy.stats import betabinom

from parasol.report.budget.check import Budget
from parasol.report.budget.figure import draw_budget
from parasol.report.budget.page import _short

ERRORS = np.array([1e-4, 4e-4, 2e-4, 3e-4, 9e-4])


def budget(errors=ERRORS, *, bounds=None, proven=False, tolerance=1e-3, level=1.0, **more):
    errors = np.asarray(errors, dtype=float)
    n = len(errors)
    bounds = None if bounds is None else np.broadcast_to(np.asarray(bounds, dtype=float), (n,))
    known = {"n_calibration": None, "refinement": None, "kernel": None, "n_failed": 0, "total": False} | more
    rigorous = None if bounds is None else np.full(n, proven)
    return Budget(
        np.arange(n)[:, None] * 1.0, errors, 0.5 * errors, bounds, rigorous, ("a",), tolerance, level=level, **known
    )


def test_a_promise_in_total_counts_the_discretisation_and_others_do_not():
    off = {"refinement": 2e-4, "kernel": 5e-5}
    assert budget(**off).holds
    assert budget(**off).verdict == "holds: all 5 errors are within the promised 0.001"
    total = budget(total=True, **off)
    assert total.n_above == 1  # 9e-4 + 2e-4
    assert total.broken.startswith("1 of 5 errors exceed the promised 0.001")
    assert "which the promise includes" in _short(total)
    assert "that comes on top" in _short(budget(**off))


def test_a_proven_bound_may_not_miss_and_a_calibrated_one_may_a_few_times():
    assert budget(bounds=8e-4, proven=True).broken == "1 of 5 errors exceed a bound that claims to be proven"
    # one false proof is one too many, however many a calibrated promise may miss
    assert not budget(bounds=8e-4, proven=True, level=0.9, n_calibration=40).holds
    many = np.full(40, 1e-4)
    many[:5] = 9e-4
    likely = budget(many, bounds=5e-4, level=0.9, n_calibration=40)
    k = int(np.ceil(41 * 0.9))
    assert likely.allowed == betabinom.ppf(0.99, 40, 41 - k, k)
    assert 5 <= likely.allowed <= 12
    assert likely.holds
    assert likely.verdict == f"5 of 40 errors exceed their bounds; up to {likely.allowed} may, at level 0.9"
    many[: likely.allowed + 1] = 9e-4
    assert budget(many, bounds=5e-4, level=0.9, n_calibration=40).broken.endswith("exceed their bound, at level 0.9")
    # above the promise as many may lie as above the bounds, and no more
    many[:] = 1e-4
    many[: likely.allowed] = 2e-3
    assert budget(many, level=0.9, n_calibration=40).holds
    many[likely.allowed] = 2e-3
    assert not budget(many, level=0.9, n_calibration=40).holds


def test_probable_bounds_miss_together():
    """They share their random vectors: n (1 - level) miss on the mean, 1 / 100 of the time more than a hundred times that."""
    found = budget(np.full(50, 1e-4), bounds=2e-4, level=0.9997, probable=np.ones(50, dtype=bool))
    assert found.allowed == int(np.ceil(50 * (1 - 0.9997) / 0.01)) - 1 == 1
    assert budget(np.full(50, 1e-4), bounds=2e-4, level=0.9997, probable=np.zeros(50, dtype=bool)).allowed == 0


def test_the_worst_come_first_and_their_rings_are_theirs():
    found = budget([1e-4, 5e-3, 2e-4, 3e-3], tolerance=1e-3, refinement=2e-4, total=True)
    assert found.worst.tolist() == [1, 3, 2]
    _, right = draw_budget(found).axes
    rings = next(line for line in right.lines if line.get_label() == "2 above the promise")
    assert rings.get_ydata().tolist() == [3e-3, 5e-3]
    assert rings.get_xdata().tolist() == [3, 4]
    promise = next(line for line in right.lines if "promised" in str(line.get_label()))
    assert promise.get_ydata()[0] == pytest.approx(8e-4)  # what the discretisation leaves of it
    assert promise.get_label() == "promised, less the discretisation"


def test_where_nothing_is_promised_nothing_holds():
    assert budget(tolerance=None).verdict == "nothing is promised"
    assert budget(tolerance=None, bounds=1e-3).verdict == "holds: all 5 errors are within their bounds"
