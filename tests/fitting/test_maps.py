import mpmath
import numpy as np
import pytest
from scipy.interpolate import BarycentricInterpolator
from scipy.optimize import approx_fprime, check_grad
from scipy.stats import qmc

from parasol.checks import ParasolError
from parasol.fitting.gaussian_process import KERNELS, GaussianProcess, _Likelihood
from parasol.fitting.linear import Linear
from parasol.fitting.maps import fit_map, predictions
from parasol.fitting.polynomial import Polynomial, lower_set, terms
from parasol.fitting.recipes import recipe_named
from parasol.fitting.ridge import RidgePath

RECIPES = [
    Linear(),
    Polynomial(),
    GaussianProcess(),
    GaussianProcess("matern52"),
    GaussianProcess("matern32"),
    GaussianProcess("inverse multiquadric"),
]
NAMES = [f"{type(r).__name__} {getattr(r, 'kernel', '')}" for r in RECIPES]


def smooth(x):
    """Three outputs, smoother in the second input than in the first."""
    a, b = x[:, 0], x[:, 1]
    return np.stack([np.exp(a) / (1.5 + 0.3 * b), np.cos(2 * a + 0.5 * b), 0.01 * np.sin(3 * a)], axis=1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    x, new = rng.uniform(-1, 1, (80, 2)), rng.uniform(-0.95, 0.95, (200, 2))
    return x, smooth(x), new, smooth(new)


def worst(fitted, x, y):
    return np.max(np.abs(fitted.predict(x) - y))


# --- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_derivatives_are_those_of_the_predictions(recipe, data):
    x, y, new, _ = data
    fitted = recipe.fit(x * [1.0, 30.0] + [5.0, 0.0], y)  # inputs that are not in [−1, 1]
    for point in new[:3] * [1.0, 30.0] + [5.0, 0.0]:
        exact = fitted.jacobian(point[None])[0]
        assert exact.shape == (3, 2)
        by_differences = []
        for h in 1e-3 * np.diag(
            [1.0, 30.0]
        ):  # of fourth order, wide enough that the rounding of a process does not show
            f = [fitted.predict([point + k * h])[0] for k in (-2, -1, 1, 2)]
            by_differences.append((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h.sum()))
        assert exact == pytest.approx(np.transpose(by_differences), rel=1e-4, abs=2e-6)


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_the_same_seed_gives_the_same_bytes_and_progress_ends_at_one(recipe, data):
    x, y, new, _ = data
    heard = []
    first = recipe.fit(x, y, rng=3, progress=heard.append)
    assert np.array_equal(first.predict(new), recipe.fit(x, y, rng=3).predict(new))
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    assert heard[0] > 0


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_constant_outputs_and_an_input_that_never_moves_are_no_trouble(recipe, data):
    x, y, new, exact = data
    constant = recipe.fit(x, np.full((80, 2), [3.0, 0.0]))
    assert constant.predict(new) == pytest.approx(np.tile([3.0, 0.0], (200, 1)), abs=1e-10)
    with_idle = recipe.fit(np.column_stack([x, np.full(80, 0.7)]), y)
    plain = np.mean(np.abs(recipe.fit(x, y).predict(new) - exact))
    assert np.mean(np.abs(with_idle.predict(np.column_stack([new, np.full(200, 0.7)])) - exact)) < 10 * plain + 1e-9


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([[0.0], [np.nan], [1.0]], [[1.0]] * 3, "x has 1 entry of 3 that is NaN"),
        ([[0.0], [0.5], [1.0]], [[1.0], [np.inf], [1.0]], "y has 1 entry of 3 that is NaN"),
        ([[0.0], [0.5], [1.0]], [[1.0]] * 2, "x has 3 samples and y has 2"),
        ([0.0, 0.5, 1.0], [[1.0]] * 3, r"x has shape \(3,\), expected \(any, any\)"),
        ([[0.0]], [[1.0]], "cannot be fitted to 1 sample. Pass at least 2"),
        (np.empty((0, 2)), np.empty((0, 2)), "cannot be fitted to 0 samples"),
        (np.ones((9, 2)), np.arange(9.0)[:, None], "all 9 rows of x are the same"),
        (np.eye(3), np.empty((3, 0)), "needs an input and an output"),
    ],
)
def test_bad_data_is_refused_in_one_line(recipe, x, y, message):
    with pytest.raises(ParasolError, match=message) as caught:
        recipe.fit(x, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_a_wrong_number_of_inputs_is_refused(recipe, data):
    fitted = recipe.fit(*data[:2])
    for use in (fitted.predict, fitted.jacobian, getattr(fitted, "deviation", fitted.predict)):
        with pytest.raises(ParasolError, match="x has 3 columns, but the map was fitted to 2 inputs"):
            use(np.zeros((4, 3)))
    with pytest.raises(ParasolError, match=r"x has shape \(2,\)"):
        fitted.predict(np.zeros(2))
    assert fitted.predict(np.zeros((0, 2))).shape == (0, 3)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Linear(ridge=-1.0), "ridge=-1.0 must be zero, positive"),
        (Polynomial(degree=-1), "degree=-1 must be a whole number"),
        (Polynomial(degree=30), "more terms than the 80 samples"),
        (Polynomial(share=2.0), "share=2.0 must be above 0"),
        (Polynomial(weights=(1.0,)), "weights must be 2 positive numbers"),
        (GaussianProcess("cubic"), "kernel='cubic' is unknown"),
        (GaussianProcess(nugget=0.0), "nugget=0.0 must be positive"),
    ],
)
def test_bad_settings_are_refused(recipe, message, data):
    with pytest.raises(ParasolError, match=message):
        recipe.fit(*data[:2])


def test_bad_validation_is_refused(data):
    x, y, new, exact = data
    for validation, message in [
        (new, "must be a pair"),
        ((new[:, :1], exact), "validation x has shape"),
        ((new, exact[:-1]), "validation y has shape"),
        ((new[:0], exact[:0]), "validation has no samples"),
    ]:
        with pytest.raises(ParasolError, match=message):
            Polynomial().fit(x, y, validation=validation)


# --- linear -----------------------------------------------------------------------------------------------------------


def test_a_linear_map_is_met_where_samples_span_a_subspace_only():
    """As many samples, inputs, outputs and independent directions as in the paper's Schrödinger problem."""
    rng = np.random.default_rng(2)
    span = np.linalg.qr(rng.standard_normal((585, 81)))[0] * np.logspace(0, -4, 81)
    matrix, shift = rng.standard_normal((585, 59)), rng.standard_normal(59)
    x, new = rng.standard_normal((300, 81)) @ span.T, rng.standard_normal((50, 81)) @ span.T
    fitted = Linear().fit(x, x @ matrix + shift)
    exact = new @ matrix + shift
    assert np.max(np.abs(fitted.predict(new) - exact)) < 1e-10 * np.max(np.abs(exact))
    assert fitted.network.depth == 1


def test_a_ridge_is_worth_it_where_outputs_are_noisy_and_leaving_one_out_is_what_it_says():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((40, 30))
    matrix = rng.standard_normal((30, 2))
    y = x @ matrix + 3.0 * rng.standard_normal((40, 2))
    new = rng.standard_normal((1000, 30))
    chosen, bare = Linear().fit(x, y), Linear(ridge=0.0).fit(x, y)
    assert chosen.ridge > 0.1
    assert np.mean((chosen.predict(new) - new @ matrix) ** 2) < 0.7 * np.mean((bare.predict(new) - new @ matrix) ** 2)
    one_by_one = []
    for i in range(40):
        kept = np.arange(40) != i
        one_by_one.append(np.linalg.norm(Linear(chosen.ridge).fit(x[kept], y[kept]).predict(x[[i]]) - y[i]))
    left_out = RidgePath(x, y).left_out(chosen.ridge)
    assert np.linalg.norm(left_out, axis=1) == pytest.approx(one_by_one, rel=1e-8)
    assert chosen.error == pytest.approx(np.mean(one_by_one), rel=1e-8)


# --- polynomials ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 3, 10])
def test_polynomials_are_reproduced_and_their_degree_is_found(p):
    rng = np.random.default_rng(4)
    x, new = rng.uniform(-1, 1, (200, p)), rng.uniform(-1, 1, (100, p))
    value = lambda x: np.stack([x[:, 0] * x[:, -1] - 2 * x[:, 0] + 1, x.sum(axis=1)], axis=1)  # noqa: E731
    fitted = Polynomial().fit(x, value(x))
    assert fitted.degree >= 2
    assert worst(fitted, new, value(new)) < 1e-12
    assert worst(Polynomial(degree=2).fit(x, value(x)), new, value(new)) < 1e-12


def test_one_input_at_chebyshev_points_is_interpolated():
    nodes = np.cos(np.pi * (np.arange(15) + 0.5) / 15)
    new = np.linspace(-1, 1, 50)
    f = lambda t: np.exp(t) / (1.3 + t)  # noqa: E731
    fitted = Polynomial(degree=14).fit(nodes[:, None], f(nodes)[:, None])
    assert fitted.predict(new[:, None])[:, 0] == pytest.approx(BarycentricInterpolator(nodes, f(nodes))(new), abs=1e-12)


def test_index_sets_are_counted_right():
    assert len(lower_set(np.ones(10), 10**6, 3)[0]) == 286  # C(13, 3)
    for weights in (np.ones(3), np.array([1.0, 2.5, 0.4])):
        found = {tuple(k) for k in lower_set(weights, 60)[0].tolist()}
        assert len(found) == 60
        assert all(tuple(np.subtract(k, e)) in found for k in found for i, e in enumerate(np.eye(3, dtype=int)) if k[i])


def test_unequal_inputs_get_unequal_degrees_and_gain_by_it():
    rng = np.random.default_rng(5)
    f = lambda x: 1.0 / (1.3 - x[:, :1]) + 0.1 * x[:, 1:2] + np.exp(0.2 * x[:, :1] * x[:, 2:])  # noqa: E731
    x, new = rng.uniform(-1, 1, (150, 3)), rng.uniform(-1, 1, (500, 3))
    fitted, equal = Polynomial().fit(x, f(x)), Polynomial(weights=(1.0, 1.0, 1.0)).fit(x, f(x))
    assert fitted.indices[:, 0].max() > 2 * fitted.indices[:, 1].max()
    assert 10 * np.mean(np.abs(fitted.predict(new) - f(new))) < np.mean(np.abs(equal.predict(new) - f(new)))


def test_noise_is_not_fitted_by_high_degrees():
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (200, 2))
    y = x[:, :1] ** 2 + 0.1 * rng.standard_normal((200, 1))
    assert len(Polynomial().fit(x, y).indices) <= 20
    aside = rng.uniform(-1, 1, (400, 2))
    assert len(Polynomial().fit(x, y, validation=(aside, aside[:, :1] ** 2)).indices) <= 20


def test_samples_on_a_lattice_tell_fewer_terms_apart():
    x = np.stack(np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 20)), -1).reshape(-1, 2)
    y = np.exp(x[:, :1] + x[:, 1:])
    assert np.isfinite(Polynomial().fit(x, y).predict(x)).all()
    with pytest.raises(ParasolError, match="these samples tell only 9 apart"):
        Polynomial(degree=3).fit(x, y)  # cubes are multiples of the input itself at −1, 0, 1


def test_too_many_inputs_for_a_polynomial_is_said():
    with pytest.raises(ParasolError, match="too few for a polynomial in 1 inputs"):
        Polynomial().fit([[0.0], [1.0]], [[0.0], [1.0]])
    with pytest.raises(ParasolError, match="60 samples are too few for a polynomial in 40 inputs"):
        Polynomial().fit(np.random.default_rng(0).standard_normal((60, 40)), np.ones((60, 1)))


# --- Gaussian processes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_the_likelihood(kernel, data):
    x, y = data[0][:25], data[1][:25]
    y = y + 0.01 * np.random.default_rng(0).standard_normal(y.shape)
    search = _Likelihood(KERNELS[kernel], x, y, lower_set(np.ones(2), 10, 1)[0], None)
    theta = np.log([0.6, 1.5, 1e-3])
    assert search(theta)[1] == pytest.approx(approx_fprime(theta, lambda t: search(t)[0], 1e-6), rel=1e-4, abs=1e-5)
    assert check_grad(lambda t: search(t)[0], lambda t: search(t)[1], theta) < 1e-4


@pytest.mark.parametrize("kernel", KERNELS)
def test_prediction_and_deviation_solve_the_bordered_system(kernel, data):
    """Universal kriging as in textbooks: [K P; Pᵀ 0] [w; m] = [k; p] gives weights of the samples and the variance."""
    x, y, new, _ = data
    x, y, new = x[:30], y[:30], new[:20]
    fitted = GaussianProcess(kernel, trend_degree=1, nugget=1e-6).fit(x, y)
    t, s = ((z - fitted.trend.shift) * fitted.trend.scale for z in (x, new))
    value = lambda a, b: KERNELS[kernel].value(np.sum(((a[:, None] - b) / fitted.lengths) ** 2, axis=2))  # noqa: E731
    p, q = terms(t, fitted.trend.indices), terms(s, fitted.trend.indices)
    bordered = np.block([[value(t, t) + fitted.nugget * np.eye(30), p], [p.T, np.zeros((3, 3))]])
    right = np.vstack([value(t, s), q.T])
    weights = np.linalg.solve(bordered, right)
    assert fitted.predict(new) == pytest.approx(weights[:30].T @ y, abs=1e-7)
    variance = fitted.variance * (1.0 - np.sum(weights * right, axis=0))
    assert fitted.deviation(new) ** 2 == pytest.approx(variance, rel=1e-3, abs=1e-9 * fitted.variance)


def test_smooth_data_are_met_to_many_digits(data):
    x, y, new, exact = data
    assert np.mean(np.abs(GaussianProcess().fit(x, y).predict(new) - exact)) < 1e-7
    assert np.mean(np.abs(GaussianProcess(trend_degree=0).fit(x, y).predict(new) - exact)) < 1e-6


def test_deviation_is_large_where_samples_are_missing_and_of_the_size_of_errors():
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (60, 2))
    x = x[~((x[:, 0] > 0.2) & (x[:, 1] > 0.2))]
    f = lambda x: np.stack([np.sin(4 * x[:, 0] * x[:, 1]), np.cos(3 * x[:, 0])], axis=1)  # noqa: E731
    fitted = GaussianProcess("matern52", trend_degree=1).fit(x, f(x))
    new = rng.uniform(-1, 1, (300, 2))
    deviation, error = fitted.deviation(new), np.linalg.norm(fitted.predict(new) - f(new), axis=1)
    hole = (new[:, 0] > 0.5) & (new[:, 1] > 0.5)
    assert np.median(deviation[hole]) > 5 * np.median(deviation[~hole])
    assert np.mean(error < 3 * deviation) > 0.9
    assert np.all(fitted.deviation(x) > 0)


def test_noise_and_repeated_samples_are_smoothed():
    rng = np.random.default_rng(8)
    x = np.repeat(rng.uniform(-1, 1, (60, 1)), 2, axis=0)
    y = np.sin(3 * x) + 0.1 * rng.standard_normal(x.shape)
    fitted = GaussianProcess().fit(x, y)
    new = np.linspace(-0.9, 0.9, 50)[:, None]
    assert np.sqrt(np.mean((fitted.predict(new) - np.sin(3 * new)) ** 2)) < 0.05
    assert np.median(fitted.deviation(new)) < 0.06


def test_many_samples_share_what_few_have_settled(data):
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, (400, 2))
    fitted = GaussianProcess(trend_degree=1).fit(x, smooth(x))
    assert len(fitted.centres) == 400
    assert np.mean(np.abs(fitted.predict(data[2]) - data[3])) < 1e-6
    many = np.lib.stride_tricks.as_strided(np.arange(2.0), (20_000, 1), (0, 8))
    with pytest.raises(ParasolError, match=r"20000 samples needs 13 GB. Use Polynomial"):
        GaussianProcess().fit(np.linspace(0, 1, 20_000)[:, None], many)


def test_forty_inputs_have_lengths_of_their_own_and_more_share_one():
    rng = np.random.default_rng(10)
    x, new = rng.standard_normal((60, 45)), rng.standard_normal((100, 45))
    fitted = GaussianProcess().fit(x, x[:, :2])
    assert np.ptp(fitted.lengths) == 0
    assert np.mean(np.abs(fitted.predict(x) - x[:, :2])) < 0.1
    fitted = GaussianProcess().fit(x[:, :40], x[:, :2])
    assert fitted.lengths[2:].min() > 30 * fitted.lengths[:2].max()
    assert np.mean(np.abs(fitted.predict(new[:, :40]) - new[:, :2])) < 0.05


# --- anybody's --------------------------------------------------------------------------------------------------------


class Nearest:
    """Somebody's regressor, in the manner of scikit-learn: it changes itself and returns itself."""

    def fit(self, x, y):
        self.x_, self.y_ = x, y
        return self

    def predict(self, x):
        return self.y_[np.argmin(np.linalg.norm(x[:, None] - self.x_, axis=2), axis=1)]


def test_a_regressor_that_learns_in_itself_is_left_as_it_was(data):
    nearest = Nearest()
    fit_map(nearest, *data[:2])
    assert not hasattr(nearest, "x_")
    for recipe in (3, lambda x, y: y):
        with pytest.raises(ParasolError, match="is no recipe"):
            fit_map(recipe, *data[:2])


def test_what_is_gone_is_said_to_be_gone():
    import parasol as ps

    for name in ("choose", "RandomFeatures"):
        with pytest.raises(AttributeError, match=f"parasol.{name} was removed in version 0.2"):
            getattr(ps, name)
    with pytest.raises(ParasolError, match=r"was removed in version 0.2. Use \"polynomial\""):
        recipe_named("random features")


def test_options_go_where_they_are_known(data):
    x, y, new, exact = data
    heard = []
    fit_map(Polynomial(), x, y, validation=(new, exact), progress=heard.append)
    assert heard[-1] == 1.0
    assert fit_map(Nearest(), x, y, validation=(new, exact)).predict(x) == pytest.approx(y)


def test_scikit_learn_regressors_plug_in(data):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor

    x, y, new, _ = data
    ridge = predictions(fit_map(Ridge(0.5), x, y[:, :1]), new, 1)
    assert ridge == pytest.approx(Linear(0.5).fit(x, y[:, :1]).predict(new), rel=1e-9)  # the same penalty, the same map
    assert np.all(np.isfinite(predictions(fit_map(KNeighborsRegressor(3), x, y), new, 3)))


@pytest.mark.parametrize(
    ("x", "u"),
    [
        (2 * qmc.Sobol(2, seed=1).random(128)[:100] - 1, lambda x: np.abs(x[:, :1] - 0.2 * x[:, 1:])),
        (np.linspace(-1, 1, 40)[:, None], lambda x: 1 / (1.02 - x)),
    ],
    ids=["kink", "pole"],
)
def test_weights_of_a_gaussian_process_are_no_larger_than_they_need_be(x, u, monkeypatch):
    """Answers are sums of weights that cancel: with weights of 1e12 they lose twelve digits."""
    fitted = GaussianProcess().fit(x, u(x))
    assert np.abs(fitted.weights).sum() < 1e6 * np.abs(u(x)).max()
    monkeypatch.setattr(_Likelihood, "moderated", lambda self, lengths, nugget: nugget)
    heavy = GaussianProcess().fit(x, u(x))
    assert np.abs(heavy.weights).sum() > 1e9 * np.abs(u(x)).max()
    new = np.random.default_rng(4).uniform(-0.9, 0.9, (200, x.shape[1]))
    errors = [np.linalg.norm(one.predict(new) - u(new)) for one in (fitted, heavy)]
    assert errors[0] < 1.1 * errors[1]


@pytest.mark.parametrize("kernel", ["gaussian", "matern52"])
def test_derivatives_of_a_process_with_large_weights_keep_six_digits(kernel):
    """Weights of 1e8 cancel: values are noisy in the eighth digit, as is seen in differences of them, derivatives hardly.

    The reference is the same sum, with the same weights, in forty digits.
    """
    x = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    fitted = GaussianProcess(kernel, trend_degree=1).fit(x, np.exp(x.sum(axis=1, keepdims=True)))
    assert np.abs(fitted.weights).sum() > 1e8
    new = np.array([0.3, -0.4])
    with mpmath.workdps(40):
        t = [mpmath.mpf(v) for v in ((new - fitted.trend.shift) * fitted.trend.scale).tolist()]
        slopes = [mpmath.mpf(0), mpmath.mpf(0)]
        for centre, (weight,) in zip(fitted.centres.tolist(), fitted.weights.tolist(), strict=True):
            gaps = [(a - b) / length for a, b, length in zip(t, centre, fitted.lengths.tolist(), strict=True)]
            s = sum(gap**2 for gap in gaps)
            r = mpmath.sqrt(5 * s)
            g = -mpmath.exp(-s / 2) / 2 if kernel == "gaussian" else -(1 + r) * mpmath.exp(-r) * 5 / 6
            for i, gap in enumerate(gaps):
                slopes[i] += 2 * g * gap * weight * fitted.trend.scale[i] / fitted.lengths[i]
        reference = fitted.trend.jacobian(new[None])[0, 0] + [float(one) for one in slopes]
    assert fitted.jacobian(new[None])[0, 0] == pytest.approx(reference, rel=1e-6)
    assert reference == pytest.approx(np.exp(new.sum()) * np.ones(2), rel=1e-2)


def test_a_relative_fit_counts_small_samples_like_large_ones():
    """e^(6x) spans five decades: in absolute size only one end of them counts. A degree of 6 fits neither exactly."""
    x, at = np.linspace(-1, 1, 60)[:, None], np.linspace(-0.99, 0.99, 101)[:, None]
    worst = []
    for relative in (False, True):
        fitted = Polynomial(degree=6, relative=relative).fit(x, np.exp(6 * x))
        worst.append(np.max(np.abs(fitted.predict(at) / np.exp(6 * at) - 1)))
    assert worst[1] < 0.2 * worst[0]
    whole = [Polynomial(relative=relative).fit(x, np.exp(6 * x)) for relative in (False, True)]
    gaps = [np.max(np.abs(one.predict(at) / np.exp(6 * at) - 1)) for one in whole]
    assert gaps[1] < gaps[0]
    zero = Polynomial(relative=True).fit(x, 0 * x)
    assert np.all(zero.predict(at) == 0)


def test_a_shortened_polynomial_changes_by_no_more_than_was_allowed():
    x = np.random.default_rng(1).uniform([-1, 2], [3, 5], (300, 2))
    y = np.stack([np.exp(x[:, 0]) / x[:, 1], np.cos(x.sum(axis=1))], axis=1)
    whole = Polynomial().fit(x, y)
    inside = np.random.default_rng(2).uniform(x.min(axis=0), x.max(axis=0), (2000, 2))
    for change in (1e-9, 1e-4, 1e-1):
        short = whole.shortened(change)
        gaps = np.linalg.norm(short.predict(inside) - whole.predict(inside), axis=1)
        assert 0.01 * change < np.max(gaps) <= change
        assert len(short.indices) < len(whole.indices)
        assert np.max(gaps) <= short.error <= whole.error + change
    assert whole.shortened(0.0) is whole
