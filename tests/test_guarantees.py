"""What docs/guarantees.md promises, by the lines of code that keep it: each test fails if one of them is changed."""

import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import sympy
from scipy import sparse

import parasol as ps
from parasol.cache import content
from parasol.cache.content import content_hash
from parasol.reduction.certificate import lanczos_margin, norm_after, operator_norm
from parasol.reduction.products import DiagonalRoot
from parasol.runtime import container
from parasol.runtime.certificate import Certificate
from parasol.runtime.conformal import ConformalBound
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.ranges import ParameterRange

ROOT = Path(__file__).parent.parent


def test_every_test_that_the_guarantees_name_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    for path, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), f"{path}::{name}"


# ---- certificate ----------------------------------------------------------------------------------------------------
class Smallest:
    """A weighting whose smallest singular value on the basis is known."""

    def __init__(self, value):
        self.value = value

    def smallest(self, theta):
        return np.full(len(theta), self.value)


def test_a_constant_is_proven_up_to_where_the_theorem_says_and_guessed_below_it_beyond():
    """σ = 0.8 (1 − |θ|) by the theorem; called proven down to a twentieth of 0.8; then half of 0.8 / (1 + |θ|) at most."""
    known = Certificate(np.zeros((1, 1)), np.ones((1, 1)), np.array([[0.8]]))
    theta = np.array([[0.0], [-0.5], [0.949], [0.951], [-3.0]])
    found = known.constants(theta)
    assert found.rigorous.tolist() == [True, True, True, False, False]
    assert np.allclose(found.sigma[:3], [0.8, 0.4, 0.8 * 0.051])
    assert np.allclose(found.sigma[3:], [0.4 / 1.951, 0.1])
    small = known.constants(theta, (Smallest(0.02),))  # type: ignore[arg-type]  the basis itself shows that the guess is too large
    assert np.allclose(small.sigma[3:], 0.01)
    assert np.allclose(small.sigma[:3], found.sigma[:3])  # what is proven stays
    assert np.allclose(known.constants(theta, (Smallest(9.0),)).sigma, found.sigma)  # type: ignore[arg-type]
    assert not np.any(replace(known, exact=False).constants(theta).rigorous)


def test_the_constant_of_the_best_anchor_counts_with_its_own_weighting():
    known = Certificate(np.array([[0.0], [1.0]]), np.ones((2, 1)), np.array([[0.5, 0.0], [0.1, 0.9]]))
    found = known.constants(np.array([[0.1], [0.9], [-4.0], [5.0]]))
    assert found.choice.tolist() == [0, 1, 0, 1]
    assert np.allclose(found.sigma, [0.45, 0.81, 0.5 * 0.5 / 5, 0.5 * 0.9 / 5])


@pytest.mark.parametrize("n", [10, 1000, 10**6])
def test_the_margin_is_that_of_the_theorem(n):
    """Put back into the theorem of Kuczyński and Woźniakowski, the margin of 26 steps fails with probability 1e-6."""
    loss = 1 - lanczos_margin(n) ** -2  # of the largest eigenvalue, the square of the norm
    assert 1.648 * np.sqrt(n) * np.exp(-np.sqrt(loss) * (2 * 26 - 1)) == pytest.approx(1e-6, rel=1e-6)


class Diagonal:
    """Factors of a diagonal matrix."""

    def __init__(self, values):
        self.values = values

    def solve(self, x):
        return x / self.values

    solve_transposed = solve


@pytest.mark.parametrize("shape", ["spread", "few"])
def test_a_norm_has_its_margin_and_leaves_out_what_carries_no_error(shape):
    """||D A⁻¹ B|| on the free unknowns, against dense singular values; beyond them B is a million times larger."""
    rng = np.random.default_rng(1)
    n = 300 if shape == "spread" else 15
    free, scale, values = np.r_[np.ones(n), np.zeros(5)], rng.uniform(0.5, 2, n + 5), rng.uniform(1, 2, n + 5)
    matrix = rng.standard_normal((n + 5, n + 5)) if shape == "few" else np.diag(rng.uniform(0, 1, n + 5))
    matrix[:, n:] = 1e6 * rng.standard_normal((n + 5, 5))
    true = np.linalg.norm((scale / values)[:, None] * matrix * free, 2)
    root, matrix = DiagonalRoot(scale), sparse.csr_array(matrix)
    found = norm_after(Diagonal(values), matrix, root, free, rows=True)  # type: ignore[arg-type]
    scaled = matrix @ sparse.diags_array(scale)
    assert norm_after(Diagonal(values), scaled.tocsr(), root, free) == pytest.approx(found, rel=1e-9)  # type: ignore[arg-type]
    assert true < found <= true * (1 + 2e-6) * (lanczos_margin(n) if shape == "spread" else 1)
    _value, exact = operator_norm(lambda x: np.linspace(0, 1, n) * x, lambda y: np.linspace(0, 1, n) * y, np.ones(n))
    assert exact == (shape == "few")
    decaying = 0.5 ** np.arange(n)  # found well in few steps, yet not exhausted
    if shape == "spread":
        _, exact = operator_norm(lambda x: decaying * x, lambda y: decaying * y, np.ones(n))
        assert not exact
    assert shape == "few" or found > 1.05 * true  # steps that end early are not taken for exact


# ---- online ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def model():
    (x,) = ps.coordinates("x")
    u, (a,) = ps.unknown("u", x), ps.parameters(a=(1.0, 2.0))
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2) + a * u, 1 + a * x), ps.Dirichlet(1 + x))
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=40))


@pytest.fixture(scope="module")
def basis(model):
    return ps.pod(ps.solve_many(model, [[1.0], [1.5], [2.0]]), n_modes=2)


@pytest.fixture(scope="module")
def reduced(model, basis):
    return ps.reduce(model, basis)


@pytest.mark.parametrize("weighting", ["solve", "rows"])
def test_anchors_claim_no_more_than_their_smallest_singular_value(model, basis, weighting):
    """Against dense ones; at its own parameter a weighting is the identity, of which rounding leaves a little less."""
    reduced = ps.reduce(model, basis, weighting=weighting)
    known, free = reduced.certificate, ~model.terms.pattern.stated
    for j, k in zip(*np.nonzero(known.sigmas), strict=True):
        mu = np.array([known.thetas[j, list(reduced.operator_theta.constant).index(False)]])
        a = model.operator(mu).toarray()
        if weighting == "solve":
            rows = np.linalg.inv(model.operator(reduced.residuals[k].mu).toarray())
        else:
            rows = np.diag(1 / np.linalg.norm(model.operator(reduced.residuals[k].mu).toarray(), axis=1))
        true = np.linalg.svd((rows @ a)[np.ix_(free, free)])[1][-1]
        assert 0.3 * true < known.sigmas[j, k] < true
    assert weighting == "rows" or 0.99 < np.max(known.sigmas) < 1


def test_nothing_is_proven_outside_the_box_and_rounding_is_allowed_for(reduced):
    answers = reduced.solve([[0.999], [1.0], [2.0], [2.001]], extrapolate=True)
    assert answers.bounds.rigorous.tolist() == [False, True, True, False]
    theta, phi = (of(np.array([[1.5]])) for of in (reduced.operator_theta, reduced.load_theta))
    constants = reduced.certificate.constants(theta, reduced.residuals)
    frame, c = reduced.residuals[constants.choice[0]], reduced.coefficients([[1.5]])
    residual, allowance = np.linalg.norm(frame.residuals(theta, phi, c)), frame.allowance(theta, phi, c)
    assert allowance > 0
    assert reduced.certify([[1.5]], c).values == pytest.approx((residual + allowance) / constants.sigma, rel=1e-12)
    assert np.any(reduced.certificate.norms[:, ~np.array(reduced.operator_theta.constant)] > 0)
    assert np.all(reduced.certificate.norms[:, np.array(reduced.operator_theta.constant)] == 0)


def test_a_bound_that_says_nothing_is_infinite_never_zero(reduced):
    c = reduced.coefficients([[1.3]])
    far, overflow = reduced.certify([[1.3]], 3 * c), reduced.certify([[1.3]], np.full(c.shape, 1e308))
    wrong = reduced.certify([[1.3]], -c)  # the bound is at least twice the norm of what is bounded
    assert np.isfinite(far.values)
    assert wrong.relative == np.inf
    assert overflow.values == overflow.relative == np.inf
    with np.errstate(all="ignore"):
        unknown = reduced.certify([[1.3]], np.array([[1.7e308, -1.7e308]]))  # the residual is not a number
        assert unknown.values == unknown.relative == np.inf


# ---- conformal bounds of answers ------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def line():
    """u = a (1, 2) on [1, 3], with a bound of a quarter at the level 0.9."""
    mus = np.linspace(1, 3, 30)[:, None]
    fitted = ps.fit_snapshots(mus, mus * [1.0, 2.0], "linear", ranges={"a": (1.0, 3.0)}, level=None)
    return replace(fitted, conformal=ConformalBound(0.9, 20, 0.25))


def test_the_absolute_bound_is_relative_to_the_solution_not_to_the_answer(line):
    """The solution may be 1 / (1 − 0.25) times as large as the answer, and the error a quarter of that."""
    assert line([2.0]).bounds.values[0] == pytest.approx(0.25 / 0.75 * np.linalg.norm([2.0, 4.0]))
    assert np.isinf(replace(line, conformal=ConformalBound(0.9, 20, 1.0))([2.0]).bounds.values[0])


def test_beyond_the_box_there_is_no_level(line):
    answer = line([[0.5], [2.0], [3.5]], extrapolate=True)
    assert answer.extrapolated.tolist() == [True, False, True]
    assert answer.bound.tolist() == [np.inf, 0.25, np.inf]
    assert np.isinf(answer.bounds.values).tolist() == [True, False, True]
    assert answer.bound_kind == ["calibrated"] * 3


class Unlike:
    """Knows a function that its distribution would hardly draw by the parameter 2.5."""

    def unlike(self, mus):
        return mus[:, 0] == 2.5


def test_a_number_outside_and_a_function_unlike_its_distribution_both_count(line):
    surrogate = replace(line)
    vars(surrogate)["distributions"] = Unlike()
    for mus in ([[0.5], [2.0], [2.5]], [[2.0], [2.5]]):
        answer = surrogate(mus, extrapolate=True)
        assert answer.extrapolated.tolist() == [mu != [2.0] for mu in mus]
        assert answer.bound.tolist() == [0.25 if mu == [2.0] else np.inf for mu in mus]


@pytest.mark.filterwarnings("ignore:tolerance=1e-09 needs")
def test_single_precision_loses_what_its_product_rounds():
    """(d + 4) ε Σ|c| for d modes, with the ε of float32."""
    mus = np.linspace(1, 3, 30)[:, None]
    fields = np.column_stack([mus, mus**2, np.exp(mus), np.sin(3 * mus)])
    fitted = ps.fit_snapshots(mus, fields, "linear", tolerance=1e-9, level=None)
    fitted = replace(fitted, conformal=ConformalBound(0.9, 20, 0.25))
    single = fitted([2.0], dtype=np.float32)
    d, c = fitted.basis.n_modes, single.coefficients[0].astype(float)
    plain = fitted.certify([[2.0]], single.coefficients.astype(float))
    lost = (d + 4) * np.finfo(np.float32).eps * np.sum(np.abs(c))
    assert single.bounds.values[0] - plain.values[0] == pytest.approx(lost, rel=1e-6)


def test_difficulties_and_another_basis_are_refused(line, reduced):
    with pytest.raises(ps.ParasolError, match="difficulties"):
        replace(line, conformal=ConformalBound(0.9, 20, 0.25, normalised=True))
    with pytest.raises(ps.ParasolError, match="another basis"):
        replace(line, reduced=reduced)


# ---- the box --------------------------------------------------------------------------------------------------------
SPACE = ParameterSpace((ParameterRange("a", 0.5, 4.0), ParameterRange("k", 0.01, 100.0, "log")))


@pytest.mark.parametrize(("index", "low", "high"), [(0, 0.5, 4.0), (1, 0.01, 100.0)])
def test_a_range_ends_where_it_ends_but_for_rounding(index, low, high):
    width = (3.5, 3.5) if index == 0 else (0.01, 100.0)  # a logarithmic range is rounded relative to each end
    for end, sign, size in ((low, -1, width[0]), (high, 1, width[1])):
        mu = np.array([1.0, 1.0])
        for slack, inside in ((0.5e-9, True), (2e-9, False)):
            mu[index] = end + sign * slack * size
            assert SPACE.inside(mu[None])[0] == inside
            if inside:
                SPACE.check(mu[None])
            else:
                with pytest.raises(ps.ParasolError, match=r"outside its range \[.*extrapolate=True"):
                    SPACE.check(mu[None])
                SPACE.check(mu[None], extrapolate=True)


def test_the_part_where_solves_failed_is_outside_and_its_middle_is_that_of_the_rest():
    part = replace(SPACE, solved=((1.0, 2.0), (0.01, 1.0)), why="no convergence")
    assert part.inside(np.array([[1.5, 0.5], [3.0, 0.5], [1.5, 50.0], [0.7, 0.5]])).tolist() == [
        True,
        False,
        False,
        False,
    ]
    assert np.allclose(part.vector({}), [1.5, 0.1])
    for mu in ([3.0, 0.5], [0.7, 0.5]):
        with pytest.raises(ps.ParasolError, match="no convergence"):
            part.check([mu])


def test_parameters_are_matched_by_name_and_none_is_made_up():
    table = np.array([(7.0, 2.0, 3.0)], dtype=[("k", float), ("a", float), ("other", float)])
    assert SPACE.ordered(table).tolist() == [[2.0, 7.0]]
    with pytest.raises(ps.ParasolError, match=r"k in .* is missing"):
        SPACE.ordered({"a": 1.0})

    class Twice:
        columns = ("a", "k", "a")

        def __getitem__(self, name):
            return [1.0]

    with pytest.raises(ps.ParasolError, match="two columns 'a'"):
        SPACE.ordered(Twice())
    with pytest.raises(ps.ParasolError, match="low > 0"):
        ParameterRange("k", 0.0, 1.0, "log")


def test_samples_never_leave_the_box():
    """exp and log do not undo each other to the last bit."""
    rng = np.random.default_rng(0)
    for low, high in ((0.1, 10.0), (1e-3, 0.7), (0.3, 1e7), (3e-5, 6e-5)):
        space = ParameterSpace((ParameterRange("k", low, high, "log"), ParameterRange("a", -high, low)))
        t = np.r_[0.0, 1.0, np.nextafter(1, 0), 1e-17, 1 - 2.0 ** -np.arange(40, 54), rng.random(200)]
        found = space.from_unit(np.column_stack([t, t]))
        assert np.all((found >= space.bounds[0]) & (found <= space.bounds[1]))
        assert np.array_equal(found[:2], space.bounds)


# ---- hashes ---------------------------------------------------------------------------------------------------------
def test_what_a_hash_is_made_of_cannot_be_cut_otherwise():
    assert content._join("k", 1, [b"2"]) != content._join("k", 12)
    assert content_hash([[1], 2]) != content_hash([1, [2]])
    assert len({content_hash(held) for held in ([1, 2], (1, 2), {1, 2}, {1: 2})}) == 4
    assert content_hash(np.zeros((2, 3))) != content_hash(np.zeros((3, 2)))
    assert content_hash(np.zeros(2)) != content_hash(np.zeros(2, dtype=np.float32))


def test_the_version_of_the_encoding_is_part_of_a_hash(monkeypatch):
    before = content_hash(1)
    monkeypatch.setattr(content, "VERSION", content.VERSION + 1)
    assert content_hash(1) != before


def test_digits_assumptions_and_the_order_of_arguments_are_content():
    assert content_hash(sympy.Float("0.5", 15)) != content_hash(sympy.Float("0.5", 40))
    assert content_hash(sympy.Symbol("z")) != content_hash(sympy.Symbol("z", positive=True))
    z, w = sympy.symbols("z w")
    assert content_hash(z**w) != content_hash(w**z)
    assert content_hash(sympy.Piecewise((1, z < w), (2, True))) != content_hash(sympy.Piecewise((2, z < w), (1, True)))


def test_the_order_of_declaration_is_content():
    """It decides which place in a parameter vector is whose; the number of a symbol in this process does not count."""
    a, b = ps.parameters(a=(0.0, 1.0), b=(0.0, 1.0))
    d, c = ps.parameters(b=(0.0, 1.0), a=(0.0, 1.0))
    e, f = ps.parameters(a=(0.0, 1.0), b=(0.0, 1.0))
    assert content_hash(a * b) != content_hash(c * d)
    assert content_hash(a * b) == content_hash(e * f)


def test_defaults_closures_and_objects_of_functions_are_content():
    def made(default, held):
        def f(x, *, power=default):
            return [held * value**power for value in (lambda: x)()]

        return f

    hashes = [content_hash(made(*given)) for given in ((1, 2), (3, 2), (1, 4), (1, 2))]
    assert len(set(hashes)) == 3
    assert hashes[0] == hashes[3]

    @dataclass(frozen=True)
    class Scaled:
        by: float

        def apply(self, x):
            return self.by * x

    assert content_hash(Scaled(1.0).apply) != content_hash(Scaled(2.0).apply)


_USED = 1


def _outer():
    return (lambda: _USED)()


def test_a_global_that_only_an_inner_function_uses_is_content(monkeypatch):
    before = content_hash(_outer)
    monkeypatch.setitem(globals(), "_USED", 2)
    assert content_hash(_outer) != before


def test_what_exists_only_while_it_is_hashed_is_not_mistaken_for_another():
    """An address is given to the next object as soon as the last one is gone."""
    encoder = content._Encoder()
    digests = {encoder.digest([i, [i]]) for i in range(200)}
    assert len(digests) == 200


# ---- files ----------------------------------------------------------------------------------------------------------
def packed(value, path):
    """What comes back of a value after a file."""
    container.pack(value, path, form="trial", facts={})
    return container.unpack(path, lambda found, facts: found, form="trial")


def test_arrays_that_share_memory_but_not_their_meaning_stay_apart(tmp_path):
    square = np.arange(9.0).reshape(3, 3)
    one, other, same = packed((square, square.T, square), tmp_path / "t")
    assert np.array_equal(one, square)
    assert np.array_equal(other, square.T)
    assert one is same


def test_numbers_come_back_as_they_were(tmp_path):
    values = (np.inf, -np.inf, 0.1, 3, True, None, "é", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    found = packed(values, tmp_path / "t")
    assert found[:-1] == values[:-1]
    assert np.array_equal(found[-1], values[-1])
    assert found[-1].flags.f_contiguous
    assert np.isnan(packed((np.nan,), tmp_path / "n")[0])


def test_a_class_of_the_same_name_is_not_ours(tmp_path):
    @dataclass(frozen=True)
    class ConformalBound:
        level: float = 0.9

    with pytest.raises(ps.ParasolError, match="cannot be saved"):
        container.pack(ConformalBound(), tmp_path / "t", form="trial", facts={})


def rewritten(path, change):
    """The file with its manifest or its entries changed."""
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    change(entries)
    with zipfile.ZipFile(path, "w") as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"version": 3', b'"version": 9', "newer"),
        (b'"version": 3', b'"version": 1', "no longer read"),
        (b'"version": 3', b'"version": true', "version is True"),
        (b'"array": 0', b'"array": -1', "refers to array -1"),
        (b'"array": 0', b'"array": 1', "refers to array 1 of 1"),
        (b'"kind": "ConformalBound"', b'"kind": "Popen"', "'Popen', which this version"),
        (b'"level": 0.9', b'"level": NaN', "number NaN"),
    ],
)
def test_a_manifest_that_was_changed_is_refused(tmp_path, old, new, said):
    path = tmp_path / "t"
    container.pack((np.arange(3.0), ConformalBound(0.9, 20, 0.25)), path, form="trial", facts={})

    def change(entries):
        assert old in entries["manifest.json"]
        entries["manifest.json"] = entries["manifest.json"].replace(old, new)

    with pytest.raises(ps.ParasolError, match=said):
        container.unpack(rewritten(path, change), lambda found, facts: found, form="trial")


def test_entries_nobody_asked_for_and_changed_numbers_are_refused(tmp_path):
    path = tmp_path / "t"

    def extra(entries):
        entries["more.npy"] = b"?"

    def flipped(entries):
        entries["arrays/0000.npy"] = entries["arrays/0000.npy"][:-1] + b"\x01"

    for change, said in ((extra, "not those of its manifest"), (flipped, "changed since")):
        container.pack((np.arange(3.0),), path, form="trial", facts={})
        with pytest.raises(ps.ParasolError, match=said):
            container.unpack(rewritten(path, change), lambda found, facts: found, form="trial")


def test_an_entry_that_is_no_array_of_finite_numbers_of_its_size_is_refused():
    good = container._npy(np.arange(3.0))
    assert container._array(good, "it").tolist() == [0, 1, 2]
    longer = good.replace(b"(3,)", b"(4,)")
    for bad in (
        container._npy(np.array([1.0, np.nan])),
        container._npy(np.array([np.inf])),
        longer,
        good[:-8],
        good + b"12345678",
    ):
        with pytest.raises(ps.ParasolError, match=r"it (has|declares)"):
            container._array(bad, "it")


@pytest.mark.parametrize(
    ("indices", "indptr", "said"),
    [
        ([0, 3], [0, 1, 2], "outside of its columns"),
        ([0, -1], [0, 1, 2], "outside"),
        ([0, 1], [0, 3, 2], "out of order"),
    ],
)
def test_a_sparse_matrix_that_points_outside_of_itself_is_refused(indices, indptr, said):
    parts = np.ones(2), np.array(indices), np.array(indptr)
    with pytest.raises(ps.ParasolError, match=said):
        container._sparse(*parts, shape=(2, 3))
    assert container._sparse(np.ones(2), np.array([0, 2]), np.array([0, 1, 2]), shape=(2, 3)).shape == (2, 3)
