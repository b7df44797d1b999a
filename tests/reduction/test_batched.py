"""Solves in batches: the same code on JAX's CPU backend, held against sparse elimination; what needs a GPU is skipped."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol import devices
from parasol.errors import InputError
from parasol.learning.report import LearnReport
from parasol.learning.solves import Limits, SolveCache
from parasol.reduction import batched as module
from parasol.reduction.batched import Batched, batched
from parasol.reduction.snapshots import open_snapshots

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def flower():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200))


@pytest.fixture(scope="module")
def here(flower):
    return Batched(flower, devices.pick_device("cpu"))


@pytest.fixture
def pretended(monkeypatch, here):
    """A GPU, played by JAX's CPU backend, which is always worth its start."""
    monkeypatch.setattr(module, "gpu_device", lambda: here.device)
    monkeypatch.setattr(module, "_last", [here])
    monkeypatch.setattr(module, "_AGAIN", 0.0)
    monkeypatch.setattr(module, "_STARTING", 0.0)


def test_answers_are_those_of_sparse_elimination(flower, here):
    mus = ps.sample(flower, 8)
    solved = here.solve(mus)
    assert len(solved) == len(mus)
    for mu in mus:
        expected = flower.solve(mu).unknowns
        assert np.max(np.abs(solved[mu.tobytes()] - expected)) < 1e-12 * np.max(np.abs(expected))
    again = here.solve(mus)
    assert all(np.array_equal(again[key], u) for key, u in solved.items())
    function, _ = here._compiled
    n_compiled = function._cache_size()
    assert len(here.solve(mus[:7])) == 7
    assert function._cache_size() == n_compiled  # padded to a size that is known


def assert_same(model, solved, mus, gap):
    for mu in mus:
        expected = model.solve(mu).unknowns
        assert np.max(np.abs(solved[mu.tobytes()] - expected)) < gap * np.max(np.abs(expected))


@pytest.mark.slow
def test_two_unknowns_with_conditions_on_slopes():
    problem = ps.load_problem("elasticity")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=120))
    assert model.layout.n_ghosts > 0
    assert model.layout.n_fields == 2
    mus = ps.sample(model, 2)
    assert_same(model, Batched(model, devices.pick_device("cpu")).solve(mus), mus, 1e-10)


def resonating():
    """−u'' = k² u + 1 / (1 + a x²) on (0, π): no solution for whole numbers k, and a source that is no product."""
    (x,) = ps.coordinates("x")
    k, a = ps.parameters(k=(0.5, 3.5), a=(0.5, 2.0))
    u = ps.unknown("u", x)
    equation = ps.Eq(-u.diff(x, 2) - k**2 * u, 1 / (1 + a * x**2))
    problem = ps.Problem(domain=ps.Box(0.0, float(np.pi)), equation=equation, boundary=ps.Dirichlet(0))
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=60))


def eigenvalue(model):
    """The k near 2 at which the discrete problem has no solution, by bisection of the determinant's sign."""
    low, high = 1.9, 2.1
    sign = np.linalg.slogdet(model.operator(np.array([low, 1.0])).toarray())[0]
    for _ in range(60):
        middle = (low + high) / 2
        same = np.linalg.slogdet(model.operator(np.array([middle, 1.0])).toarray())[0] == sign
        low, high = (middle, high) if same else (low, middle)
    return low


def test_what_fails_its_check_is_left_to_the_solver(pretended):
    model = resonating()
    k = eigenvalue(model)
    mus = np.array([[1.3, 1.0], [k, 1.0], [2.5, 0.7], [k * (1 + 1e-11), 1.5]])
    solved = Batched(model, devices.pick_device("cpu")).solve(mus)
    assert {mu.tobytes() for mu in mus[[0, 2]]} == set(solved)
    assert_same(model, solved, mus[[0, 2]], 1e-11)
    with pytest.warns(ps.errors.ParasolWarning):
        snapshots, expected = (ps.solve_many(model, mus, device=device) for device in ("auto", "cpu"))
    assert [f.reason for f in snapshots.failures] == [f.reason for f in expected.failures]
    assert snapshots.device == "cpu"  # which plays the GPU
    np.testing.assert_allclose(snapshots.solutions, expected.solutions, rtol=1e-10, atol=1e-12)


# ---- in solve_many ---------------------------------------------------------------------------------------------------
def test_solve_many_in_batches_of_chunks(pretended, flower, here, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(Batched, "rows", property(lambda self: 8))
    monkeypatch.setattr(Batched, "name", property(lambda self: "gpu"))
    solve = Batched.solve
    monkeypatch.setattr(Batched, "solve", lambda self, mus: calls.append(len(mus)) or solve(self, mus))
    mus, fractions = ps.sample(flower, 20), []
    first = ps.solve_many(flower, mus[:11], store=tmp_path / "s", chunk_size=3, progress=fractions.append)
    assert calls == [6, 5]
    assert fractions[-1] == 1.0
    assert first.device == "gpu"
    assert "solved on the GPU" in repr(first)
    calls.clear()
    snapshots = ps.solve_many(flower, mus, store=tmp_path / "s", chunk_size=3)
    assert calls == [7, 2]  # of a chunk that is there in part, the rest
    expected = ps.solve_many(flower, mus, device="cpu").solutions
    np.testing.assert_allclose(snapshots.solutions, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
    assert np.array_equal(open_snapshots(tmp_path / "s").solutions, snapshots.solutions)
    calls.clear()
    with ThreadPoolExecutor(1) as executor:
        assert ps.solve_many(flower, mus[:2], executor=executor).device == "cpu"
    assert ps.solve_many(flower, mus[:2], device="cpu").device == "cpu"
    assert not calls


def test_a_learning_says_where_it_solved(pretended, flower, monkeypatch):
    monkeypatch.setattr(Batched, "name", property(lambda self: "gpu"))
    cache = SolveCache(flower, Limits())
    assert cache.device is None
    cache.solve(ps.sample(flower, 8))
    assert cache.device == "gpu"
    sizes = {"n_nodes": 200, "solves": 8, "new_solves": 8, "seconds_per_solve": 0.1, "n_modes": 3, "seconds": 1.0}
    words = {"certificate": "estimated", "limit": "", "labels": "", "map": "", "notes": (), "history": ()}
    flags = {"met": True, "total": False, "refined_nodes": False, "comparisons": (), "discretisation_error": None}
    report = LearnReport(tolerance=1e-3, bound=1e-4, **sizes, **words, **flags)
    assert "device" not in report.to_dict()
    on_gpu = replace(report, device=cache.device)
    assert on_gpu.to_dict()["device"] == "gpu"
    assert on_gpu.rows()["full solves"] == "8, some on a GPU"


def test_a_gpu_that_fails_is_said_and_costs_nothing(pretended, flower, monkeypatch):
    def broken(self, mus, size):
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory\nallocated: 1")

    monkeypatch.setattr(Batched, "_batch", broken)
    monkeypatch.setattr(Batched, "name", property(lambda self: "gpu"))
    mus = ps.sample(flower, 2)
    said = r"the GPU failed \(RESOURCE_EXHAUSTED: out of memory\): solved on the processor instead"
    with pytest.warns(ps.errors.ParasolWarning, match=said):
        snapshots = ps.solve_many(flower, mus)
    assert snapshots.device == "cpu"
    assert np.array_equal(snapshots.solutions, ps.solve_many(flower, mus, device="cpu").solutions)


def test_without_a_gpu_nothing_changes(flower, monkeypatch):
    monkeypatch.setattr(module, "_STARTING", 0.0)
    monkeypatch.setattr(devices, "_PLUGINS", ())
    monkeypatch.setattr(devices, "pick_device", lambda kind: pytest.fail("JAX was asked"))
    assert batched(flower, 10_000) is None
    monkeypatch.setattr(devices, "_PLUGINS", ("numpy",))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert batched(flower, 10_000) is None


def test_few_solves_are_not_worth_the_start(monkeypatch, flower, here):
    monkeypatch.setattr(module, "gpu_device", lambda: here.device)
    monkeypatch.setattr(module, "_last", [])
    assert batched(flower, 100) is None
    first = batched(flower, 100_000)
    assert first is not None
    assert batched(flower, 200) is first  # compiled
    assert batched(flower, 10) is None


def test_what_cannot_be_solved_in_batches_is_refused_on_request(flower):
    for solver, why in ((np.sin, "not a model"), (ps.load_problem("bratu"), None), (ps.load_problem("heat"), None)):
        model = solver if why else ps.discretize(solver, ps.scatter(solver.domain, n_nodes=100))
        with pytest.raises(InputError, match=f'device="gpu", but .*{why or "linear steady"}.*Use device="cpu"'):
            batched(model, 5, "gpu")
    with pytest.raises(InputError, match="device='tpu' is unknown"):
        ps.solve_many(flower, ps.sample(flower, 2), device="tpu")
    with pytest.raises(InputError, match='device="gpu" is for solves in this process'):
        ps.solve_many(flower, ps.sample(flower, 2), device="gpu", jobs=2)
    if devices.gpu_device() is None:
        with pytest.raises(InputError, match="JAX sees none"):
            ps.solve_many(flower, ps.sample(flower, 2), device="gpu")


@pytest.mark.skipif(devices.gpu_device() is None, reason="no GPU")
def test_on_a_gpu(flower):
    mus = ps.sample(flower, 40)
    snapshots = ps.solve_many(flower, mus, device="gpu")
    expected = ps.solve_many(flower, mus, device="cpu").solutions
    assert snapshots.device == "gpu"
    np.testing.assert_allclose(snapshots.solutions, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
