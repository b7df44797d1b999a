"""The family of errors: where each is raised, and that none is taken for another."""

import pickle
from importlib import import_module
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest
from sympy import exp, sqrt

import parasol as ps
from parasol.cache.content import content_hash
from parasol.cache.disk import claim
from parasol.cli.terminal import write_safely
from parasol.errors import (
    Exhausted,
    FileError,
    FormulaError,
    InputError,
    NoCertificate,
    NotInstalled,
    SolveFailed,
    TooFewSamples,
    Unhashable,
    UnsuitableNodes,
)
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.polynomial import Polynomial
from parasol.learning import labels
from parasol.learning.comparing import compare
from parasol.learning.labels import label_source
from parasol.learning.sampled import learn_sampled
from parasol.learning.solves import Limits, SolveCache
from parasol.reduction.snapshots import NothingSolved
from parasol.report.budget.check import other_kernel
from parasol.runtime import above, container
from parasol.runtime.formulas import Formula

(x,) = ps.coordinates("x")


def rod(equation, **options):
    """A model on 30 nodes of (0, 1) with u = 0 at its ends."""
    problem = ps.Problem(ps.Box(0.0, 1.0), equation, ps.Dirichlet(0), **options)
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=30))


@pytest.fixture(scope="module")
def heated():
    """−(1 + a) u'' = 1: linear, one parameter."""
    u, (a,) = ps.unknown("u", x), ps.parameters(a=(0.0, 1.0))
    return rod(ps.Eq(-(1 + a) * u.diff(x, 2), 1))


@pytest.fixture(scope="module")
def bent():
    """−u'' = r exp(u): there are no solutions for r > 3.51."""
    u, (rate,) = ps.unknown("u", x), ps.parameters(rate=(0.1, 2.0))
    return rod(ps.Eq(-u.diff(x, 2), rate * exp(u)))


@pytest.fixture(scope="module")
def surrogate():
    mus = np.linspace(0, 1, 9)[:, None]
    return ps.fit_snapshots(mus, mus * [1.0, 2.0], "linear", level=None)


# ---- where each is raised -------------------------------------------------------------------------------------------
def test_the_family_is_public_and_every_member_is_a_parasol_error_and_a_value_error():
    assert ps.errors.ParasolError is ps.ParasolError
    for kind in (InputError, SolveFailed, NoCertificate, Exhausted, FileError):
        assert issubclass(kind, ps.ParasolError)
        assert issubclass(kind, ValueError)
        assert getattr(ps.errors, kind.__name__) is kind
        again = pickle.loads(pickle.dumps(kind("why")))  # errors travel from worker processes
        assert type(again) is kind
        assert str(again) == "why"


def test_newton_that_does_not_converge(bent):
    with pytest.raises(SolveFailed, match="Newton"):
        bent.solve([9.0], extrapolate=True)


def test_a_singular_matrix_is_a_failed_solve():
    u, (a,) = ps.unknown("u", x), ps.parameters(a=(-1.0, 1.0))
    with pytest.raises(SolveFailed, match="at a=0"):
        rod(ps.Eq(a * u.diff(x, 2), 1)).solve([0.0])


def test_data_that_have_no_value_at_one_parameter_are_a_failed_solve(heated, monkeypatch):
    u, (a,) = ps.unknown("u", x), ps.parameters(a=(-1.0, 1.0))
    with pytest.raises(SolveFailed, match=r"at a=-0.5: the matrix has entries that are NaN"):
        rod(ps.Eq(-u.diff(x, 2) * (1 + sqrt(a)), 1)).solve([-0.5])
    with pytest.raises(SolveFailed, match="the right-hand side at a=0 has 30 entries"):
        rod(ps.Eq(-u.diff(x, 2), 1 / a)).solve([0.0])
    for error in (FormulaError("no value"), ZeroDivisionError("no value"), np.linalg.LinAlgError("no value")):

        def solve(*arguments, error=error, **_):
            raise error

        monkeypatch.setattr(import_module("parasol.pde.model"), "solve_steady", solve)
        with pytest.raises(SolveFailed, match=r"^no value$"):
            heated.solve([0.5])


def test_growth_in_time_is_a_failed_solve():
    t = ps.time()
    u, (rate,) = ps.unknown("u", x, t), ps.parameters(rate=(1.0, 2.0))
    model = rod(ps.Eq(u.diff(t), u.diff(x, 2) + rate * u**2), initial=40 * x * (1 - x), times=[0.0, 1.0])
    with pytest.raises(SolveFailed):
        model.solve([2.0])


def test_all_solves_failing_is_a_failed_solve(bent):
    with pytest.raises(NothingSolved) as caught:
        ps.solve_many(bent, [[9.0]], extrapolate=True)
    assert isinstance(caught.value, SolveFailed)


def test_a_problem_without_reduced_steps_has_no_certificate():
    t = ps.time()
    u, (a,) = ps.unknown("u", x, t), ps.parameters(a=(1.0, 2.0))
    heat, still = ps.Eq(u.diff(t), u.diff(x, 2)), {"initial": x * (1 - x), "times": [0.0, 0.1]}
    problem = ps.Problem(ps.Box(0.0, 1.0), heat, ps.Robin(a, 1), **still)
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=30))
    snapshots = ps.solve_many(model, [[1.0], [2.0]])
    with pytest.raises(NoCertificate, match="depends on the parameters"):
        ps.reduction.space_basis(model, snapshots, n_modes=2)


def test_a_budget_that_is_used_up(heated):
    cache = SolveCache(heated, Limits(solves=8))
    cache.solve(ps.sample(heated, 8))
    with pytest.raises(Exhausted, match=r"^the solves allowed are used up before anything was learned. Allow more.$"):
        cache.unknowns(heated, np.array([0.123]))
    with pytest.raises(Exhausted, match="too few full solves are allowed"):
        learn_sampled(heated, 1e-3, cache)


def test_files_and_stores(tmp_path, surrogate):
    with pytest.raises(FileError, match=r"there is no file .*none\.parasol"):
        ps.load(tmp_path / "none.parasol")
    (tmp_path / "text.parasol").write_text("not a surrogate")
    with pytest.raises(FileError, match="is not a surrogate, or is damaged"):
        ps.load(tmp_path / "text.parasol")
    with pytest.raises(FileError, match="there is no directory"):
        ps.save(surrogate, tmp_path / "none" / "s.parasol")
    with pytest.raises(FileError, match="there is no snapshot store"):
        ps.reduction.open_snapshots(tmp_path / "none")
    with claim(tmp_path / "store"), pytest.raises(FileError, match="another run"), claim(tmp_path / "store"):
        pass
    with pytest.raises(FileError, match="there is no file"):
        ps.load_problem(str(tmp_path / "none.py"))


def test_a_damaged_file_is_named_once_whatever_its_name(tmp_path, surrogate):
    # the name of the file used to decide, by its occurrence in the message, whether it was added
    for name in ("s.parasol", "manifest.parasol", "its version is 7.parasol"):
        path = ps.save(surrogate, tmp_path / name)
        path.write_bytes(path.read_bytes().replace(b'"version": ', b'"version":-'))
        with pytest.raises(FileError) as caught:
            ps.load(path)
        assert str(caught.value).count(name) == 1


def test_a_missing_package_is_not_a_damaged_file(tmp_path, surrogate, monkeypatch):
    path = ps.save(surrogate, tmp_path / "s.parasol")

    def missing(*arguments):
        raise NotInstalled("reading its stencils needs scipy, which is not installed.")

    monkeypatch.setattr(container, "_decode", missing)
    with pytest.raises(NotInstalled, match="cannot be read here: reading its stencils needs scipy"):
        ps.load(path)


def test_the_narrower_ones():
    few = np.linspace(0, 1, 5)[:, None]
    with pytest.raises(UnsuitableNodes, match="more than the 5 nodes"):
        ps.space.differentiate(few, few, [(2,)], ps.space.default_scheme(1))
    (x,) = ps.coordinates("x")
    u, ends = ps.unknown("u", x), {"inlet": ps.Dirichlet(0), "*": ps.Dirichlet(1)}
    line = ps.Problem(ps.Box(0.0, 1.0).named(inlet=x < 1e-12), ps.Eq(-u.diff(x, 2), 1), ends)
    with pytest.raises(UnsuitableNodes, match=r"'inlet' has no node.*write x <= 0 rather than"):
        ps.discretize(line, ps.scatter(line.domain, n_nodes=20))
    with pytest.raises(FormulaError, match="'b' is unknown"):
        Formula("a + b", ("a",))
    with pytest.raises(TooFewSamples, match="too few for a polynomial"):
        Polynomial().fit(np.eye(3), np.eye(3))
    with pytest.raises(Unhashable, match="cannot be hashed by its content"):
        content_hash(Lock())


# ---- what used to be swallowed --------------------------------------------------------------------------------------
def mistake(*arguments, **options):
    raise InputError("on purpose")


def bug(*arguments, **options):
    raise ValueError("on purpose")


broken = pytest.mark.parametrize("broken", [mistake, bug])


@broken
def test_learn_does_not_answer_by_another_method_because_of_a_mistake(heated, monkeypatch, broken):
    monkeypatch.setattr(import_module("parasol.learning.run"), "learn_linear", broken)
    with pytest.raises(ValueError, match="on purpose"):
        ps.learn(heated, 1e-2, recipe="polynomial")


def test_learn_answers_by_another_method_where_there_is_no_certificate(heated, monkeypatch):
    def none(*arguments, **options):
        raise NoCertificate("there is none")

    monkeypatch.setattr(import_module("parasol.learning.run"), "learn_linear", none)
    notes = ps.learn(heated, 1e-2, recipe="polynomial").facts["learn"]["notes"]
    assert "from samples instead of a reduced model: there is none" in notes


@broken
def test_learn_does_not_go_on_without_a_reduced_model_because_of_a_mistake(bent, monkeypatch, broken):
    train = ps.solve_many(bent, ps.sample(bent, 8, rng=8))
    monkeypatch.setattr(labels, "reduce_nonlinear", broken)
    with pytest.raises(ValueError, match="on purpose"):
        label_source(bent, train, 1e-4)


@broken
def test_a_mistake_in_a_solve_of_a_model_is_no_failure_at_a_parameter(heated, monkeypatch, broken):
    monkeypatch.setattr(import_module("parasol.pde.model"), "solve_steady", broken)
    with pytest.raises(ValueError, match="on purpose"):
        ps.solve_many(heated, [[0.5]])
    with pytest.raises(ValueError, match="on purpose"):
        compare(heated, heated)
    with pytest.raises(ValueError, match="on purpose"):
        other_kernel(heated)


def test_a_solver_of_one_s_own_fails_by_any_value_error_but_a_mistake():
    def solver(mu):
        if mu[0] > 1:
            raise ValueError("no solution")
        return mu * np.ones(3)

    with pytest.warns(ps.ParasolWarning, match="no solution"):
        assert len(ps.solve_many(solver, [[1.0], [2.0]]).failures) == 1
    with pytest.raises(InputError, match="on purpose"):
        ps.solve_many(mistake, [[1.0], [2.0]])


def test_growth_where_parameters_end_is_infinite_only_where_it_cannot_be_computed(monkeypatch):
    t = ps.time()
    u, (a,) = ps.unknown("u", x, t), ps.parameters(a=(0.0, 1.0))
    still = {"initial": x * (1 - x), "times": [0.0, 0.1]}
    assert rod(ps.Eq(a * u.diff(t), u.diff(x, 2)), **still).typical_growth == np.inf
    model = rod(ps.Eq(u.diff(t), (1 + a) * u.diff(x, 2)), **still)
    monkeypatch.setattr(import_module("parasol.pde.model"), "spectrum", mistake)
    with pytest.raises(InputError, match="on purpose"):
        _ = model.typical_growth


@broken
def test_the_projections_in_time_are_not_left_out_because_of_a_mistake(monkeypatch, broken):
    t = ps.time()
    u, (a,) = ps.unknown("u", x, t), ps.parameters(a=(1.0, 2.0))
    model = rod(ps.Eq(u.diff(t), a * u.diff(x, 2)), initial=x * (1 - x), times=[0.0, 0.05, 0.1])
    snapshots = ps.solve_many(model, [[1.0], [1.5], [2.0]])
    basis = ps.reduction.space_basis(model, snapshots, n_modes=2)
    monkeypatch.setattr(import_module("parasol.reduction.in_time"), "project", broken)
    with pytest.raises(ValueError, match="on purpose"):
        ps.reduce(model, basis, snapshots)


def test_a_process_chooses_its_trend_by_the_number_of_samples_alone(monkeypatch):
    few = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]])
    assert GaussianProcess().fit(few, few).predict(few).shape == (2, 3)
    monkeypatch.setattr(import_module("parasol.fitting.gaussian_process"), "Polynomial", mistake)
    with pytest.raises(InputError, match="on purpose"):
        GaussianProcess().fit(few, few)


def test_what_cannot_be_saved_anywhere_is_not_tried_elsewhere(tmp_path):
    tried = []

    def write(path):
        tried.append(path)
        raise InputError("on purpose")

    with pytest.raises(InputError, match="on purpose"):
        write_safely(write, tmp_path / "s.parasol")
    assert tried == [tmp_path / "s.parasol"]


def test_a_page_without_its_certificate_is_not_made_because_of_a_mistake(monkeypatch):
    bounds = import_module("parasol.delivery.page.bounds")
    monkeypatch.setattr(bounds, "_reduced", mistake)
    surrogate = SimpleNamespace(
        reduced=SimpleNamespace(certificate=object(), duals=None), map=object(), quantities=None
    )
    with pytest.raises(InputError, match="on purpose"):
        bounds.bound_program(surrogate, [], bounds.Pack(), 0)


def test_what_needs_a_package_that_is_missing_names_it(monkeypatch):
    monkeypatch.setitem(above._ABOVE, "html", ("no_such_package.views", "html", "showing it in a notebook"))
    with pytest.raises(NotInstalled, match="showing it in a notebook needs no_such_package, which is not installed"):
        ps.runtime.Basis(np.eye(3)[:, :1])._repr_html_()


def test_a_surrogate_that_finds_no_room_on_the_disk_is_a_file_error(monkeypatch, tmp_path):
    mus = np.linspace(0, 1, 9)[:, None]
    line = ps.fit_snapshots(mus, mus * [1.0, 2.0], "linear", level=None)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(FileError, match=r"line.parasol'.*No space left on device"):
        ps.save(line, tmp_path / "line.parasol")
    assert not list(tmp_path.iterdir())
