"""Other people's matrices: small finite-element problems, against dense linear algebra that uses none of our code."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import sympy
from scipy import sparse

import parasol as ps
from parasol.learning.labels import relative
from parasol.reduction.energy import energy_preparation
from parasol.reduction.products import MatrixRoot
from parasol.runtime.min_theta import MinTheta
from parasol.runtime.products import MatrixProduct

N = 12  # cells along each side
(A_,) = ps.parameters(a=(0.5, 2.0))


def grid(n=N):
    """Points and triangles of the unit square."""
    x, y = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1), indexing="ij")
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    lower = np.stack([corner, corner + n + 1, corner + n + 2], axis=1)
    upper = np.stack([corner, corner + n + 2, corner + 1], axis=1)
    return np.column_stack([x.ravel(), y.ravel()]), np.concatenate([lower, upper])


def assembled(points, cells, where=None):
    """Stiffness matrix of the triangles whose centre satisfies `where`, mass matrix, and the load of 1, linear elements."""
    corners = points[cells]
    edges = corners[:, [2, 0, 1]] - corners[:, [1, 2, 0]]
    area = 0.5 * np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1]))
    counted = area * (1.0 if where is None else where(*corners.mean(axis=1).T))
    stiff = np.einsum("cid,cjd->cij", edges, edges) / (4 * area**2)[:, None, None] * counted[:, None, None]
    mass = area[:, None, None] * (np.ones((3, 3)) + np.eye(3)) / 12
    rows, columns = np.repeat(cells, 3, axis=1).ravel(), np.tile(cells, (1, 3)).ravel()
    n = len(points)
    made = [sparse.csr_array((a.ravel(), (rows, columns)), shape=(n, n)) for a in (stiff, mass)]
    return *made, np.bincount(cells.ravel(), np.repeat(area / 3, 3), n)


def halves():
    """The unit square in two halves: stiffness matrices, load, free points."""
    points, cells = grid()
    left, right = (assembled(points, cells, w)[0] for w in (lambda x, y: x < 0.5, lambda x, y: x > 0.5))
    _, mass, load = assembled(points, cells)
    free = np.flatnonzero(np.all((points > 1e-9) & (points < 1 - 1e-9), axis=1))
    return points, cells, left, right, mass, load, free


def inside(a, free):
    return a[free][:, free]


@pytest.fixture(scope="module")
def block():
    """Two conductivities, constraints eliminated, errors in the energy of a = b = 1."""
    points, cells, left, right, _, load, free = halves()
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.1, 10.0, "log"))
    operators = {a: inside(left, free), b: inside(right, free)}
    options = {"points": points, "cells": cells, "free": free, "quantities": {"mean": load[free]}}
    return ps.AffineModel(operators, {1: load[free]}, product=inside(left + right, free), **options)


def dense(mu):
    """The same solved by hand."""
    points, _, left, right, _, load, free = halves()
    out = np.zeros(len(points))
    out[free] = np.linalg.solve(inside(mu[0] * left + mu[1] * right, free).toarray(), load[free])
    return out


def energy(gap):
    _, _, left, right, *_ = halves()
    return np.sqrt(np.einsum("...i,...i->...", gap, ((left + right) @ gap.T).T))


@pytest.fixture(scope="module")
def learned(block):
    return ps.learn(block, 1e-4, recipe="polynomial")


def test_a_solve_is_that_of_the_matrices(block):
    for mu in ([1.0, 1.0], [0.1, 7.0]):
        solution = block.solve(mu)
        assert solution.values == pytest.approx(dense(mu), abs=1e-12)
        assert solution.quantities["mean"] == pytest.approx(halves()[5] @ dense(mu))
    assert len(block.terms.operator_thetas) == 2  # eliminated rows need no term of their own


def test_learn_proves_its_bound_in_the_given_norm(block, learned):
    report = learned.facts["learn"]
    assert report["met"]
    assert report["certificate"] == "proven"
    mus = block.sample(30, rng=5)
    answer = learned(mus)
    errors = np.array([energy(v - dense(mu)) / energy(dense(mu)) for mu, v in zip(mus, answer.values, strict=True)])
    seen = errors > 1e-12
    assert set(answer.bound_kind) == {"proven"}
    assert np.all(errors <= answer.bound)
    assert np.max(answer.bound) <= 1e-4
    assert np.median((answer.bound / errors)[seen]) < 4
    assert np.all(np.abs(np.log(answer.estimate / errors))[seen] < np.log(3))


def test_the_least_theta_is_below_the_smallest_eigenvalue(block):
    """σ of the certificate against the generalised eigenvalues that it bounds."""
    _, _, left, right, _, _, free = halves()
    reduced = ps.greedy(block, tolerance=1e-2).reduced
    certificate = reduced.certificate
    assert isinstance(certificate, MinTheta)
    product = inside(left + right, free).toarray()
    for mu in block.sample(10, rng=1):
        constants = certificate.constants(np.array([mu]))
        reference = certificate.thetas[constants.choice[0]]
        a, at = (inside(t[0] * left + t[1] * right, free).toarray() for t in (mu, reference))
        # ||e||_X ≤ C_k ||r||_{A_k⁻¹} / σ for all e, with ||e||_X ≤ C_k ||e||_{A_k}: σ² ≤ C_k² min eᵀ A A_k⁻¹ A e / eᵀ X e
        least = scipy.linalg.eigvalsh(a @ np.linalg.solve(at, a), product)[0] * scipy.linalg.eigvalsh(product, at)[-1]
        assert constants.rigorous[0]
        assert 0 < constants.sigma[0] <= np.sqrt(least) * (1 + 1e-9)


def test_reduce_and_pod_use_the_product(block):
    snapshots = ps.solve_many(block, block.sample(12, rng=0))
    basis = ps.pod(snapshots, tolerance=1e-6, weights=block.product)
    gram = basis.modes.T @ (block.product.matrix @ basis.modes)
    assert gram == pytest.approx(np.eye(basis.n_modes), abs=1e-10)
    # no other space of that dimension leaves less energy: against dense singular values
    root = scipy.linalg.sqrtm(block.product.matrix.toarray()).real
    s = np.linalg.svd(root @ snapshots.solutions.T, compute_uv=False)
    assert basis.singular_values[: basis.n_modes] == pytest.approx(s[: basis.n_modes], rel=1e-6)
    reduced = ps.reduce(block, basis)
    found = reduced.solve(snapshots.mus)
    gaps = basis.norm(found.values - snapshots.solutions)
    assert np.all(found.bounds.rigorous)
    assert np.all(gaps <= found.bounds.values)


def test_files_answers_and_pages_are_the_same_afterwards(learned, block, tmp_path):
    again = ps.load(ps.save(learned, tmp_path / "block.parasol"))
    mus = block.sample(4, rng=2)
    one, other = learned(mus), again(mus)
    assert np.array_equal(one.values, other.values)
    assert one.bound == pytest.approx(other.bound, rel=1e-12)
    assert other.bound_kind == one.bound_kind
    inner = np.array([[0.31, 0.4], [0.5, 0.77]])
    assert other.at(inner) == pytest.approx(one.at(inner), rel=1e-12)
    with pytest.raises(ps.errors.InputError, match="outside the cells"):
        other.at([[1.2, 0.5]])
    page = ps.explore(learned, tmp_path / "page.html")
    assert page.path.stat().st_size > 50_000
    rough, bounds = learned(mus, dtype=np.float32), learned(mus).bound
    # in this norm rounding of values counts more than in the plain one, and the bound says so
    gaps = np.array(
        [energy(v.astype(float) - dense(m)) / energy(dense(m)) for m, v in zip(mus, rough.values, strict=True)]
    )
    assert np.all(gaps <= rough.bound)
    assert np.all(rough.bound > bounds)
    modes, product = np.abs(learned.basis.modes), abs(block.product.matrix)
    assert learned.basis.rounding == pytest.approx(np.sqrt(np.max(np.sum(modes * (product @ modes), axis=0))))


def test_values_between_points_are_linear_in_the_cells(learned):
    """A linear function on linear elements comes back exactly, and points have their own values."""
    answer = learned([1.0, 2.0])
    points, cells = grid()
    centre = points[cells[17]].mean(axis=0)
    assert answer.at(points[40:43]) == pytest.approx(answer.values[40:43], abs=1e-14)
    assert answer.at([centre])[0] == pytest.approx(answer.values[cells[17]].mean(), abs=1e-14)


def test_constraints_may_stay_in_the_matrices(block):
    """Rows of the identity in one block, as scikit-fem's enforce leaves them: the same solutions, still an estimate."""
    points, cells, left, right, _, load, free = halves()
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.1, 10.0, "log"))
    kept = np.zeros(len(points))
    kept[free] = 1.0
    rows = sparse.diags_array(kept)
    fixed = sparse.diags_array(1.0 - kept)
    operators = {a: rows @ left, b: rows @ right, 1: fixed}
    edge = (1.0 - kept) * points[:, 0]  # boundary values x
    model = ps.AffineModel(operators, {1: kept * load + edge}, points=points, cells=cells)
    mu = np.array([0.3, 2.0])
    whole = (rows @ (mu[0] * left + mu[1] * right) + fixed).toarray()
    assert model.solve(mu).values == pytest.approx(np.linalg.solve(whole, kept * load + edge), abs=1e-12)
    surrogate = ps.learn(model, 1e-4, recipe="polynomial")
    mus = model.sample(10, rng=3)
    truth = np.array([model.solve(m).values for m in mus])
    errors = np.linalg.norm(surrogate(mus).values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    assert surrogate.facts["learn"]["met"]
    assert np.all(errors <= surrogate(mus).bound)


def test_fields_at_places_of_their_own():
    """Two functions interleaved, one of them with values that were eliminated: named fields at the points."""
    n = 9
    k = sparse.diags_array([-np.ones(n), 2 * np.ones(n), -np.ones(n)], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    interleaved = sparse.csr_array(sparse.kron(k, np.diag([1.0, 0.0])) + sparse.kron(k, np.diag([0.0, 1.0])))
    coupling = sparse.csr_array(sparse.kron(sparse.eye_array(n), np.array([[0.0, 1.0], [0.0, 0.0]])))
    (a,) = ps.parameters(a=(0.5, 2.0))
    load = np.tile([1.0, 2.0], n)
    points = np.linspace(0, 1, n + 2)
    places = np.r_[-1, 2 * np.arange(n), -1]
    fields = {"u": places, "v": np.where(places >= 0, places + 1, -1)}
    cells = np.column_stack([np.arange(n + 1), np.arange(1, n + 2)])
    options = {"points": points, "cells": cells, "fields": fields, "product": interleaved}
    model = ps.AffineModel({1: interleaved, a: coupling}, {1: load}, **options)
    exact = np.linalg.solve((interleaved + 1.5 * coupling).toarray(), load)
    found = model.solve([1.5]).fields
    assert found["v"] == pytest.approx(np.r_[0, exact[1::2], 0])
    surrogate = ps.learn(model, 1e-6)
    answer = surrogate([1.5])
    assert answer["u"] == pytest.approx(np.r_[0, exact[::2], 0], rel=1e-5)
    assert answer["v"] == pytest.approx(np.r_[0, exact[1::2], 0], rel=1e-5)
    assert answer.bound <= 1e-6


def test_fields_at_places_among_values_that_were_eliminated():
    """Two functions, point after point, of which the values on the boundary are gone: against the whole vector by hand."""
    points, cells, left, right, _, load, free = halves()
    n, (a,) = len(points), ps.parameters(a=(0.5, 2.0))
    kept = np.sort(np.concatenate([2 * free, 2 * free + 1]))
    both = [sparse.kron(m, np.diag([1.0, 3.0])).tocsr()[kept][:, kept] for m in (left, right)]
    places = {"p": 2 * np.arange(n), "q": 2 * np.arange(n) + 1}
    options = {"points": points, "cells": cells, "free": kept, "fields": places}
    model = ps.AffineModel({1: both[0], a: both[1]}, {1: np.repeat(load, 2)[kept]}, **options)
    fields = model.solve([0.7]).fields
    assert fields["p"] == pytest.approx(dense([1.0, 0.7]), abs=1e-12)
    assert fields["q"] == pytest.approx(dense([1.0, 0.7]) / 3, abs=1e-12)


@pytest.mark.parametrize(
    ("operators", "loads", "options", "words"),
    [
        ({1: np.eye(2), -A_: np.eye(2)}, {1: np.ones(2)}, {}, "(A1 - a A2) u = f1"),
        ([(A_, np.eye(2))], {-2 * A_: np.ones(2), 1: np.ones(2)}, {}, "a A1 u = -2 a f1 + f2"),
        ({A_**2 + 1: np.eye(2)}, {1: np.ones(2)}, {"mass": np.eye(2), "times": [0, 1]}, "M1 u' + (a^2 + 1) A1 u = f1"),
    ],
)
def test_equations_are_written_as_people_write_them(operators, loads, options, words):
    assert ps.AffineModel(operators, loads, **options).problem.equation == words


def test_without_points_there_is_a_vector_and_nothing_to_draw(tmp_path):
    a, b = ps.parameters(a=(1.0, 2.0), b=(0.0, 1.0))
    rng = np.random.default_rng(0)
    base = np.diag(np.arange(1.0, 31)) + 0.1 * rng.standard_normal((30, 30))
    model = ps.AffineModel([(1, base), (a * b, np.eye(30)), (1, 0.1 * np.eye(30))], {sympy.exp(a): np.ones(30)})
    surrogate = ps.learn(model, 1e-5)
    mu = np.array([1.3, 0.6])
    exact = np.linalg.solve(base + (1.3 * 0.6 + 0.1) * np.eye(30), np.exp(1.3) * np.ones(30))
    assert np.linalg.norm(surrogate(mu).values - exact) <= surrogate(mu).bound * np.linalg.norm(exact)
    assert "A1 + a b A2 + A3" in surrogate.facts["equation"]
    ps.explore(surrogate, tmp_path / "bare.html")  # values in a row


# ---- in time --------------------------------------------------------------------------------------------------------
def heat(**options):
    points, cells, left, right, mass, load, free = halves()
    k, w = ps.parameters(k=(0.05, 1.0, "log"), w=(1.0, 4.0))
    start = np.prod(np.sin(np.pi * points), axis=1)[free]
    given = {"mass": inside(mass, free), "initial": {w: start}, "times": np.linspace(0, 0.5, 6)} | options
    return ps.AffineModel(
        {k: inside(left + right, free)},
        {sympy.cos(w * ps.time()): load[free]},
        points=points,
        cells=cells,
        free=free,
        product=inside(mass, free),
        **given,
    )


def test_heat_is_integrated_as_by_the_matrix_exponential():
    model, mu = heat(), np.array([0.2, 3.0])
    points, _, left, right, mass, load, free = halves()
    rates, modes = scipy.linalg.eigh(0.2 * inside(left + right, free).toarray(), inside(mass, free).toarray())
    start, force = (
        modes.T @ (inside(mass, free) @ (3.0 * np.prod(np.sin(np.pi * points), axis=1)[free])),
        modes.T @ load[free],
    )
    t, w = 0.5, 3.0
    # c' + λ c = g cos(w t), solved exactly mode by mode
    steady = force / (rates**2 + w**2)
    c = steady * (rates * np.cos(w * t) + w * np.sin(w * t)) + (start - steady * rates) * np.exp(-rates * t)
    found = model.solve(mu, tolerance=1e-7)
    assert found.values[-1][free] == pytest.approx(modes @ c, abs=2e-6)
    assert found.values[0][free] == pytest.approx(3.0 * np.prod(np.sin(np.pi * points), axis=1)[free])


def test_heat_is_learned_in_its_product():
    model = heat()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.ParasolWarning)
        surrogate = ps.learn(model, 1e-2)
    assert surrogate.facts["learn"]["met"]
    assert surrogate.facts["learn"]["labels"] == "reduced model"
    assert isinstance(surrogate.basis.weights, MatrixProduct)
    assert surrogate.basis.weights.copies == 6
    mus = model.sample(5, rng=8)
    truth = np.array([model.solve(m).flat for m in mus])
    mass = model.product.matrix

    def norm(flat):
        return np.sqrt(
            sum(np.einsum("ni,ni->n", u, (mass @ u.T).T) for u in flat.reshape(len(mus), 6, -1).transpose(1, 0, 2))
        )

    assert np.all(norm(surrogate(mus).values - truth) <= 1e-2 * norm(truth))


def test_waves_have_a_state_and_a_velocity():
    """u'' + k u = 0 with one unknown: a cos, and a sine for the velocity."""
    (k,) = ps.parameters(k=(1.0, 4.0))
    one = np.eye(1)
    times = np.linspace(0, 2, 5)
    options = {"mass": one, "order": 2, "times": times}
    model = ps.AffineModel({k: one}, {1: np.zeros(1)}, initial=(np.ones(1), np.full(1, 0.5)), **options)
    found = model.solve([4.0], tolerance=1e-8)
    assert found.values[:, 0] == pytest.approx(np.cos(2 * times) + 0.25 * np.sin(2 * times), abs=1e-5)
    damped = ps.AffineModel({k: one}, {1: np.zeros(1)}, initial=np.ones(1), mass=one, damping={k: one}, times=times)
    rate = np.roots([1.0, 2.0, 2.0])  # of u'' + 2 u' + 2 u
    exact = ((rate[1] * np.exp(rate[0] * times) - rate[0] * np.exp(rate[1] * times)) / (rate[1] - rate[0])).real
    assert damped.solve([2.0], tolerance=1e-8).values[:, 0] == pytest.approx(exact, abs=1e-5)


# ---- inner products -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("copies", [1, 3])
def test_a_root_is_one(copies):
    _, _, left, right, mass, *_ = halves()
    x = (left + 2 * right + mass).tocsr()
    product = MatrixProduct(x.indptr, x.indices, x.data, copies)
    root, n = MatrixRoot(product), copies * x.shape[0]
    whole = scipy.linalg.block_diag(*[x.toarray()] * copies)
    u, w = np.random.default_rng(0).standard_normal((2, n, 2))
    assert root.into_transposed(root.into(u)) == pytest.approx(whole @ u, rel=1e-9, abs=1e-9)
    assert root.back(root.into(u)) == pytest.approx(u, abs=1e-9)
    assert np.sum(w * root.into(u)) == pytest.approx(np.sum(root.into_transposed(w) * u))
    assert np.sum(w * root.back(u)) == pytest.approx(np.sum(root.back_transposed(w) * u))
    assert root.solve(u) == pytest.approx(np.linalg.solve(whole, u), abs=1e-8)
    assert root.applied(u) == pytest.approx(whole @ u)
    assert product.applied(u.T) == pytest.approx((whole @ u).T)
    assert product.energies(u.T) == pytest.approx(np.einsum("ij,ij->j", u, whole @ u))


def test_relative_errors_are_in_the_product():
    x = sparse.csr_array([[2.0, 1.0], [1.0, 2.0]])
    product = MatrixProduct.of(x)
    found = relative(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]]), product)
    assert found == pytest.approx(np.sqrt(2 / 6))  # ||(0, 1)||² = 2, ||(1, 1)||² = 6


# ---- bad input ------------------------------------------------------------------------------------------------------
A, B = ps.parameters(A=(1.0, 2.0), B=(-1.0, 1.0))
EYE, ONE = np.eye(4), {1: np.ones(4)}
STEPS = np.diff(np.eye(4), axis=0)
SPRINGS = STEPS.T @ np.diag(np.random.default_rng(0).uniform(0.1, 1, 3)) @ STEPS  # in a row, none fixed
SQUARE = {"points": np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]]), "cells": [[0, 1, 2], [1, 3, 2]]}


@pytest.mark.parametrize(
    ("operators", "loads", "options", "words"),
    [
        (EYE, ONE, {}, "must map each theta"),
        ({}, ONE, {}, "must map each theta"),
        ({1: EYE}, ONE, {}, "nothing to vary"),
        ({"A": EYE}, ONE, {}, "is a text"),
        ({sympy.Symbol("z"): EYE}, ONE, {}, "z, which is no parameter"),
        ({A * ps.time(): EYE}, ONE, {}, "which is no parameter"),
        ({A: EYE, 1: np.eye(5)}, ONE, {}, r"is \(5, 5\)"),
        ({A: np.ones((4, 3))}, ONE, {}, "must be square"),
        ({A: 1j * EYE}, ONE, {}, "is complex"),
        ({A: np.nan * EYE}, ONE, {}, "NaN"),
        ({A: EYE}, {1: np.ones(3)}, {}, "expected"),
        ({A: EYE}, {1: ["x"] * 4}, {}, "real numbers"),
        ({A: EYE, ps.parameters(A=(0.0, 1.0))[0]: EYE}, ONE, {}, "two different parameters are called A"),
        ({A: EYE}, ONE, {"product": np.diag([1.0, 1, 1, 0])}, "each with an entry"),
        ({A: EYE}, ONE, {"product": -EYE}, "not positive"),
        ({A: EYE}, ONE, {"product": EYE + np.eye(4, k=1)}, "not symmetric"),
        ({A: EYE}, ONE, {"product": np.eye(3)}, "for 4 unknowns"),
        ({A: EYE}, ONE, {"quantities": {"q": np.ones(3)}}, "quantity 'q'"),
        ({A: EYE}, ONE, {"points": np.zeros((2, 4))}, "transposed"),
        ({A: EYE}, ONE, {"points": np.zeros((3, 2))}, "4 unknowns are not 1 value at each of 3 points"),
        ({A: EYE}, ONE, SQUARE | {"cells": [[1, 2, 3], [2, 4, 3]]}, "1 to 4, there are 0 to 3"),
        ({A: EYE}, ONE, SQUARE | {"cells": [[0, 1], [1, 3], [2, 0]]}, "transposed"),
        ({A: EYE}, ONE, SQUARE | {"cells": [[0, 1, 1]]}, "no volume"),
        ({A: EYE}, ONE, {"cells": [[0, 1, 2]]}, "Give points="),
        ({A: np.eye(2)}, {1: np.ones(2)}, SQUARE | {"free": [1, 1]}, "twice"),
        ({A: np.eye(2)}, {1: np.ones(2)}, SQUARE | {"free": [1, 4]}, "from 0 to 3"),
        ({A: EYE}, ONE, SQUARE | {"fields": {"u": [0, 1, 2]}}, "places of 'u'"),
        ({A: EYE}, ONE, {"fields": ()}, "must name functions"),
        ({A: EYE}, ONE, {"fields": 3}, "must name functions"),
        ({A: np.eye(8)}, {1: np.ones(8)}, SQUARE | {"fields": ("u", "u")}, "of its own"),
        ({A: EYE}, ONE, {"quantities": [np.ones(4)]}, "must map names"),
        ({A: EYE}, ONE, {"product": SPRINGS}, "not positive definite"),
        ({A: EYE}, ONE, {"initial": np.ones(4)}, "Give mass="),
        ({A: EYE}, ONE, {"times": [0, 1]}, "Give mass="),
        ({A: EYE}, ONE, {"mass": EYE}, "times to store are missing"),
        ({A: EYE}, ONE, {"mass": np.eye(3), "times": [0, 1]}, "for 4 unknowns"),
        ({A: EYE}, ONE, {"mass": EYE, "times": [1, 0]}, "must increase"),
        ({A: EYE}, ONE, {"mass": EYE, "damping": EYE, "order": 1, "times": [0, 1]}, "with damping"),
        ({A: EYE}, ONE, {"damping": EYE}, "Give mass="),
        ({A: EYE}, ONE, {"solver": "cholmod"}, "solver"),
        ({A: EYE, sympy.I * A: EYE}, ONE, {}, r"theta I\*A is complex"),
        ({A: EYE, sympy.sqrt(B): EYE}, ONE, {}, r"theta sqrt\(B\) is nan at B=-"),
        ({A: EYE, 1 / (B - 0.3): EYE}, ONE, {}, r"divides by zero where B - 0.3 = 0"),
        ({A: EYE}, {sympy.log(B): np.ones(4)}, {}, r"loads: the theta log\(B\) is nan"),
        ({A: EYE}, ONE, {"mass": EYE, "times": [0, 1], "initial": {1 / B: np.ones(4)}}, "initial: the theta 1/B"),
        ({A: EYE}, {1 / (ps.time() - 1): np.ones(4)}, {"mass": EYE, "times": [0, 1]}, "is -?inf at t=1"),
        ({A: EYE}, ONE, {"mass": 0 * EYE, "times": [0, 1]}, "mass matrix is zero"),
        ({A: EYE}, ONE, {"mass": EYE, "times": [0, 1], "integrator": "euler"}, "integrator='euler' is unknown"),
        ({A: EYE}, ONE, {"integrator": "sbdf2"}, "integrator='sbdf2' is for problems in time"),
        ({A: EYE, sympy.Symbol("A"): EYE}, ONE, {}, r"\(A,\) = ps.parameters\(A="),
        ({A: np.eye(2)}, {1: np.ones(2)}, SQUARE | {"free": [1, 1], "fields": {"u": [0, 1, 2, 3]}}, "different whole"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(operators, loads, options, words):
    with pytest.raises(ps.errors.InputError, match=words) as caught:
        ps.AffineModel(operators, loads, **options)
    assert "\n" not in str(caught.value)


def test_a_singular_combination_says_at_which_parameter():
    model = ps.AffineModel({1: np.diag([1.0, 1.0]), B: np.diag([2.0, 0.0])}, {1: np.ones(2)})
    with pytest.raises(ps.errors.SolveFailed, match=r"B=-0\.5"):
        model.solve([-0.5])
    with pytest.raises(ps.errors.InputError, match="total=True needs the equation"):
        ps.learn(model, 1e-3, total=True)


def test_factors_that_change_their_sign_prove_nothing():
    """A block that is positive only for positive B: where B is negative the least theta says nothing, and says so."""
    free = np.diag(np.arange(2.0, 10.0))
    model = ps.AffineModel({1: free, B: np.diag(np.linspace(0, 1, 8))}, {1: np.ones(8)}, product=free)
    surrogate = ps.learn(model, 1e-6)
    mus = np.linspace(-1, 1, 9)[:, None]
    answer = surrogate(mus)
    truth = np.array([np.linalg.solve(free + m * np.diag(np.linspace(0, 1, 8)), np.ones(8)) for m in mus[:, 0]])
    assert np.all(surrogate.basis.norm(answer.values - truth) <= answer.bound * surrogate.basis.norm(truth))
    assert "probable" in answer.bound_kind[:4]
    assert answer.bound_kind[-1] in ("proven", "probable")


def test_the_order_of_free_unknowns_does_not_matter(block):
    points, cells, left, right, _, load, free = halves()
    mixed = np.random.default_rng(0).permutation(free)
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.1, 10.0, "log"))
    operators = {a: inside(left, mixed), b: inside(right, mixed)}
    model = ps.AffineModel(operators, {1: load[mixed]}, points=points, cells=cells, free=mixed)
    assert model.solve([0.3, 4.0]).values == pytest.approx(dense([0.3, 4.0]), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-12, 1e9])
def test_units_do_not_matter(unit):
    points, cells, left, right, _, load, free = halves()
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.1, 10.0, "log"))
    bounds = []
    for u in (1.0, unit):  # of the equation, and of the product
        operators = {a: u * inside(left, free), b: u * inside(right, free)}
        options = {"points": points, "cells": cells, "free": free, "product": u * inside(left + right, free)}
        surrogate = ps.learn(ps.AffineModel(operators, {1: load[free]}, **options), 1e-3, recipe="polynomial")
        answer = surrogate([[0.2, 0.9], [5.0, 0.3]])
        assert answer.bound_kind == ["proven", "proven"]
        bounds.append([answer.bound, answer.estimate])
    assert bounds[1] == pytest.approx(np.array(bounds[0]), rel=1e-4)


@pytest.mark.parametrize(("unit", "load"), [(1e-14, 1.0), (1e20, 1.0), (1.0, 1e-12)])
def test_proven_bounds_have_the_unit_of_the_solution_without_a_product_too(unit, load):
    """Rounding of full solves was added to norms of residuals in the energy norm, which has another unit."""
    n, h = 60, 1 / 61
    stiff = sparse.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr() / h
    mass, force = h * sparse.eye_array(n).tocsr(), np.full(n, h)
    c, d = ps.parameters(c=(0.1, 10.0, "log"), d=(0.0, 5.0))
    mus, found = np.array([[0.3, 2.0], [5.0, 1.0]]), []
    for u, f in ((1.0, 1.0), (unit, load)):
        model = ps.AffineModel({c: u * stiff, d: u * mass}, {1: u * f * force})
        reduced = ps.greedy(model, tolerance=1e-9).reduced  # near rounding
        answer = reduced.solve(mus)
        assert np.all(answer.bounds.rigorous)
        size = np.linalg.norm(answer.coefficients, axis=1)
        theta, phi = reduced.operator_theta(mus), reduced.load_theta(mus)
        allowed = reduced.residuals[0].allowance(theta, phi, answer.coefficients) / size
        found.append([answer.bounds.relative, allowed])
    ratio = np.array(found[1]) / np.array(found[0])
    assert np.all((ratio > 0.2) & (ratio < 5))  # what rounding does differs a little in other units


@pytest.mark.slow
def test_processes_stores_and_plans_take_matrices(block, tmp_path):
    mus = block.sample(4, rng=0)
    one, two = ps.solve_many(block, mus), ps.solve_many(block, mus, jobs=2, store=tmp_path / "store")
    assert np.array_equal(one.solutions, two.solutions)
    first = ps.learn(block, 1e-2, recipe="polynomial", store=tmp_path / "learn")
    again = ps.learn(block, 1e-2, recipe="polynomial", store=tmp_path / "learn")
    assert again.facts["learn"]["new_solves"] == 0 < first.facts["learn"]["new_solves"]
    assert ps.plan(block, 1e-3).n_solves[1] > 0


def test_an_indefinite_block_proves_nothing():
    """All sums may be positive definite though one of the blocks is not: the least theta would be wrong."""
    points, cells, left, right, mass, load, free = halves()
    (a,) = ps.parameters(a=(0.1, 1.0))
    operators = {1: inside(left + 2 * right, free), a: inside(right - 2 * mass, free)}
    least = [np.linalg.eigvalsh((c * operators[1] + operators[a]).toarray())[0] for c in (0, 1, 10)]
    assert least[0] < 0 < min(least[1:])
    options = {"points": points, "cells": cells, "free": free, "product": inside(left + right, free)}
    surrogate = ps.learn(ps.AffineModel(operators, {1: load[free]}, **options), 1e-3, recipe="polynomial")
    assert set(surrogate([[0.2], [0.9]]).bound_kind) == {"probable"}


def test_parts_in_small_units_are_looked_at_in_these():
    """Where the product is another than the sum of the matrices in one part only, in units 1e14 times smaller, bounds hold too."""
    n, stiff = 6, 2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)
    zero, a, b = np.zeros((n, n)), *ps.parameters(a=(0.1, 10.0), b=(0.1, 10.0))
    one = np.block([[1e14 * stiff, zero], [zero, 0.02 * stiff]])
    two = np.block([[1e14 * np.eye(n), zero], [zero, 0.01 * np.eye(n)]])
    product, load = one + two, np.append(np.zeros(n), np.ones(n))
    product[n:, n:] = np.diag(np.linspace(1, 100, n))
    model = ps.AffineModel({a: one, b: two}, {1: load}, product=product)
    reduced = ps.greedy(model, n_modes=2).reduced
    mus = np.array([[0.1, 0.1], [0.1, 10.0], [10.0, 0.1], [0.2, 5.0], [3.0, 0.4]])
    answer, truth = reduced.solve(mus), np.array([np.linalg.solve(m[0] * one + m[1] * two, load) for m in mus])
    gap = reduced.basis.norm(answer.values - truth) / reduced.basis.norm(truth)
    assert np.all(gap <= answer.bounds.relative)
    lopsided = product + np.diag(np.append(np.zeros(n), np.ones(n - 1)), 1)
    with pytest.raises(ps.errors.InputError, match="not symmetric"):
        ps.AffineModel({a: one, b: two}, {1: load}, product=lopsided)


def test_boundary_values_that_are_not_zero_prove_nothing_by_energy():
    """The error has a part where values are stated, and there the matrix is not symmetric."""
    points, cells, left, right, _, load, free = halves()
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.1, 10.0, "log"))
    kept = np.zeros(len(points))
    kept[free] = 1.0
    rows, fixed = sparse.diags_array(kept), sparse.diags_array(1.0 - kept)
    edges = {1: kept * load, a: (1.0 - kept) * points[:, 0], b: (1.0 - kept) * points[:, 1]}
    operators = {a: rows @ left, b: rows @ right, 1: fixed}
    model = ps.AffineModel(operators, edges, points=points, cells=cells, product=left + right + fixed)
    surrogate = ps.learn(model, 1e-3, recipe="polynomial")
    mus = model.sample(10, rng=1)
    truth = np.array([model.solve(m).values for m in mus])
    answer = surrogate(mus)
    assert set(answer.bound_kind) == {"probable"}
    assert np.all(surrogate.basis.norm(answer.values - truth) <= answer.bound * surrogate.basis.norm(truth))


def test_quantities_have_their_bounds_in_the_product(block):
    """Without duals of its own, |ℓᵀe| ≤ (ℓᵀ X⁻¹ ℓ)^½ ||e||_X, the least that holds for all e."""
    surrogate = ps.learn(block, 1e-2, recipe="polynomial")
    _, _, left, right, _, load, free = halves()
    wanted = surrogate.quantities.norms[0, 0]
    exact = np.sqrt(load[free] @ np.linalg.solve(inside(left + right, free).toarray(), load[free]))
    assert wanted == pytest.approx(exact)
    mus = block.sample(20, rng=4)
    answer = surrogate(mus)
    gaps = np.array([load @ dense(m) for m in mus]) - answer.quantities["mean"]
    assert np.all(np.abs(gaps) <= answer.quantity_bounds["mean"])


def test_wide_ranges_and_a_block_of_constraints_are_proven():
    """Over four decades of both factors, with zero boundary values kept as rows of their own: a term without energy."""
    points, cells, left, right, _, load, free = halves()
    a, b = ps.parameters(a=(0.01, 100.0, "log"), b=(0.01, 100.0, "log"))
    kept = np.zeros(len(points))
    kept[free] = 1.0
    rows, fixed = sparse.diags_array(kept), sparse.diags_array(1.0 - kept)
    operators = {a: rows @ left, b: rows @ right, 1: fixed}  # not symmetric: columns are kept
    options = {"points": points, "cells": cells, "product": (left + right + fixed).tocsr()}
    model = ps.AffineModel(operators, {1: kept * load}, **options)
    surrogate = ps.learn(model, 1e-2, recipe="polynomial")
    mus = np.vstack([model.parameters.grid(2, 2), model.sample(10, rng=0)])
    answer, truth = surrogate(mus), np.array([dense(mu) for mu in mus])
    errors = energy(answer.values - truth) / energy(truth)
    assert set(answer.bound_kind) == {"proven"}
    assert np.all(errors <= answer.bound)
    sigma = surrogate.reduced.certificate.constants(surrogate.reduced.operator_theta(np.array([[50.0, 50.0]]))).sigma
    assert sigma[0] > 5  # a common factor is no change: the constraints' factor of 1 does not count


def test_weights_of_unknowns_that_are_left_stand_at_their_places():
    points, cells, left, right, _, load, free = halves()
    weights = np.random.default_rng(0).uniform(1, 2, len(free))
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.1, 10.0, "log"))
    operators = {a: inside(left, free), b: inside(right, free)}
    options = {"points": points, "cells": cells, "free": free, "product": weights}
    model = ps.AffineModel(operators, {1: load[free]}, **options)
    snapshots = ps.solve_many(model, model.sample(5, rng=0))
    basis = ps.pod(snapshots, n_modes=3, weights=model.product)
    modes = basis.modes[free]
    assert np.allclose(modes.T @ (weights[:, None] * modes), np.eye(3))
    assert np.all(basis.modes[np.setdiff1d(np.arange(len(points)), free)] == 0)


def test_each_reference_has_its_own_constant():
    """||u|| ≤ C ||u||_A: C² is the largest eigenvalue of X u = λ A u. Of the product itself, the first, it is 1."""
    _, _, left, right, _, load, free = halves()
    a, b = ps.parameters(a=(0.01, 100.0, "log"), b=(0.01, 100.0, "log"))
    left, right = inside(left, free), inside(right, free)
    model = ps.AffineModel({a: left, b: right}, {1: load[free]}, product=left + right)
    prepared = energy_preparation(model, model.product)
    thetas = prepared.covered.certificate.thetas
    assert prepared.embeddings[0] == 1.0
    assert len(thetas) > 1
    for (one, other), constant in zip(thetas, prepared.embeddings, strict=True):
        pair = (left + right).toarray(), (one * left + other * right).toarray()
        exact = np.sqrt(scipy.linalg.eigh(*pair, eigvals_only=True)[-1])
        assert exact * (1 - 1e-9) <= constant < 1.02 * exact


def test_a_block_that_is_not_symmetric_proves_nothing_by_energy():
    """Its pivots are positive, and its symmetric part is indefinite."""
    a, b = ps.parameters(a=(10.0, 20.0), b=(0.5, 2.0))
    bent = sparse.kron(sparse.eye_array(4), np.array([[1.0, 5.0], [0.1, 1.0]])).tocsr()
    model = ps.AffineModel({a: sparse.eye_array(8).tocsr(), b: bent}, {1: np.ones(8)})
    assert energy_preparation(model, model.product) is None


@pytest.mark.parametrize("kind", [">f8", ">f4", "<f4", "f2", ">i2", "i1"])
def test_numbers_of_any_kind_are_the_same_numbers(kind):
    stiff = 2 * np.eye(3) - np.eye(3, k=1) - np.eye(3, k=-1)
    model = ps.AffineModel({1: stiff.astype(kind), A_: np.eye(3).astype(kind)}, {1: np.arange(3).astype(kind)})
    assert np.array_equal(model.operator([2.0]).toarray(), stiff + 2 * np.eye(3))
    assert np.array_equal(model.load([2.0]), [0, 1, 2])


def test_small_whole_numbers_that_stand_twice_do_not_overflow():
    twice = sparse.coo_array((np.array([100, 100, 1], dtype=np.int8), ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    assert ps.AffineModel({1: twice, A_: np.eye(2)}, {1: np.ones(2)}).operator([1.0]).toarray()[0, 0] == 201
    own = ps.AffineModel(lambda mu: twice, np.ones(2), parameters={"a": (0, 1)})
    assert own.operator([1.0]).toarray()[0, 0] == 200


ONE_IS_MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])
MASKED_MATRIX = np.ma.masked_array(np.eye(2), mask=[[True, False], [False, False]])


@pytest.mark.parametrize(
    ("operators", "loads", "options"),
    [
        ({1: MASKED_MATRIX, A_: np.eye(2)}, {1: np.ones(2)}, {}),
        ({A_: np.eye(2)}, {1: ONE_IS_MASKED}, {}),
        ({A_: np.eye(2)}, {1: np.ones(2)}, {"product": MASKED_MATRIX}),
        ({A_: np.eye(2)}, {1: np.ones(2)}, {"quantities": {"q": ONE_IS_MASKED}}),
        ({A_: np.eye(2)}, {1: np.ones(2)}, {"points": ONE_IS_MASKED}),
        ({A_: np.eye(2)}, {1: np.ones(2)}, {"mass": np.eye(2), "times": [0, 1], "initial": ONE_IS_MASKED}),
        (lambda mu: MASKED_MATRIX, np.ones(2), {"parameters": {"a": (0, 1)}}),
        (lambda mu: np.eye(2), lambda mu: ONE_IS_MASKED, {"parameters": {"a": (0, 1)}}),
    ],
)
def test_what_is_masked_is_no_number(operators, loads, options):
    with pytest.raises(ps.ParasolError, match="1 entry"):
        ps.AffineModel(operators, loads, **options)


def test_masked_parameters_are_no_numbers():
    model = ps.AffineModel({A_: np.eye(2)}, {1: np.ones(2)})
    with pytest.raises(ps.ParasolError, match="1 entry"):
        model.solve(np.ma.masked_array([1.5], mask=[True]))
    column = np.ma.masked_array(np.linspace(0, 1, 5), mask=[1, 0, 0, 0, 0])
    with pytest.raises(ps.ParasolError, match="not finite"):
        ps.learn(data=ps.Results({"a": column}, {"u": np.ones((5, 2))}), tolerance=0.1)
