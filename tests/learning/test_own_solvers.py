import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import parasol as ps
from parasol.learning.run import learn, plan
from parasol.reduction.solvers import own_solver

T = np.linspace(0, 2, 30)
RANGES = {"k": (1.0, 3.0), "a": (0.5, 2.0, "log")}  # not in alphabetical order
quick = {"recipe": "polynomial"}


def wave(mu):
    k, a = mu
    return a * np.sin(k * T)


class Wave:
    parameters = RANGES

    def __init__(self, fails_below=0.0):
        self.fails_below = fails_below

    def solve(self, mu):
        if mu[1] < self.fails_below:
            raise ps.errors.SolveFailed("too small")
        return wave(mu)


def errors(surrogate, n=50):
    mus = np.random.default_rng(3).uniform([1.0, 0.5], [3.0, 2.0], (n, 2))
    truth = np.array([wave(mu) for mu in mus])
    return np.linalg.norm(surrogate(mus).values - truth, axis=1) / np.linalg.norm(truth, axis=1)


def test_a_function_with_a_dict_of_ranges():
    surrogate = learn(wave, 1e-3, parameters=RANGES, **quick)
    assert surrogate.facts["learn"]["met"]
    assert str(surrogate.parameters) == "k in [1, 3], a in [0.5, 2] (log)"
    assert np.mean(errors(surrogate) <= 1e-3) > 0.9
    assert surrogate({"a": 0.7, "k": 2.0}).values == pytest.approx(wave([2.0, 0.7]), abs=2e-3)


@pytest.mark.slow
def test_an_object_whose_parameters_are_a_dict_learns_the_same(tmp_path):
    one, other = learn(wave, 1e-3, parameters=RANGES, **quick), learn(Wave(), 1e-3, store=tmp_path, **quick)
    mu = [1.7, 0.9]
    assert np.array_equal(one(mu).values, other(mu).values)
    again = learn(Wave(), 1e-3, store=tmp_path, **quick)
    assert again.facts["learn"]["new_solves"] == 0
    with pytest.warns(ps.ParasolWarning, match="not reused: attribute fails_below differs"):
        learn(Wave(0.1), 1e-3, store=tmp_path, **quick)


@pytest.mark.slow
def test_a_function_keeps_its_solves_and_is_checked_after_loading(tmp_path):
    options = {"parameters": RANGES, "store": tmp_path / "runs", **quick}
    first, second = (learn(wave, 1e-3, **options).facts["learn"] for _ in range(2))
    assert (first["new_solves"], second["new_solves"]) == (first["solves"], 0)
    ps.save(learn(wave, 1e-3, **options), tmp_path / "wave.parasol")
    loaded = ps.load(tmp_path / "wave.parasol")
    assert ps.check(loaded, model=wave, n=20).holds
    assert ps.check(loaded, wave, n=20).holds
    assert not ps.check(loaded, lambda mu: 1.1 * wave(mu), n=20).holds


def test_parameters_may_be_those_of_data():
    mus = np.random.default_rng(0).uniform([1.0, 0.5], [3.0, 2.0], (200, 2))
    solutions = np.array([wave(mu) for mu in mus])
    surrogate = learn(data=(mus, solutions), parameters=RANGES, tolerance=1e-2, **quick)
    assert str(surrogate.parameters) == "k in [1, 3], a in [0.5, 2] (log)"


def test_samples_of_ranges():
    assert np.array_equal(ps.sample(RANGES, 8), ps.sample(own_solver(Wave()), 8))
    assert np.array_equal(ps.sample(Wave(), 8), ps.sample(RANGES, 8))


def test_a_plan_of_a_function():
    assert plan(wave, parameters=RANGES).method == "batches of full solves, a conformal bound"


def test_failures_are_recorded_and_named():
    with pytest.warns(ps.ParasolWarning, match=r"full solves failed, at .*a=0\.5.*\(too small\)"):
        surrogate = learn(Wave(0.8), 1e-2, **quick)
    assert surrogate.parameters.solved[1][0] > 0.79
    assert surrogate.facts["learn"]["met"]


def _program(mu):
    """A program that fails for k > 2 and says why."""
    text = "import sys; k = float(sys.argv[1]); k > 2 and sys.exit('diverged at step 7'); print(k)"
    done = subprocess.run([sys.executable, "-S", "-c", text, str(mu[0])], capture_output=True, text=True, check=True)
    return float(done.stdout) * np.ones(3)


def test_a_program_that_fails_is_a_failure_and_tells_its_last_words():
    with pytest.warns(ps.ParasolWarning, match=r"the program ended with status 1: diverged at step 7"):
        snapshots = ps.solve_many(_program, [[1.5], [2.5]])
    assert snapshots.mus.tolist() == [[1.5]]

    def slow(mu):
        raise subprocess.TimeoutExpired("solver", 3.0)

    with pytest.raises(ps.errors.SolveFailed, match=r"timed out after 3\.0 seconds"):
        ps.solve_many(slow, [[1.0]])


# ---- the budget -----------------------------------------------------------------------------------------------------
def _four(mu):
    """Smooth, four parameters."""
    return 1.0 / (mu[0] + mu[1] * T + mu[2] * T**2 + mu[3] * np.sin(3 * T) ** 2)


FOUR = {name: (0.1, 1.0) for name in "abcd"}


@pytest.mark.parametrize(("n", "kept"), [(20, 6), (50, 16), (100, 19)])
def test_the_budget_is_spent_exactly_and_all_but_the_calibration_is_learned_from(n, kept):
    calls = []

    def solve(mu):
        calls.append(mu)
        return _four(mu)

    with pytest.warns(ps.ParasolWarning, match="solves"):
        surrogate = learn(solve, 1e-9, parameters=FOUR, solves=n)
    assert len(calls) == len({mu.tobytes() for mu in calls}) == n
    assert surrogate.facts["learn"]["solves"] == n
    assert surrogate.conformal.n_calibration == kept
    assert len(surrogate.map.centres) == n - kept  # none was only a test


@pytest.mark.slow
def test_more_solves_err_less():
    mus = np.random.default_rng(5).uniform(0.1, 1.0, (200, 4))
    truth = np.array([_four(mu) for mu in mus])
    typical = []
    for n in (25, 50, 100, 200):
        with pytest.warns(ps.ParasolWarning):
            surrogate = learn(_four, 1e-9, parameters=FOUR, solves=n, recipe="gaussian process")
        gaps = np.linalg.norm(surrogate(mus).values - truth, axis=1) / np.linalg.norm(truth, axis=1)
        typical.append(np.median(gaps))
    assert typical[0] > 4 * typical[1] > 16 * typical[2]
    assert typical[2] > 3 * typical[3]


# ---- bad input ------------------------------------------------------------------------------------------------------
class NoSolve:
    parameters = RANGES


class NoParameters:
    def solve(self, mu):
        return wave(mu)


@pytest.mark.parametrize(
    ("solver", "parameters", "said"),
    [
        (wave, None, "the parameters of wave are not known. Pass parameters={"),
        (NoParameters(), None, "the parameters of NoParameters are not known"),
        (
            NoSolve(),
            None,
            "Pass a ps.Problem, such as ps.load_problem(name), a model, an object with solve(mu), or a function solve(mu)",
        ),
        (None, RANGES, "problem is None. Pass a ps.Problem"),
        ("helmholtz", None, "problem is 'helmholtz'. Pass a ps.Problem"),
        (Wave, None, "the solver is the class Wave. Pass an object of it: Wave()."),
        (Wave(), RANGES, "the solver has an attribute parameters, and parameters= is given too"),
        (wave, {}, "wave has no parameters, so there is nothing to learn"),
        (wave, {"a": 3}, "parameter 'a' got 3. Write a=(low, high)"),
        (wave, {"a": (2, 1)}, "range of parameter 'a' is (2, 1). Give a finite low < high."),
        (wave, {"a": (0, 1, "log")}, "A log scale needs low > 0."),
        (wave, {"a": (0, 1, "cubic")}, "scale of parameter 'a'"),
        (wave, {"two words": (0, 1)}, "'two words' is not a plain name"),
        (wave, 3, "parameters must be ranges by name"),
        (wave, "a", "parameters must be ranges by name"),
        (
            lambda k, a: wave([k, a]),
            RANGES,
            "must take one argument: mu, a vector with k, a. Begin it with `k, a = mu`",
        ),
    ],
)
def test_what_is_no_solver_is_refused_before_the_work(solver, parameters, said):
    with pytest.raises(ps.errors.InputError, match=re.escape(said)) as error:
        learn(solver, 1e-3, parameters=parameters)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "the solver returned NoneType"),
        ({"u": T}, "the solver returned dict"),
        ("u.csv", "the solver returned str"),
        (1j * T, "complex128 and shape (30,), expected real numbers"),
        ([], "shape (0,)"),
        ([[1.0], [1.0, 2.0]], "the solver returned list"),
    ],
)
def test_what_is_no_solution_is_refused(returned, said):
    with pytest.raises(ps.errors.InputError, match=re.escape(said)) as error:
        learn(lambda mu: returned, 1e-3, parameters=RANGES)
    assert "\n" not in str(error.value)


def test_the_parameters_of_an_equation_are_its_own():
    x = ps.coordinates("x")[0]
    u, (a,) = ps.unknown("u", x), ps.parameters(a=(1.0, 2.0))
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-a * u.diff(x, 2), 1), ps.Dirichlet(0))
    with pytest.raises(ps.errors.InputError, match="declares its parameters itself"):
        learn(problem, 1e-3, parameters=RANGES)


def test_an_object_with_a_space_is_taken_as_it_is():
    class Own(NoParameters):
        parameters = ps.pde.ParameterSpace(ps.parameters(k=(1.0, 3.0), a=(0.5, 2.0)))

    solver = Own()
    assert own_solver(solver) is solver


def test_what_a_store_has_of_a_solver_that_answers_otherwise_now_is_set_aside(tmp_path):
    (tmp_path / "factor").write_text("2")

    def reading(mu):
        return float((tmp_path / "factor").read_text()) * wave(mu)

    options = {"parameters": RANGES, "store": tmp_path / "runs", **quick}
    first = learn(reading, 1e-3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(learn(reading, 1e-3, **options)([2.0, 1.0]).values, first([2.0, 1.0]).values)
    (tmp_path / "factor").write_text("3")
    with pytest.warns(UserWarning, match=r"full solves which are not reused.* 0\.5 apart"):
        second = learn(reading, 1e-3, **options)
    assert np.linalg.norm(second([2.0, 1.0]).values / 3 - wave([2.0, 1.0])) < 1e-2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(reading, 1e-3, **options)
    assert len(list((tmp_path / "runs").glob("replaced-*/batch-*"))) > 0  # nothing is lost
