import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sympy import pi, sin
from threadpoolctl import threadpool_info, threadpool_limits

import parasol as ps
from parasol.checks import ParasolError, ParasolWarning
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.fingerprints import fingerprint
from parasol.reduction.snapshots import (
    as_snapshots,
    default_chunk_size,
    open_snapshots,
    solve_many,
)

MUS = np.linspace(0.0, 1.0, 23)[:, None]


def powers(mu):
    return mu[0] ** np.arange(1.0, 6.0)


def fussy(mu):
    if mu[0] > 0.9:
        raise ZeroDivisionError("too large")
    if 0.5 < mu[0] < 0.6:
        return np.array([np.nan, 1, 2, 3, 4.0])
    if 0.3 < mu[0] < 0.4:
        return np.zeros(3)
    return powers(mu)


def dying(mu):
    if mu[0] > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return powers(mu)


def mistaken(mu):
    return undefined  # noqa: F821


@pytest.fixture(scope="module")
def model():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200))


# ---- the same numbers however they are computed ---------------------------------------------------------------------
def test_serial_processes_and_executors_agree_to_the_last_bit(model, tmp_path):
    mus = model.sample(12, rng=3)
    one_by_one = np.array([model.solve(mu).values for mu in mus])
    plain = solve_many(model, mus)
    np.testing.assert_allclose(plain.solutions, one_by_one, rtol=1e-13)
    with ThreadPoolExecutor(2) as threads:
        ways = {
            "jobs": solve_many(model, mus, jobs=2),
            "store": solve_many(model, mus, store=tmp_path / "a"),
            "jobs and store": solve_many(model, mus, jobs=2, store=tmp_path / "b", chunk_size=5),
            "threads": solve_many(model, mus, executor=threads, chunk_size=1),
        }
    for name, found in ways.items():
        assert found.solutions.tobytes() == plain.solutions.tobytes(), name
        assert found.hidden.shape == (12, 0)
        np.testing.assert_array_equal(found.mus, mus)
        assert found.fingerprint == plain.fingerprint
        np.testing.assert_array_equal(np.vstack(list(found.blocks())), plain.solutions)


def test_a_users_process_pool_works_and_says_what_cannot_travel():
    with ProcessPoolExecutor(2) as pool:
        np.testing.assert_array_equal(solve_many(powers, MUS, executor=pool).solutions, [powers(mu) for mu in MUS])
        with pytest.raises(ParasolError, match=r"cannot be sent to the executor's processes.*Use jobs=n"):
            solve_many(lambda mu: mu, MUS, executor=pool)
        with pytest.raises(NameError):
            solve_many(mistaken, MUS, executor=pool)


def test_problems_in_time_are_stored_flat(tmp_path):
    x, t = *ps.coordinates("x"), ps.time()
    u = ps.unknown("u", x, t)
    (a,) = ps.parameters(a=(0.5, 1.0))
    problem = ps.Problem(
        ps.Box((0,), (1,)),
        ps.Eq(u.diff(t), a * u.diff(x, 2)),
        ps.Dirichlet(0),
        initial=sin(pi * x),
        times=(0.0, 0.05, 0.1),
    )
    heat = ps.discretize(problem, ps.lattice(problem.domain, 41))
    found = solve_many(heat, [[0.5], [1.0]], store=tmp_path / "heat")
    nodes = heat.nodes.points[:, 0]
    exact = [np.exp(-a * np.pi**2 * np.array([[0.0], [0.05], [0.1]])) * np.sin(np.pi * nodes) for a in (0.5, 1.0)]
    np.testing.assert_allclose(found.solutions, np.reshape(exact, (2, -1)), atol=2e-3)


def test_ghosts_are_hidden_and_join_with_the_visible():
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    (a,) = ps.parameters(a=(1.0, 2.0))
    problem = ps.Problem(
        ps.Box((0, 0), (1, 1)),
        ps.Eq(-a * ps.laplacian(u), 1),
        {"left": ps.Dirichlet(0), "*": ps.Neumann(0)},
    )
    model = ps.discretize(problem, ps.lattice(problem.domain, 9))
    n_ghosts = model.n_unknowns - model.n_nodes
    assert n_ghosts > 0
    unknowns = np.arange(2.0 * model.n_unknowns).reshape(2, -1)
    values, hidden = model.layout.at_nodes(unknowns), model.layout.at_ghosts(unknowns)
    np.testing.assert_array_equal(values, model.layout.at_nodes(unknowns))
    assert hidden.shape == (2, n_ghosts)
    np.testing.assert_array_equal(model.layout.unknowns(values, hidden), unknowns)
    found = solve_many(model, [[1.0], [1.5]])
    assert found.hidden.shape == (2, n_ghosts)
    for mu, row in zip(found.mus, model.layout.unknowns(found.solutions, found.hidden), strict=True):
        np.testing.assert_allclose(model.operator(mu) @ row, model.load(mu), atol=1e-9)


# ---- failures -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("jobs", [1, 2])
def test_failures_are_recorded_with_their_reason_and_the_rest_is_kept(tmp_path, jobs):
    with pytest.warns(ParasolWarning, match=r"\d of 23 parameters could not be solved and are left out; number 7"):
        found = solve_many(fussy, MUS, jobs=jobs, store=tmp_path / "s", chunk_size=4)
    good = np.array([mu[0] for mu in MUS if mu[0] <= 0.9 and not 0.5 < mu[0] < 0.6 and not 0.3 < mu[0] < 0.4])
    np.testing.assert_array_equal(found.mus[:, 0], good)
    np.testing.assert_array_equal(found.solutions, [powers([a]) for a in good])
    for failure in found.failures:
        a = failure.mu[0]
        assert a == MUS[failure.index, 0]
        assert ("too large" if a > 0.9 else "NaN" if a > 0.5 else "has 3 values, others have 5") in failure.reason
    assert len(found.failures) + len(found) == 23
    assert [f.reason for f in open_snapshots(tmp_path / "s").failures] == [f.reason for f in found.failures]
    assert "failed" in repr(found)


def test_all_failing_is_an_error_with_the_first_reasons(tmp_path):
    with pytest.raises(ParasolError, match=r"none of the 3 parameters.*number 0 \(0\.95\): too large"):
        solve_many(fussy, [[0.95], [0.96], [0.97]], store=tmp_path / "s")


def test_a_singular_parameter_of_a_model_is_a_failure():
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    (a,) = ps.parameters(a=(-1.0, 1.0))
    problem = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 1), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=100))
    with pytest.warns(ParasolWarning, match=r"1 of 3 .*number 1 \(a=0\)"):
        found = solve_many(model, [[-1.0], [0.0], [1.0]])
    np.testing.assert_array_equal(found.mus[:, 0], [-1, 1])


@pytest.mark.parametrize("kind", [ValueError, ArithmeticError, RuntimeError, np.linalg.LinAlgError, ParasolError])
def test_what_a_solver_raises_where_the_mathematics_fails_is_recorded(kind):
    def solver(mu):
        if mu[0] > limit:
            raise kind("no convergence")
        return powers(mu)

    limit = 0.9
    with pytest.warns(ParasolWarning, match="of 23 parameters could not be solved"):
        found = solve_many(solver, MUS)
    assert {f.reason for f in found.failures} == {"no convergence"}
    limit = -1
    with pytest.raises(ParasolError, match=r"none of the 23 parameters could be solved.*no convergence"):
        solve_many(solver, MUS)


@pytest.mark.parametrize("kind", [TypeError, KeyError, NotImplementedError])
def test_other_errors_of_a_solver_stop_the_run(kind):
    def solver(mu):
        raise kind("a mistake")

    with pytest.raises(kind, match="a mistake"):
        solve_many(solver, MUS)


@pytest.mark.parametrize("jobs", [1, 2])
def test_mistakes_in_the_solver_are_not_swallowed(jobs):
    with pytest.raises(NameError, match="undefined"):
        solve_many(mistaken, MUS, jobs=jobs)


def test_a_dead_worker_is_reported_and_finished_chunks_stay(tmp_path):
    with pytest.raises(ParasolError, match=r"a worker died .*Finished chunks are kept in .*run again to resume"):
        solve_many(dying, MUS, jobs=2, chunk_size=4, store=tmp_path / "s")
    assert 4 <= len(open_snapshots(tmp_path / "s")) <= 12
    assert not (tmp_path / "s" / "lock").exists()


def test_the_length_is_set_by_the_first_solution_whatever_the_order():
    def growing(mu):
        return np.zeros(3 if mu[0] < 0.2 else 4)

    for jobs in (1, 2):
        with pytest.warns(ParasolWarning, match="has 4 values, others have 3"):
            assert solve_many(growing, MUS, jobs=jobs, chunk_size=2).n_values == 3


# ---- solvers --------------------------------------------------------------------------------------------------------
def test_any_solver_will_do():
    @dataclass
    class Answer:
        values: list

    class Own:
        parameters = ParameterSpace(ps.parameters(a=(0.0, 1.0)))

        def solve(self, mu):
            return Answer([mu[0], 2 * mu[0]])

    np.testing.assert_array_equal(solve_many(Own(), MUS).solutions, MUS * [1, 2])
    with pytest.raises(ParasolError, match="a=2 is outside its range"):
        solve_many(Own(), [[2.0]])
    assert len(solve_many(Own(), [[2.0]], extrapolate=True)) == 1
    np.testing.assert_array_equal(solve_many(lambda mu: mu[0], MUS).solutions, MUS)
    np.testing.assert_array_equal(solve_many(lambda mu: np.ones((2, 3), dtype=int), MUS).solutions, np.ones((23, 6)))


@pytest.mark.parametrize("bad", [lambda mu: 1j * mu, lambda mu: {"u": mu}, lambda mu: "seven", lambda mu: []])
def test_what_is_no_solution_is_said(bad):
    with pytest.raises(ParasolError, match="expected real numbers"):
        solve_many(bad, MUS)


def test_wrong_arguments_are_refused(model):
    with pytest.raises(ParasolError, match="mus is empty"):
        solve_many(powers, np.empty((0, 1)))
    with pytest.raises(ParasolError, match="mus has shape"):
        solve_many(powers, [1.0, 2.0])
    with pytest.raises(ParasolError, match="NaN"):
        solve_many(powers, [[np.nan]])
    with pytest.raises(ParasolError, match="solver is 3"):
        solve_many(3, MUS)
    with pytest.raises(ParasolError, match="jobs must be a whole number"):
        solve_many(powers, MUS, jobs=0)
    with pytest.raises(ParasolError, match="both executor and jobs"), ThreadPoolExecutor(1) as threads:
        solve_many(powers, MUS, executor=threads, jobs=2)
    with pytest.raises(ParasolError, match="outside its range"):
        solve_many(model, [[99.0, 1.0]])
    assert len(solve_many(model, [[4.1, 1.0]], extrapolate=True)) == 1


# ---- manners --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [{}, {"jobs": 2, "chunk_size": 5}])
def test_progress_grows_to_one(tmp_path, options):
    told: list[float] = []
    solve_many(powers, MUS, progress=told.append, store=tmp_path / "s", **options)
    assert told[0] == 0
    assert told[-1] == 1
    assert told == sorted(told)
    assert len(told) >= 5
    told.clear()
    solve_many(powers, MUS, progress=told.append, store=tmp_path / "s", **options)
    assert told == [1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_warnings_of_the_solver_arrive_once(jobs):
    def talkative(mu):
        warnings.warn("mind the gap", ParasolWarning, stacklevel=2)
        return powers(mu)

    with pytest.warns(ParasolWarning) as said:
        solve_many(talkative, MUS, jobs=jobs, chunk_size=4)
    assert [str(w.message) for w in said if issubclass(w.category, ParasolWarning)] == ["mind the gap"]


SLOW = """
import sys, time
import numpy as np
from parasol.reduction.snapshots import solve_many

def slow(mu):
    time.sleep(0.05)
    return np.ones(4) * mu[0]

solve_many(slow, np.arange(400.0)[:, None], jobs=2, chunk_size=4, store=sys.argv[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_do_not_outlive_the_run_and_what_is_done_stays(tmp_path, how):
    child = subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path / "s")], stderr=subprocess.PIPE)
    wait_for(lambda: len(list(tmp_path.glob("s/receipts/[!.]*.json"))) >= 2)
    workers = [int(w) for w in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]
    assert len(workers) >= 2
    child.send_signal(how)  # to the parent alone
    child.communicate(timeout=120)
    wait_for(lambda: all(state(w) == "Z" for w in workers))
    found = open_snapshots(tmp_path / "s")
    assert len(found) >= 8
    assert len(found) + found.n_pending == 400
    assert (tmp_path / "s" / "lock").exists() == (how == signal.SIGKILL)


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def wait_for(condition, seconds=120):  # for busy machines
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_one_blas_thread_while_solving_and_as_before_afterwards():
    def n_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    def solve(mu):
        time.sleep(0.002)
        return np.array(n_threads())

    with threadpool_limits(2), ThreadPoolExecutor(3) as threads:
        before = n_threads()
        assert max(before) == 2
        assert np.all(solve_many(solve, MUS, executor=threads, chunk_size=2).solutions == 1)
        assert np.all(solve_many(solve, MUS, jobs=2).solutions == 1)
        assert n_threads() == before


def test_reasons_survive_the_store_whatever_they_are(tmp_path):
    def odd(mu):
        if mu[0] == 1:
            raise RuntimeError("half a pair \ud800, and " + 5000 * "long")
        return powers(mu)

    with pytest.warns(ParasolWarning, match="half a pair"):
        found = solve_many(odd, MUS, store=tmp_path / "s")
    assert found.failures[0].reason == open_snapshots(tmp_path / "s").failures[0].reason
    assert len(found.failures[0].reason) <= 1000


def test_default_chunks():
    assert default_chunk_size(10**6, 100) == 64
    assert default_chunk_size(10**6, 10**9) == 1
    assert default_chunk_size(1, 100) == 1
    assert default_chunk_size(64, None) == 2
    blocks = list(as_snapshots(np.zeros((200, 1)), np.ones((200, 10))).blocks())
    assert [len(b) for b in blocks] == [64, 64, 64, 8]


# ---- fingerprint ----------------------------------------------------------------------------------------------------
def test_a_models_fingerprint_is_about_its_answers(model):
    problem = model.problem
    again = ps.discretize(ps.load_problem("helmholtz"), ps.scatter(problem.domain, n_nodes=200))
    assert fingerprint(again) == fingerprint(model)
    again.solve()
    assert fingerprint(again) == fingerprint(model)
    for other in (
        ps.discretize(problem, ps.scatter(problem.domain, n_nodes=201)),
        ps.discretize(problem, model.nodes, degree=3),
    ):
        assert fingerprint(other) != fingerprint(model)


def test_a_solvers_fingerprint_is_its_code_and_its_data():
    class Scaled:
        def __init__(self, factor):
            self.factor = factor
            self.myself = self

        def solve(self, mu):
            return self.factor * mu

    def scaled(factor):
        return lambda mu: factor * mu

    for make in (Scaled, scaled):
        assert fingerprint(make(2.0)) == fingerprint(make(2.0))
        assert fingerprint(make(2.0)) != fingerprint(make(3.0))
        assert fingerprint(make(np.ones(3))) != fingerprint(make(np.arange(3.0)))
    assert fingerprint(powers) != fingerprint(fussy)
    named = Scaled(2.0)
    named.fingerprint = "mine"
    other = Scaled(3.0)
    other.fingerprint = lambda: "mine"
    assert fingerprint(named) == fingerprint(other)


GLOBALS = """
import math
import numpy as np
from numpy import sin

K, TABLE, CALLS = 2.0, np.arange(3.0), {"n": [1, 2]}

def helper(t):
    return t * FACTOR if t < 9 else again(t - 1)

def again(t):
    return helper(t)

FACTOR = 1.0

def plain(mu):
    return K * mu[0] * TABLE

def indirect(mu):
    return np.array([again(t) for t in mu]) + math.pi + sin(mu)

def nested(mu):
    return (lambda: K * mu)()

class Parent:
    @property
    def size(self):
        return K

class Own(Parent):
    def solve(self, mu):
        return self.size * helper(mu[0])

own = Own()

def through(mu):
    return own.solve(mu)
"""


def with_globals(**changes):
    names = {"__name__": "user"}
    exec(GLOBALS, names)
    names.update(changes)
    return names


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("plain", {"K": 5.0}),
        ("plain", {"TABLE": np.ones(3)}),
        ("indirect", {"FACTOR": 3.0}),
        ("indirect", {"sin": np.cos}),
        ("nested", {"K": 5.0}),
        ("own", {"K": 5.0}),
        ("own", {"FACTOR": 3.0}),
        ("through", {"FACTOR": 3.0}),
    ],
)
def test_a_fingerprint_sees_the_globals_that_are_used(name, changes):
    before = fingerprint(with_globals()[name])
    assert fingerprint(with_globals()[name]) == before
    assert fingerprint(with_globals(CALLS={}, unused=3)[name]) == before
    assert fingerprint(with_globals(**changes)[name]) != before


def test_a_store_is_not_reused_when_a_global_has_changed(tmp_path):
    solve_many(with_globals()["plain"], MUS, store=tmp_path / "s")
    with pytest.raises(ParasolError, match="belongs to another problem"):
        solve_many(with_globals(K=5.0)["plain"], MUS, store=tmp_path / "s")


def test_fingerprints_are_the_same_in_every_process(tmp_path):
    (tmp_path / "user.py").write_text(
        GLOBALS + "\nimport logging\nLOG = logging.getLogger('x')\nSET = {'a', 'b'}\n"
        "def loud(mu):\n    LOG.info(SET)\n    return open, print, mu\n"
    )
    code = "import user; from parasol.reduction.fingerprints import fingerprint as f; print(*[f(getattr(user, n)) for n in "
    code += "('plain', 'indirect', 'nested', 'own', 'through', 'loud')])"
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
