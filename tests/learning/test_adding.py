"""More data: joined, learned again, and where they should come from."""

import numpy as np
import pytest

import parasol as ps

X = np.linspace(0, 1, 11)


def runs(a, b):
    return ps.Results(
        {"a": a, "b": b}, {"u": np.exp(-np.multiply.outer(a, X)) * b[:, None], "sum": a + b}, points=X[:, None]
    )


def drawn(n, seed):
    return np.random.default_rng(seed).uniform([1, 1], [3, 2], (n, 2)).T


@pytest.fixture(scope="module")
def few():
    box = {"a": (1, 3), "b": (1, 2)}
    return ps.learn(data=runs(*drawn(60, 0)), tolerance=1e-4, parameters=box, recipe="polynomial")


def test_more_data_are_learned_with_those_there_were(few, tmp_path):
    a, b = drawn(200, 1)
    more = few.updated(ps.Results({"b": b, "a": a}, {"sum": a + b, "u": runs(a, b).fields["u"]}, points=X[:, None]))
    assert more.parameters == few.parameters
    assert more.conformal.n_calibration > few.conformal.n_calibration
    truth = runs(*drawn(100, 2))
    errors = [ps.accuracy(s, truth).errors for s in (few, more)]
    assert np.median(errors[1]) < 0.5 * np.median(errors[0])
    loaded = ps.load(ps.save(few, tmp_path / "few.parasol"))
    assert loaded.origin is None
    with pytest.raises(ps.ParasolError, match="a file does not hold them"):
        loaded.updated(truth)
    with pytest.raises(ps.ParasolError, match=r"Give ps\.Results"):
        few.updated((a, b))


def test_runs_of_another_kind_are_not_joined(few):
    a, b = drawn(10, 1)
    whole = runs(a, b)
    for other in (
        ps.Results({"a": a, "b": b}, {"u": whole.fields["u"], "sum": a}, points=2 * X[:, None]),
        ps.Results({"a": a, "b": b}, {"u": whole.fields["u"]}, points=X[:, None]),
        ps.Results({"a": a, "c": b}, {"u": whole.fields["u"], "sum": a}, points=X[:, None]),
    ):
        with pytest.raises(ps.ParasolError, match="cannot be joined"):
            _ = whole + other
    assert len(whole + whole) == 20


def test_snapshots_are_joined_if_they_belong_together():
    one, two = (ps.reduction.as_snapshots([[k]], [[k, 2.0]]) for k in (1.0, 2.0))
    both = one + two
    assert np.array_equal(both.mus, [[1.0], [2.0]])
    assert np.array_equal(both.solutions, [[1.0, 2.0], [2.0, 2.0]])
    with pytest.raises(ps.ParasolError, match="do not belong together"):
        _ = one + ps.reduction.as_snapshots([[1.0]], [[1.0]])
    line, curve = (lambda mu: np.array([mu[0], 1.0])), (lambda mu: np.array([mu[0] ** 2, 1.0]))
    solved = [ps.solve_many(solver, [[1.0], [2.0]], fingerprint=name) for solver, name in ((line, "a"), (curve, "b"))]
    with pytest.raises(ps.ParasolError, match="two different problems"):
        _ = solved[0] + solved[1]
    assert len(solved[0] + ps.solve_many(line, [[3.0]], fingerprint="a")) == 3


def test_the_next_runs_are_far_from_those_there_are():
    a = np.concatenate([np.linspace(1, 2, 40), [3.0]])
    data = ps.Results({"a": a}, {"u": np.exp(-np.multiply.outer(a, X))}, points=X[:, None])
    surrogate = ps.learn(data=data, tolerance=0.5, recipe="polynomial")
    found = ps.suggest(surrogate, 3)[:, 0]
    assert found[0] == pytest.approx(2.5, abs=0.01)
    assert sorted(found[1:]) == pytest.approx([2.25, 2.75], abs=0.02)
    box = {"a": (1, 3), "n": ps.Choice(1, 2)}
    table = {"a": np.tile(a, 2), "n": np.repeat([1, 2], 41)}
    both = ps.Results(table, np.multiply.outer(table["a"] * table["n"], X), groups=range(82))
    chosen = ps.suggest(ps.learn(data=both, tolerance=0.5, parameters=box, recipe="polynomial"), 4)
    assert set(chosen[:, 1]) == {1.0, 2.0}


def test_where_errors_follow_the_parameters_they_count():
    """Few samples: the fits that leave one out differ where the function is steep."""
    a = np.linspace(-1, 1, 21) + 0.01 * np.random.default_rng(0).random(21)
    data = ps.Results({"a": a}, {"u": np.arctan(np.multiply.outer(30 * a, [1.0, 2.0]))})
    with pytest.warns(ps.ParasolWarning):
        surrogate = ps.learn(data=data, tolerance=1e-3, recipe="gaussian process")
    assert surrogate.jackknife is not None
    assert np.all(np.abs(ps.suggest(surrogate, 3)) < 0.5)


def test_what_a_file_does_not_say_is_asked_for(few, tmp_path):
    loaded = ps.load(ps.save(few, tmp_path / "few.parasol"))
    with pytest.raises(ps.ParasolError, match="data=results"):
        ps.suggest(loaded, 2)
    assert np.array_equal(ps.suggest(loaded, 2, data=runs(*drawn(60, 0))), ps.suggest(few, 2))


def test_ranges_that_nobody_declared_grow_with_the_data():
    """New runs lie beyond the old ones nearly always."""
    a, b = drawn(60, 3)
    inner = (a > 1.5) & (b > 1.3)
    first = ps.learn(data=runs(a[inner], b[inner]), tolerance=1e-2, recipe="polynomial")
    more = first.updated(runs(a[~inner], b[~inner]))
    assert more.parameters.bounds.tolist() == [[a.min(), b.min()], [a.max(), b.max()]]
    with pytest.raises(ps.ParasolError, match="data is a int"):
        ps.suggest(first, 1, data=3)


def test_quantities_of_one_name_are_the_same():
    a, _ = drawn(3, 0)

    def made(quantity):
        return ps.Results({"a": a}, {"u": np.outer(a, X)}, quantities={"q": quantity})

    one = made(lambda run: run["u"].max())
    assert len(one + made(lambda run: run["u"].max())) == 6
    for other in (made(lambda run: run["u"].mean()), made(np.ones(11))):
        with pytest.raises(ps.ParasolError, match="cannot be joined"):
            one + other
    with pytest.raises(ps.ParasolError, match="2 and 1 parameters"):
        ps.Results(np.ones((3, 2)), np.ones((3, 4))) + ps.Results(np.ones((3, 1)), np.ones((3, 4)))


def test_runs_of_other_times_cells_or_texts_are_not_joined_and_groups_are():
    a, square = np.array([1.0, 2.0]), np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])

    def made(u, table=None, **options):
        return ps.Results(table or {"a": a}, {"u": u}, **options)

    still, moving = np.ones((2, 4)), np.ones((2, 3, 4))
    cells = [[0, 1, 2], [0, 2, 3]], [[0, 1, 3], [1, 2, 3]]
    pairs = [
        [made(moving, times=[0.0, 1.0, t]) for t in (2.0, 3.0)],
        [made(still, points=square, cells=some) for some in cells],
        [made(still, table={"a": ["steel", other]}) for other in ("brass", "wood")],
        [made(still, weights=[1.0, 1, 1, w]) for w in (1.0, 2.0)],
        [made(still), made(still, groups=[0, 1])],
    ]
    for one, other in pairs:
        with pytest.raises(ps.ParasolError, match="cannot be joined"):
            _ = one + other
        assert len(one + one) == 4
    grouped = made(still, groups=[0, 1]) + made(still, groups=[2, 2])
    assert grouped.groups.tolist() == [0, 1, 2, 2]


def test_learning_again_keeps_tolerance_ranges_and_seed():
    box = {"a": (1, 3), "b": (1, 2)}
    first, more = runs(*drawn(60, 0)), runs(*drawn(60, 1))
    again = ps.learn(data=first, tolerance=0.3, parameters=box, recipe="polynomial", rng=7).updated(more)
    whole = ps.learn(data=first + more, tolerance=0.3, parameters=box, recipe="polynomial", rng=7)
    assert again.facts["learn"]["tolerance"] == 0.3
    assert again.conformal.quantile == whole.conformal.quantile
    mus = np.array([[2.0, 1.5], [1.1, 1.9]])
    assert np.array_equal(again(mus).values, whole(mus).values)
    assert np.all(np.isinf(again([5.0, 1.5], extrapolate=True).quantity_bounds["sum"]))  # of a map of their own too
