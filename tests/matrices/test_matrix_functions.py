"""operator(mu) as a function: heat with a moving bump of material, against dense solves of matrices assembled apart."""

import numpy as np
import pytest
from scipy import sparse

import parasol as ps
from parasol.fitting.fit import surrogate_without_map
from parasol.pde.parameters import FunctionParameter
from parasol.reduction.affine import affine_form
from parasol.reduction.sampling import sample

N = 10
X, Y = (c.ravel() for c in np.meshgrid(np.linspace(0, 1, N + 1), np.linspace(0, 1, N + 1), indexing="ij"))
POINTS = np.column_stack([X, Y])
CORNER = (np.arange(N)[:, None] * (N + 1) + np.arange(N)).ravel()
CELLS = np.concatenate(
    [np.stack([CORNER, CORNER + N + 1, CORNER + N + 2], axis=1), np.stack([CORNER, CORNER + N + 2, CORNER + 1], axis=1)]
)
FREE = np.flatnonzero((X > 0) & (X < 1) & (Y > 0) & (Y < 1))
BOX = {"a": (0.3, 0.7), "h": (0.5, 5.0)}


def stiffness(k):
    """Linear elements on half squares, with the material k at the centres."""
    corners = POINTS[CELLS]
    edges = corners[:, [2, 0, 1]] - corners[:, [1, 2, 0]]
    area = 0.5 / N**2
    local = np.einsum("cid,cjd->cij", edges, edges) / (4 * area) * k(*corners.mean(axis=1).T)[:, None, None]
    rows, columns = np.repeat(CELLS, 3, axis=1).ravel(), np.tile(CELLS, (1, 3)).ravel()
    return sparse.csr_array((local.ravel(), (rows, columns)), shape=(len(X),) * 2)[FREE][:, FREE]


PRODUCT = stiffness(lambda x, y: np.ones(len(x)))


def bump(mu):
    return stiffness(lambda x, y: 1 + mu[1] * np.exp(-((x - mu[0]) ** 2 + (y - 0.5) ** 2) / 0.1))


def load(mu):
    return np.sin(mu[0] * X[FREE] * 4) / N**2


def dense(mu):
    return np.linalg.solve(bump(mu).toarray(), load(mu))


@pytest.fixture(scope="module")
def model():
    options = {"points": POINTS, "cells": CELLS, "free": FREE, "product": PRODUCT}
    return ps.AffineModel(bump, load, parameters=BOX, quantities={"mean": np.ones(len(FREE))}, **options)


@pytest.fixture(scope="module")
def learned(model):
    return ps.learn(model, 1e-3, recipe="polynomial")


def errors(answers, mus):
    truth = np.array([dense(mu) for mu in mus])
    norm = lambda v: np.sqrt(np.sum(v * (v @ PRODUCT), axis=1))  # noqa: E731
    return norm(answers.values[:, FREE] - truth) / norm(truth)


def test_full_solves_use_the_functions_as_they_are(model):
    for mu in ([0.31, 0.6], [0.7, 5.0]):
        solution = model.solve(mu)
        assert solution.values[FREE] == pytest.approx(dense(mu), abs=1e-12)
        assert solution.quantities["mean"] == pytest.approx(dense(mu).sum())
    assert model.problem.equation == "A(a, h) u = f(a, h)"
    assert model.problem.affine is False


def test_sums_are_right_where_they_say_and_never_exact(model):
    form = affine_form(model)
    assert 0 < form.error < 1e-7
    assert not form.exact
    for mu in model.sample(20, rng=11):
        exact = model.operator(mu)
        assert abs(form.operator(mu) - exact).max() <= 10 * form.error * abs(exact).max()
        gap = form.load_theta(mu[None])[0] @ form.loads - model.load(mu)
        assert np.abs(gap).max() <= 10 * form.error * np.abs(model.load(mu)).max()


def test_what_is_learned_holds_and_is_not_called_proven(model, learned):
    report = learned.facts["learn"]
    assert report["met"]
    assert report["certificate"] == "probable"
    assert report["solves"] < 40
    assert report["probability"] == pytest.approx(1 - 2.8e-4 - 2 / 101, abs=1e-4)  # two functions, 100 fresh parameters
    assert any("fitted to samples" in note for note in report["notes"])
    mus = model.sample(40, rng=5)
    answers = learned(mus)
    true = errors(answers, mus)
    assert set(answers.bound_kind) == {"probable"}
    assert np.all(true <= answers.bound)
    assert np.max(answers.bound) <= 1e-3
    assert np.median(answers.bound / true) < 4
    off = np.abs(answers.quantities["mean"] - [dense(mu).sum() for mu in mus])
    assert np.all(off <= answers.quantity_bounds["mean"])


def test_proof_is_not_given():
    """A(μ) = exp(a) I + tridiagonal: nothing keeps constants from being computed, but they are those of a fitted sum."""
    line = 2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)
    small = ps.AffineModel(lambda mu: line + np.exp(mu[0]) * np.eye(6), np.ones(6), parameters={"a": (0.0, 1.0)})
    surrogate = ps.learn(small, 1e-4, recipe="polynomial", proof=True)
    mus = small.sample(10, rng=1)
    assert set(surrogate(mus).bound_kind) == {"probable"}
    reduced = ps.reduce(small, ps.pod(ps.solve_many(small, small.sample(6)), tolerance=1e-6))
    found = reduced.solve(mus)
    truth = np.array([np.linalg.solve(line + np.exp(a) * np.eye(6), np.ones(6)) for a in mus[:, 0]])
    assert not np.any(found.bounds.rigorous)
    assert np.all(np.linalg.norm(found.values - truth, axis=1) <= found.bounds.values)


def test_files_answer_without_the_functions(learned, model, tmp_path):
    again = ps.load(ps.save(learned, tmp_path / "bump.parasol"))
    mus = model.sample(5, rng=7)
    assert np.array_equal(again(mus).values, learned(mus).values)
    assert np.array_equal(again(mus).bound, learned(mus).bound)
    bare = ps.load(ps.save(surrogate_without_map(learned.reduced), tmp_path / "bare.parasol"))  # θ and all, NumPy alone
    assert np.all(errors(bare(mus), mus) <= bare(mus).bound)


def one(operator, **options):
    return ps.AffineModel(operator, np.ones(3), parameters={"a": (0.0, 1.0)}, **options)


def test_twice_the_error_at_fresh_parameters_is_allowed_for():
    """A = g(a) I: the one factor is off by what an entry is, over that of its matrix."""
    model = one(lambda mu: np.eye(3) / (0.4 + mu[0]))
    form = affine_form(model)
    mus = sample(model.parameters, 100, design="random", rng=2)
    gaps = [form.operator(mu).diagonal()[0] - 1 / (0.4 + mu[0]) for mu in mus]
    assert form.error == pytest.approx(2 * np.max(np.abs(gaps)) / abs(form.operators[1].diagonal()[0]), rel=1e-3)
    assert 1e-12 < form.error < 1e-5
    fixed = affine_form(ps.AffineModel(lambda mu: 2 * np.eye(4), np.ones(4), parameters={"a": (0.0, 1.0)}))
    assert not fixed.exact  # nobody knows that it is
    assert fixed.doubt == 1 / 101


@pytest.mark.parametrize("seeds", [(2,), (1, 2)])
def test_what_the_samples_of_the_fit_have_not_is_noticed_at_fresh_parameters(seeds):
    """Another matrix at some parameters only: neither its size nor that it is no multiple of the others is overlooked."""
    space = one(lambda mu: np.eye(3)).parameters
    some = {float(mu[0]) for seed in seeds for mu in sample(space, 100, design="random", rng=seed)}
    model = one(lambda mu: (1 + mu[0]) * np.eye(3) + (1e-3 if float(mu[0]) in some else 0.0) * np.diag([0.0, 1, -1]))
    with pytest.raises(ps.errors.NoCertificate, match="could be fitted over the box to"):
        affine_form(model)


def test_functions_get_a_copy_one_shape_and_the_corners():
    def careless(mu):
        out = (1 + mu[0]) * np.eye(3)
        mu[:] = 99.0
        return out

    mu = np.array([0.5])
    model = one(careless)
    assert model.solve(mu).values == pytest.approx(1 / 1.5)
    model.terms.operator_entries(mu)
    assert mu == [0.5]
    with pytest.raises(ps.ParasolError, match="for 3 unknowns"):
        one(lambda mu: np.eye(3 if mu[0] == 0.5 else 4)).solve([0.3])
    at_corner = one(lambda mu: np.eye(3) + (mu[0] == 1.0) * np.eye(3, k=1))
    assert at_corner.solve([1.0]).values == pytest.approx([1.0, 0.0, 1.0])


@pytest.mark.parametrize("kind", ["kink", "jump"])
def test_what_cannot_be_fitted_is_learned_from_full_solves(kind):
    """|a| has no polynomial to 1e-5: the sum is refused, and learning falls back on calibrated bounds."""
    factor = np.abs if kind == "kink" else np.sign
    line = 2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)
    odd = ps.AffineModel(lambda mu: line + (2 + factor(mu[0])) * np.eye(6), np.ones(6), parameters={"a": (-1.0, 1.0)})
    with pytest.raises(ps.errors.NoCertificate, match=r"operator\(mu\) could be fitted over the box to"):
        ps.greedy(odd, tolerance=1e-3)
    with pytest.warns(ps.errors.ParasolWarning):
        surrogate = ps.learn(odd, 1e-6, solves=50)
    assert set(surrogate(odd.sample(5)).bound_kind) == {"calibrated"}
    assert any("from samples instead of a reduced model" in note for note in surrogate.facts["learn"]["notes"])


def test_a_store_knows_the_functions_by_their_code(tmp_path):
    def made(width):
        return ps.AffineModel(
            lambda mu: (1 + width * np.exp(mu[0])) * np.eye(3), np.ones(3), parameters={"a": (0.0, 1.0)}
        )

    first, same, other = (
        ps.learn(made(w), 1e-4, recipe="polynomial", store=tmp_path).facts["learn"]["new_solves"]
        for w in (1.0, 1.0, 2.0)
    )
    assert first > 0
    assert same == 0
    assert other > 0


def _wandering(mu):
    """An entry that is there between the parameters that are looked at first only."""
    return sparse.csr_array(np.eye(4) + (0.4 < mu[0] < 0.41) * np.eye(4, k=1))


FIELD = ps.pde.ParameterSpace((), (FunctionParameter("g", ps.SphereField(8)),))


@pytest.mark.parametrize(
    ("operator", "loads", "options", "words"),
    [
        (bump, load, {"parameters": None}, "parameters of operator"),
        (bump, load, {"parameters": FIELD}, "g is a function"),
        (bump, load, {"mass": PRODUCT}, "for steady problems"),
        (bump, {1: load([0.5])}, {}, "Give load"),
        (bump, np.ones(3), {}, "expected"),
        (lambda mu: np.ones((2, 3)), np.ones(2), {}, "must be square"),
        (lambda mu: 1j * np.eye(2), np.ones(2), {}, "is complex"),
        (lambda mu: np.nan * np.eye(2), np.ones(2), {}, "NaN"),
        (lambda mu: mu[7], np.ones(2), {}, "raises IndexError"),
        ({1: np.eye(2)}, {1: np.ones(2)}, {}, "Leave parameters= out"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_built(operator, loads, options, words):
    with pytest.raises(ps.errors.InputError, match=words) as caught:
        ps.AffineModel(operator, loads, **({"parameters": BOX} | options))
    assert "\n" not in str(caught.value)


def test_an_entry_out_of_the_pattern_is_refused_where_it_is_met():
    model = ps.AffineModel(_wandering, np.ones(4), parameters={"a": (0.0, 1.0)})
    assert model.solve([0.3]).values == pytest.approx(1.0)
    with pytest.raises(ps.errors.SolveFailed, match=r"entry at \(0, 1\)"):
        model.solve([0.405])


def test_a_function_that_fails_says_where():
    def operator(mu):
        if 0.4 < mu[0] < 0.41:
            raise RuntimeError("no mesh")
        return np.eye(3)

    model = ps.AffineModel(operator, np.ones(3), parameters={"a": (0.0, 1.0)})
    with pytest.raises(ps.errors.SolveFailed, match=r"operator\(mu\) raises RuntimeError at a=0\.405: no mesh"):
        model.solve([0.405])
