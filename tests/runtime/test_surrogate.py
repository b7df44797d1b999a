"""Surrogates: what they answer, what they refuse, how they are repaired."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.runtime.features import features_of
from parasol.runtime.reduced import ReducedModel


@pytest.fixture(scope="module")
def model():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))


@pytest.fixture(scope="module")
def snapshots(model):
    return ps.solve_many(model, ps.sample(model, 40))


@pytest.fixture(scope="module")
def truth(model):
    return ps.solve_many(model, ps.sample(model, 50, design="random", rng=8))


@pytest.fixture(scope="module")
def surrogate(model, snapshots):
    return ps.fit(ps.reduce(model, ps.pod(snapshots, n_modes=15)), "polynomial", n_labels=600)


def test_stands_on_the_projection_error(surrogate, truth):
    found = ps.accuracy(surrogate, truth)
    assert found.mean < 1.1 * found.projection
    by_hand = np.linalg.norm(surrogate(truth.mus).values - truth.solutions, axis=1) / np.linalg.norm(
        truth.solutions, axis=1
    )
    assert np.allclose(found.errors, by_hand)


def test_one_parameter_or_many(surrogate, truth):
    many = surrogate(truth.mus)
    one = surrogate(truth.mus[3])
    assert one.values.shape == (300,)
    assert np.allclose(one.values, many.values[3])
    assert one.bound == pytest.approx(many.bound[3])
    assert one.extrapolated is False
    assert one.method == "map"
    with pytest.warns(DeprecationWarning, match="use answer.method"):
        assert one.road == "map"
    assert one.nodes.shape == (300, 2)
    assert surrogate.coefficients(truth.mus[3]).shape == (15,)


def test_bound_holds(surrogate, truth):
    answer = surrogate(truth.mus)
    assert np.all(ps.accuracy(surrogate, truth).errors <= answer.bound)
    assert np.all(answer.bounds.rigorous)


def test_float32_and_buffers(surrogate, truth):
    answer = surrogate(truth.mus)
    out = np.empty((50, 300), dtype=np.float32)
    found = surrogate(truth.mus, dtype=np.float32).lift(out)
    assert found is out
    assert surrogate(truth.mus[0], dtype=np.float32).values.dtype == np.float32
    assert np.allclose(out, answer.values, atol=1e-6 * np.abs(answer.values).max())
    blocks = list(answer.blocks(16))
    assert [len(b) for b in blocks] == [16, 16, 16, 2]
    assert np.allclose(np.concatenate(blocks), answer.values)


def test_many_queries_in_chunks_are_those_of_one_batch(surrogate, model):
    mus = ps.sample(model, 20000, design="random", rng=2)
    c = surrogate.coefficients(mus)
    assert c.shape == (20000, 15)
    assert np.allclose(c[[0, 9000, 19999]], surrogate.coefficients(mus[[0, 9000, 19999]]), rtol=0, atol=1e-12)


def test_restricted_to_nodes_points_and_times(surrogate, truth, model):
    whole = surrogate(truth.mus).values
    assert np.allclose(surrogate.restricted(nodes=[5, 7])(truth.mus).values, whole[:, [5, 7]])
    points = np.array([[0.1, 0.2], [-0.3, 0.1]])
    found = surrogate.restricted(points=points)(truth.mus[0]).values
    assert np.allclose(found, model.solve(truth.mus[0]).at(points), atol=1e-4)
    assert surrogate.restricted(points=points)(truth.mus[0]).bound == surrogate(truth.mus[0]).bound
    with pytest.raises(ps.ParasolError, match="outside the domain"):
        surrogate.restricted(points=[[3.0, 3.0]])
    with pytest.raises(ps.ParasolError, match="steady"):
        surrogate.restricted(times=[1.0])
    with pytest.raises(ps.ParasolError, match="either nodes or points"):
        surrogate.restricted(nodes=[1], points=points)


def test_derivatives_are_slopes(surrogate, truth):
    mu, step = truth.mus[0], 1e-6
    slopes = [(surrogate(mu + e).values - surrogate(mu - e).values) / (2 * step) for e in step * np.eye(2)]
    assert np.allclose(surrogate.gradient(mu), np.stack(slopes, axis=-1), atol=1e-6)
    assert surrogate.jacobian(truth.mus[:4]).shape == (4, 15, 2)


def test_repair_goes_down_the_roads(surrogate, truth, model):
    poor = replace(surrogate, map=_Shifted(surrogate.map, 1e-3))
    relative = poor(truth.mus).bound
    assert np.min(relative) > 1e-5
    reachable = float(np.median(surrogate(truth.mus).bound)) * 2
    answer = poor(truth.mus, tolerance=reachable)
    assert set(answer.method) == {"reduced model", "full solve"}
    full = [i for i, method in enumerate(answer.method) if method == "full solve"]
    assert np.allclose(answer.values[full], truth.solutions[full])
    assert np.allclose(np.concatenate(list(answer.blocks(size=3))), answer.values, rtol=0, atol=1e-12)
    assert np.all(answer.bound <= reachable)
    errors = np.linalg.norm(answer.values - truth.solutions, axis=1) / np.linalg.norm(truth.solutions, axis=1)
    assert np.all(errors <= reachable)
    assert surrogate(truth.mus[0], tolerance=1.0).method == "map"
    with pytest.raises(ps.ParasolError, match="no solver at hand"):
        replace(poor, solver=None)(truth.mus, tolerance=1e-13)


def test_a_bound_that_is_no_number_is_repaired(surrogate, truth, monkeypatch):
    """NaN is not above a tolerance either."""
    mus, certify, solve = truth.mus[:2], ReducedModel.certify, ReducedModel.solve

    def no_number(bounds):
        bounds.relative[:] = np.nan
        return bounds

    assert surrogate(mus, tolerance=1.0).method == ["map"] * 2
    with monkeypatch.context() as patched:
        patched.setattr(ReducedModel, "certify", lambda *given, **options: no_number(certify(*given, **options)))
        methods = surrogate(mus, tolerance=1.0).method
    assert "map" not in methods

    def without_bound(*given, **options):
        found = solve(*given, **options)
        no_number(found.bounds)
        return found

    monkeypatch.setattr(ReducedModel, "solve", without_bound)
    answer = replace(surrogate, map=_Shifted(surrogate.map, 1e-3))(mus, tolerance=1e-7)
    assert answer.method == ["full solve"] * 2
    assert np.allclose(answer.values, truth.solutions[:2])


class _Shifted:
    """A map that is wrong by a constant."""

    def __init__(self, inner, shift):
        self.inner, self.shift = inner, shift

    def predict(self, x):
        return self.inner.predict(x) + self.shift


def test_outside_the_box(surrogate):
    with pytest.raises(ps.ParasolError, match="outside its range"):
        surrogate([[1.0, 1.0], [5.0, 1.0]])
    answer = surrogate([[1.0, 1.0], [5.0, 1.0]], extrapolate=True)
    assert list(answer.extrapolated) == [False, True]
    for bad in ([np.nan, 1.0], [1.0, np.inf]):
        with pytest.raises(ps.ParasolError, match="NaN"):
            surrogate(bad, extrapolate=True)
    for shape in (3, (2, 3), (2, 2, 2)):
        with pytest.raises(ps.ParasolError, match="mus has shape"):
            surrogate(np.ones(shape))
    with pytest.raises(ps.ParasolError, match="real numbers"):
        surrogate(["a", "b"])


def test_threads_share_it(surrogate, truth):
    expected = surrogate(truth.mus).values
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: surrogate(truth.mus).values, range(16)):
            assert np.array_equal(found, expected)


def test_features_take_logs_of_wide_ranges():
    space = ps.load_problem("helmholtz").parameters
    features = features_of(space, np.empty((0, 2)))
    corners = features(np.array([[0.1, 0.0], [4.0, 2.0], [np.sqrt(0.4), 1.0]]))
    assert np.allclose(corners, [[-1, -1], [1, 1], [0, 0]])
    mus, step = np.array([[0.7, 1.2]]), 1e-7
    assert np.allclose((features(mus + step) - features(mus)) / step, features.slope(mus), rtol=1e-5)


def test_own_data_and_own_regressor(snapshots, truth):
    class Nearest:
        def fit(self, x, y):
            self.x, self.y = x, y
            return self

        def predict(self, x):
            return self.y[np.argmin(np.sum((x[:, None] - self.x) ** 2, axis=2), axis=1)]

    mus, solutions = np.vstack([snapshots.mus, truth.mus]), np.vstack([snapshots.solutions, truth.solutions])
    ranges = {"a": (0.1, 4.0, "log"), "k": (0.0, 2.0)}
    found = ps.fit_snapshots(mus, solutions, "polynomial", n_modes=12, ranges=ranges)
    assert found.conformal.n_calibration == 19
    assert found(mus[0]).bound == found.conformal.quantile < 0.05
    assert "0.95" in found.conformal.meaning
    c = found.coefficients(mus[:2])
    assert np.array_equal(found.certify(mus[:2], c.astype(np.float32)).relative, found.certify(mus[:2]).relative)
    with pytest.raises(ps.ParasolError, match="calibrated with answers of this surrogate"):
        found.certify(mus[:2], 1.001 * c)
    own = ps.fit_snapshots(mus, solutions, Nearest(), n_modes=12, ranges=ranges)
    assert found.conformal.quantile < own.conformal.quantile
    assert own.gradient(mus[0]).shape == (300, 2)  # by differences
    few = ps.fit_snapshots(mus[:20], solutions[:20], "linear", n_modes=3)
    assert few.conformal.refitted  # too few to keep some aside
    assert few(mus[0]).bound > few.conformal.quantile
    without = ps.fit_snapshots(mus[:20], solutions[:20], "linear", n_modes=3, level=None)
    with pytest.raises(ps.ParasolError, match="nothing is known about the errors"):
        _ = without(mus[0]).bound


def test_labels_from_full_solves(snapshots, truth, model):
    basis = ps.pod(snapshots, n_modes=12)
    surrogate = ps.fit(snapshots, "polynomial", basis=basis, model=model, calibration=truth)
    assert surrogate.facts["labels"] == "full solves"
    assert surrogate.conformal.n_calibration == 50
    assert ps.accuracy(surrogate, truth).mean < 1e-2


def test_mistakes_are_told(snapshots, model):
    with pytest.raises(ps.ParasolError, match="need the basis"):
        ps.fit(snapshots, "linear")
    with pytest.raises(ps.ParasolError, match="another problem"):
        ps.fit(snapshots, "linear", basis=ps.runtime.Basis(np.eye(7)[:, :2]))
    with pytest.raises(ps.ParasolError, match="recipe='bestt'"):
        ps.fit(snapshots, "bestt", basis=ps.pod(snapshots, n_modes=3))
    with pytest.raises(ps.ParasolError, match="has no fit"):
        ps.fit(snapshots, 3, basis=ps.pod(snapshots, n_modes=3))
    with pytest.raises(ps.ParasolError, match="has no coefficients"):
        ps.fit(model)
    with pytest.raises(ps.ParasolError, match="NaN"):
        ps.fit_snapshots([[1.0], [2.0], [3.0], [4.0]], np.full((4, 5), np.nan))
    with pytest.raises(ps.ParasolError, match="same value"):
        ps.fit_snapshots(np.ones((30, 1)), np.ones((30, 4)), "linear")
    with pytest.raises(ps.ParasolError, match="names 1 parameters"):
        ps.fit_snapshots(snapshots.mus, snapshots.solutions, "linear", ranges={"a": (0.1, 4.0)})


# ---- what a review by fresh eyes broke --------------------------------------------------------------------------------
def test_another_basis_has_no_certificate(model, surrogate, truth):
    other = ps.pod(truth, n_modes=15)
    found = ps.fit(surrogate.reduced, "polynomial", basis=other, n_labels=400)
    assert found.reduced is None
    with pytest.raises(ps.ParasolError, match="another basis"):
        replace(found, reduced=surrogate.reduced)


def test_types_are_those_asked_for_and_bounds_know_them(surrogate, truth):
    single = ps.fit(surrogate.reduced, ps.fitting.NetworkRecipe.compact(iterations=30), n_labels=400)
    for found in (single, surrogate):
        for dtype in (np.float64, np.float32, "float32"):
            answer = found(truth.mus, dtype=dtype)
            assert answer.values.dtype == np.dtype(dtype)
            error = np.linalg.norm(answer.values - truth.solutions, axis=1) / np.linalg.norm(truth.solutions, axis=1)
            assert np.all(error <= answer.bound)
    strict = single(truth.mus, tolerance=1e-4)
    error = np.linalg.norm(strict.values - truth.solutions, axis=1) / np.linalg.norm(truth.solutions, axis=1)
    assert np.all(error <= 1e-4)
    with pytest.raises(ps.ParasolError, match="float64"):
        single(truth.mus, dtype=np.float32, tolerance=1e-4)


def test_single_precision_is_inside_the_bounds(model):
    """Where the bound itself is near rounding, what float32 loses is most of the error, absolute and relative."""
    snapshots = ps.solve_many(model, ps.sample(model, 6, rng=3))
    reduced = ps.reduce(model, ps.pod(snapshots, n_modes=6), n_anchors=20)
    surrogate = ps.fit(reduced, "polynomial", n_labels=50)
    exact = surrogate(snapshots.mus, tolerance=1e-6)
    answer = replace(exact, coefficients=exact.coefficients.astype(np.float32))
    error = np.linalg.norm(answer.values - snapshots.solutions, axis=1)
    assert np.all(error > 10 * exact.bounds.values)
    assert np.all(error <= answer.bounds.values)
    assert np.all(error / np.linalg.norm(snapshots.solutions, axis=1) <= answer.bounds.relative)
    half = replace(
        answer, coefficients=np.float32(1.2) * answer.coefficients
    )  # so wrong that ‖c‖ and ‖c‖ − bound differ
    plain = replace(half, coefficients=half.coefficients.astype(float)).bounds
    size = np.linalg.norm(half.coefficients.astype(float), axis=1) - plain.values
    finite = size > 0
    assert np.any(finite)
    lost = half.bounds.values[finite] - plain.values[finite]
    assert np.allclose(half.bounds.relative[finite] - plain.relative[finite], lost / size[finite], rtol=1e-3)


def test_the_kind_of_a_bound_is_said(surrogate, model, snapshots, truth):
    assert set(surrogate(truth.mus).bound_kind) == {"proven"}
    assert surrogate(truth.mus[0]).bound_kind == "proven"
    guessed = ps.fit(ps.reduce(model, surrogate.basis, n_anchors=1), "polynomial", n_labels=100)
    assert "estimated" in guessed(truth.mus).bound_kind
    repaired = guessed(truth.mus, tolerance=1e-13)
    assert set(repaired.method) == {"full solve"}
    assert set(repaired.bound_kind) == {"proven"}
    assert np.all(repaired.bound == 0)
    data = ps.fit_snapshots(truth.mus, truth.solutions, "polynomial", level=0.8)
    assert data(truth.mus[0]).bound_kind == "calibrated"


def test_gradients_of_single_precision_networks_are_those_of_their_answers(surrogate):
    """Values are computed in float64: differences of them show a gradient computed in float32."""
    single = ps.fit(surrogate.reduced, ps.fitting.NetworkRecipe.compact(iterations=30), n_labels=400)
    mu, step = np.array([1.3, 0.7]), 1e-4
    for i, e in enumerate(np.eye(2)):
        ahead, behind = (single(mu + sign * step * e).values for sign in (1, -1))
        slope = single.gradient(mu)[:, i]
        assert np.linalg.norm((ahead - behind) / (2 * step) - slope) < 1e-7 * np.linalg.norm(slope)


def test_repairs_outside_the_box_where_asked_for(surrogate, model):
    mu = np.array([4.5, 2.2])
    answer = surrogate(mu, extrapolate=True, tolerance=1e-12)
    assert answer.method == "full solve"
    assert answer.extrapolated is True
    assert np.allclose(answer.values, model.solve(mu, extrapolate=True).values, rtol=0, atol=1e-12)


def test_parameters_by_name(surrogate):
    pandas = pytest.importorskip("pandas")
    mus = np.array([[0.5, 1.0], [2.0, 0.25]])
    expected = surrogate(mus).values
    table = pandas.DataFrame({"k": mus[:, 1], "remark": ["x", "y"], "a": mus[:, 0]})
    structured = np.array([(k, a) for a, k in mus], dtype=[("k", float), ("a", float)])
    for many in (table, table[["a", "k"]], {"k": mus[:, 1], "a": mus[:, 0]}, structured):
        assert np.array_equal(surrogate(many).values, expected)
    for one in (table[["k", "a"]].iloc[0], {"k": 1.0, "a": 0.5}):
        assert np.allclose(surrogate(one).values, expected[0], rtol=0, atol=1e-12)
    assert np.allclose(surrogate(a=0.5, k=1.0).values, expected[0], rtol=0, atol=1e-12)
    assert np.array_equal(surrogate(k=mus[:, 1], a=mus[:, 0]).values, expected)
    assert np.array_equal(surrogate.gradient({"k": 1.0, "a": 0.5}), surrogate.gradient(mus[0]))
    with pytest.raises(ps.ParasolError, match=r"k in \[0, 2\] is missing"):
        surrogate(a=0.5)
    with pytest.raises(ps.ParasolError, match="no column 'a'"):
        surrogate(table[["k", "remark"]])
    with pytest.raises(ps.ParasolError, match="two columns 'a'"):
        surrogate(pandas.concat([table, table["a"]], axis=1))
    for wrong in ({"a": 0.5, "q": 1.0}, {"a": "x", "k": 1.0}):
        with pytest.raises(ps.ParasolError):
            surrogate(wrong)
    with pytest.raises(ps.ParasolError, match="once"):
        surrogate(mus[0], a=0.5)
    with pytest.raises(ps.ParasolError, match="once"):
        surrogate()


def test_data_with_named_columns_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    mus = np.random.default_rng(0).uniform(0.1, 1, (60, 2))
    table = pandas.DataFrame({"width": mus[:, 1], "centre": mus[:, 0]})
    ranges = {"centre": (0.05, 1.0), "width": (0.05, 1.1)}
    expected = ps.fit_snapshots(mus, smooth(mus), "polynomial", ranges=ranges, level=None)
    found = ps.fit_snapshots(table, smooth(mus), "polynomial", ranges=ranges, level=None)
    assert np.array_equal(found(table).values, expected(mus).values)
    free = ps.fit_snapshots(table, smooth(mus), "polynomial", level=None)
    assert free.parameters.names == ("width", "centre")
    assert np.allclose(free(centre=0.5, width=0.7).values, smooth(np.array([[0.5, 0.7]]))[0], atol=1e-3)
    with pytest.raises(ps.ParasolError, match="Name each column once"):
        ps.fit_snapshots(table, smooth(mus), "polynomial", ranges={"centre": (0, 1), "k": (0, 1)})


def trajectories(n, rng):
    """n trajectories at 21 times each, as rows (a, b, t) -> values: neighbouring times are almost the same row."""
    a, b = np.random.default_rng(rng).uniform(0, 1, (2, n, 1))
    t = np.linspace(0, 1, 21)
    rows = np.stack(np.broadcast_arrays(a, b, t), axis=-1).reshape(-1, 3)
    z = np.linspace(0, 1, 30)
    return rows, np.sin(5 * rows[:, :1] * z + 3 * rows[:, 1:2] ** 2 + rows[:, 2:]) + 2


def test_rows_of_one_trajectory_are_kept_together():
    """Otherwise the bound is calibrated at times of trajectories that were learned, and fails on new ones."""
    rows, values = trajectories(60, 0)
    fresh, truth = trajectories(200, 1)
    ranges = dict.fromkeys("abt", (0, 1))
    with pytest.warns(ps.ParasolWarning, match="taken for 60 groups"):
        found = ps.fit_snapshots(rows, values, "polynomial", ranges=ranges)
    named = ps.fit_snapshots(rows, values, "polynomial", ranges=ranges, groups=np.repeat(np.arange(60), 21))
    for surrogate in (found, named):
        errors = ps.accuracy(surrogate, ps.reduction.as_snapshots(fresh, truth)).errors.reshape(200, 21)
        assert surrogate.conformal.n_calibration == 19
        assert np.mean(errors.max(axis=1) <= surrogate.conformal.quantile) > 0.85
    apart = ps.fit_snapshots(rows, values, "polynomial", ranges=ranges, groups=np.arange(1260))
    errors = ps.accuracy(apart, ps.reduction.as_snapshots(fresh, truth)).errors
    assert np.mean(errors <= apart.conformal.quantile) < 0.85  # what is promised there is 0.95
    with pytest.raises(ps.ParasolError, match="one label for each"):
        ps.fit_snapshots(rows, values, "polynomial", groups=[1, 2])


def test_a_lattice_calibrates_nothing():
    mus = np.stack(np.meshgrid(*[np.linspace(0.1, 1, 10)] * 2), axis=-1).reshape(-1, 2)
    with pytest.warns(ps.ParasolWarning, match="lattice"):
        found = ps.fit_snapshots(mus, smooth(mus), "polynomial")
    assert found.conformal is None
    assert not found.has_bounds


def test_rounding_at_the_end_of_a_range_is_not_outside(surrogate):
    assert surrogate([4.000000000001, 2.0]).extrapolated is False
    assert surrogate([4.000000000001, 2.0]).bound_kind == "proven"
    with pytest.raises(ps.ParasolError, match="extrapolate=True"):
        surrogate([4.0001, 2.0])
    assert surrogate([4.0001, 2.0], extrapolate=True).extrapolated is True


def smooth(mus):
    z = np.linspace(0, 1, 50)
    return np.exp(-((z - 0.3 - 0.4 * mus[:, :1]) ** 2) / 0.05) + mus[:, 1:] * np.sin(3 * z)


def test_no_logarithms_of_data_that_do_not_ask_for_them():
    """Uniform samples of (0, 1) span decades by accident."""
    mus = np.random.default_rng(0).uniform(0, 1, (80, 2))
    found = ps.fit_snapshots(mus, smooth(mus), "polynomial", level=None)
    fresh = np.random.default_rng(1).uniform(0.05, 0.95, (40, 2))
    assert not found.features.logs.any()
    assert ps.accuracy(found, ps.reduction.as_snapshots(fresh, smooth(fresh))).mean < 1e-3


def test_nothing_is_promised_outside_the_box_and_nan_does_not_leave():
    mus = np.random.default_rng(0).uniform(0.1, 1, (100, 2))
    found = ps.fit_snapshots(mus, smooth(mus), "polynomial", ranges={"a": (0.05, 1.0, "log"), "b": (0.05, 1.0, "log")})
    assert found([3.0, 3.0], extrapolate=True).bound == np.inf
    with pytest.raises(ps.ParasolError, match="must be positive"):
        found([-0.1, 0.5], extrapolate=True)
    with pytest.warns(ps.ParasolWarning, match="beyond the samples"):
        ps.fit_snapshots(mus, smooth(mus), "linear", ranges={"a": (0.0, 5.0), "b": (0.0, 1.0)})


def test_a_regressor_is_left_as_it_was():
    class Mean:
        def fit(self, x, y):
            self.mean = y.mean(axis=0)
            return self

        def predict(self, x):
            return [list(self.mean)] * len(x)

    mus, mine = np.random.default_rng(0).uniform(0, 1, (40, 2)), Mean()
    first = ps.fit_snapshots(mus, smooth(mus), mine, level=None)
    before = first(mus).values
    ps.fit_snapshots(mus, 2 * smooth(mus), mine, level=None)
    assert np.array_equal(first(mus).values, before)
    assert not hasattr(mine, "mean")


def test_travels_after_use(surrogate, truth):
    import copy

    expected = surrogate(truth.mus).values
    assert np.array_equal(copy.deepcopy(surrogate)(truth.mus).values, expected)


def test_restricted_says_where_and_refuses_repairs(surrogate, truth):
    points = [[0.1, 0.2]]
    small = surrogate.restricted(points=points)
    assert np.array_equal(small(truth.mus[0]).nodes, points)
    with pytest.raises(ps.ParasolError, match="whole fields"):
        small(truth.mus[0], tolerance=1e-3)
    for bad in ([10**6], [0.5], [], [-1]):
        with pytest.raises(ps.ParasolError, match="whole numbers from 0"):
            surrogate.restricted(nodes=bad)


def test_more_mistakes_are_told(snapshots, surrogate, model):
    with pytest.raises(ps.ParasolError, match="real numbers"):
        surrogate([[1, 2], [3]])
    with pytest.raises(ps.ParasolError, match=r"level=1\.0"):
        ps.fit_snapshots(snapshots.mus, snapshots.solutions, "linear", level=1.0)
    with pytest.raises(ps.ParasolError, match="must name the parameters"):
        ps.fit_snapshots(snapshots.mus, snapshots.solutions, "linear", ranges=[1, 2])
    with pytest.raises(ps.ParasolError, match="real numbers"):
        ps.fit_snapshots(snapshots.mus, snapshots.solutions + 1j, "linear")
    other = ps.discretize(
        ps.load_problem("cooled-pipe"), ps.scatter(ps.load_problem("cooled-pipe").domain, n_nodes=300)
    )
    with pytest.raises(ps.ParasolError, match="mus has shape"):
        ps.fit(snapshots, "linear", basis=ps.pod(snapshots, n_modes=3), model=other)


@pytest.mark.parametrize("wanted", [0.55e-9, float("nan")])
def test_only_stored_times_are_times_however_short(wanted):
    layout = ps.runtime.Layout(times=np.linspace(0.0, 1e-9, 11))
    assert layout.time_indices([0.1e-9 + 0.2e-9, 1e-9]).tolist() == [3, 10]
    with pytest.raises(ps.ParasolError, match="is not a stored time"):
        layout.time_indices([wanted])
