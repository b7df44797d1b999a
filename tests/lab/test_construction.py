import re
from dataclasses import replace

import numpy as np
import pytest
import sympy

import parasol as ps
from parasol_lab import theorem
from parasol_lab.theorem.construction import plan as construction
from parasol_lab.theorem.construction import stability as construction_stability
from parasol_lab.theorem.construction.chain import error_chain
from parasol_lab.theorem.construction.construct import build_surrogate
from parasol_lab.theorem.construction.plan import Design, Plan, plan_construction
from parasol_lab.theorem.construction.stability import Stability, stability
from parasol_lab.theorem.construction.system import reduced_system
from parasol_lab.theorem.construction.theta import denominator_range, middle_and_half, rational
from parasol_lab.theorem.networks.products import MAX_LEVELS

x, y = ps.coordinates("x y")
a, k = ps.parameters(a=(1.0, 2.0), k=(0.0, 1.0))
u = ps.unknown("u", x, y)


def instance(diffusion, reaction, right, n_modes, n_nodes=110):
    """A model and a POD basis of it."""
    equation = ps.Eq(-0.03 * diffusion * ps.laplacian(u) + reaction * u, right)
    problem = ps.Problem(ps.Disc(), equation, ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes))
    return model, ps.pod(ps.solve_many(model, model.sample(12)), n_modes=n_modes)


@pytest.fixture(scope="module")
def affine():
    return instance(a, 1 + k, 1 + k * x, 3)


def relative_error(surrogate, plan, n=15):
    """The largest error on a lattice with the corners, against least squares by NumPy's SVD."""
    mus = plan.system.parameters.grid(*[n] * len(plan.system.parameters.scalars))
    xi = plan.system.coordinates(mus)
    pairs = zip(plan.system.operator(xi), plan.system.load(xi), strict=True)
    exact = np.array([np.linalg.lstsq(b, f, rcond=None)[0] for b, f in pairs]) @ plan.system.back.T
    gaps = np.linalg.norm(surrogate.coefficients(mus) - exact, axis=1)
    return gaps.max() / np.linalg.norm(exact, axis=1).max()


def test_the_papers_own_construction_end_to_end(affine):
    model, basis = affine
    plan = plan_construction(model, basis, accuracy=1e-2, powers="paper", compress=False, precondition="none")
    assert plan.system.n_rows == model.n_unknowns
    assert plan.stability.kappa < 5
    assert plan.design == Design("paper", False, 1.0, "paper", False, 0)
    assert plan.chain.relaxation == pytest.approx(1 / (1 + plan.constants.beta**2))
    surrogate = build_surrogate(plan, model, basis)
    network = surrogate.map.network
    assert (network.depth, network.n_weights) == (plan.size.depth, plan.size.n_weights)
    assert relative_error(surrogate, plan) <= 1e-2
    # what it computes are the coefficients of the least-squares problem of the full matrices
    mu = np.array([1.3, 0.4])
    full = np.linalg.lstsq(model.operator(mu) @ basis.modes, model.load(mu), rcond=None)[0]
    assert np.linalg.norm(surrogate.coefficients(mu) - full) <= 1e-2 * plan.stability.size


@pytest.mark.parametrize("accuracy", [0.2, 1e-2, 1e-4, 1e-6])
def test_every_accuracy_is_kept_and_counts_are_exact(affine, accuracy):
    plan = plan_construction(*affine, accuracy=accuracy)
    surrogate = build_surrogate(plan, *affine)
    network = surrogate.map.network
    assert (network.depth, network.n_weights) == (plan.size.depth, plan.size.n_weights)
    assert relative_error(surrogate, plan) <= accuracy


@pytest.mark.parametrize(
    "problem",
    [
        (a**2, 1 + k, 1 + a * k * x),  # polynomial in A and f
        (1, a / (2 - k), k + x),  # rational in A
        (a, 1, 1 + x / (a + k)),  # rational in f only
    ],
    ids=["polynomial", "rational operator", "rational load"],
)
@pytest.mark.parametrize("options", [{}, {"powers": "paper"}, {"precondition": "basis"}], ids=str)
def test_polynomial_and_rational_coefficients(problem, options):
    model, basis = instance(*problem, 2)
    plan = plan_construction(model, basis, accuracy=2e-2, **options)
    assert not (plan.system.exact_operator and plan.system.exact_load)
    surrogate = build_surrogate(plan, model, basis)
    network = surrogate.map.network
    assert (network.depth, network.n_weights) == (plan.size.depth, plan.size.n_weights)
    assert relative_error(surrogate, plan) <= 2e-2


def test_a_constant_operator_takes_one_affine_layer():
    model, basis = instance(1, 2, 1 + a * x + k * y, 2)
    surrogate = theorem.construct(model, basis, accuracy=0.1)
    network = surrogate.map.network
    assert network.depth == 1
    mus = model.sample(50)
    exact = np.array(
        [basis.project(model.solve(mu).values) for mu in mus]
    )  # A^-1 from the left makes it the projection
    assert np.abs(surrogate.coefficients(mus) - exact).max() <= 1e-12 * np.abs(exact).max()


def test_boundary_values_as_parameter_take_one_affine_layer():
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))
    snapshots = ps.solve_many(model, ps.sample(model, 15))
    basis = ps.pod(snapshots, n_modes=6)
    surrogate = theorem.construct(model, basis, accuracy=0.01)
    assert surrogate.map.network.depth == 1
    exact = basis.project(snapshots.solutions)
    assert np.abs(surrogate.coefficients(snapshots.mus) - exact).max() <= 1e-11 * np.abs(exact).max()


def test_saved_and_loaded_it_answers_the_same(affine, tmp_path):
    model, basis = affine
    reduced = ps.reduce(model, basis)
    surrogate = theorem.construct(model, basis, accuracy=1e-2, reduced=reduced)
    loaded = ps.load(ps.save(surrogate, tmp_path / "theorem.parasol"))
    mus = model.sample(20)
    np.testing.assert_array_equal(loaded.coefficients(mus), surrogate.coefficients(mus))
    assert loaded.map.facts["accuracy"] == 1e-2
    assert loaded.map.facts["levels"] == surrogate.map.levels
    answer = loaded(mus)
    truth = np.array([model.solve(mu).values for mu in mus])
    errors = np.linalg.norm(answer.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    assert np.all(errors <= answer.bound)


# ---- constants -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("diffusion", [a, a**3 - a, 1 / (a + k - 0.5)], ids=str)
def test_constants_hold_everywhere_and_are_sharp(diffusion):
    model, basis = instance(diffusion, 1 + k, 1 + k * x, 3)
    for precondition in ("none", "solve", "basis"):
        system = reduced_system(model, basis, precondition=precondition)
        found = stability(system)
        xi = system.coordinates(model.parameters.grid(60, 60))
        values = np.linalg.svd(system.operator(xi), compute_uv=False)
        loads = np.linalg.norm(system.load(xi), axis=1)
        assert found.beta <= values.min() <= 1.04 * found.beta
        assert values.max() <= found.alpha <= 1.04 * values.max()
        assert loads.max() <= found.gamma <= 1.04 * loads.max()
        sizes = np.linalg.norm(system.coefficients(model.parameters.grid(60, 60)), axis=1)
        # accuracy is relative to no more than there is
        assert 0.95 * sizes.max() <= found.size <= sizes.max() * (1 + 1e-9)


def test_compression_changes_nothing_and_preconditioning_lowers_kappa(affine):
    model, basis = affine
    mus = model.sample(30)
    raw = reduced_system(model, basis, compress=False, precondition="none")
    few = reduced_system(model, basis, compress=True, precondition="none")
    other = reduced_system(model, basis, precondition="basis")
    assert raw.n_rows == model.n_unknowns
    assert few.n_rows <= 3 * basis.n_modes + 2
    for system in (few, other):
        np.testing.assert_allclose(system.coefficients(mus), raw.coefficients(mus), rtol=1e-9)
    assert stability(few).beta == pytest.approx(stability(raw).beta, rel=1e-9)
    solve = reduced_system(model, basis, precondition="solve")
    assert stability(solve).kappa < 0.8 * stability(raw).kappa
    # A^-1 at the middle makes the middle's answer the projection of its solution
    middle = model.vector()
    projected = basis.project(model.solve(middle).values)
    np.testing.assert_allclose(solve.coefficients(middle[None])[0], projected, rtol=1e-9)


def test_a_singular_operator_is_refused_with_its_parameter():
    (s,) = ps.parameters(s=(0.2, 0.9))
    problem = ps.Problem(ps.Disc(), ps.Eq(-(s - 0.4) * ps.laplacian(u), 1 + x), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=110))
    basis = ps.pod(ps.solve_many(model, [[0.25], [0.8]]), n_modes=1)
    with pytest.raises(ps.ParasolError, match=r"dependent columns at s=0\.4.*beta = 0") as caught:
        theorem.construct(model, basis, accuracy=0.1)
    assert float(re.search(r"s=([\d.]+)", str(caught.value))[1]) == pytest.approx(0.4, abs=1e-6)


# ---- the chain -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["sharp", "paper"])
@pytest.mark.parametrize("relaxation", [1.0, 2.0])
def test_errors_of_the_parts_add_up_to_the_accuracy(kind, relaxation):
    """Every part is off by all it may be off: in random directions, and in those that hurt most for two loads.

    f along the smallest singular value makes y largest, which the error of BᵀB acts on; f along the largest makes h = Bᵀf
    largest, which the error of the inverse acts on.
    """
    rng = np.random.default_rng(5)
    alpha, beta, gamma, eps, d, rows = 1.0, 0.2, 0.7, 0.02, 4, 9
    constants = Stability(alpha, beta, gamma, beta, (), 1.0, 1)
    options = {"exact_operator": False, "exact_load": False}
    chain = error_chain(constants, eps, kind=kind, relaxation=relaxation, **options)

    def off(size, shape, worst):
        e = worst if aligned else rng.normal(size=shape)
        return size * e / np.linalg.norm(e, 2 if e.ndim == 2 else None)

    largest = 0.0
    for trial in range(200):
        aligned = trial < 40
        left, right = np.linalg.qr(rng.normal(size=(rows, d)))[0], np.linalg.qr(rng.normal(size=(d, d)))[0]
        b = left * np.concatenate([[alpha, beta], rng.uniform(beta, alpha, d - 2)]) @ right
        load, along = left[:, trial % 2], right[trial % 2]  # of the largest, of the smallest singular value
        f, weak = gamma * load, right[1]
        exact = np.linalg.lstsq(b, f, rcond=None)[0]
        in_gram = b + off(chain.operator_in_gram, b.shape, -np.outer(left[:, 1], along))
        gram = in_gram.T @ in_gram + off(chain.gram, (d, d), -np.outer(weak, along))
        remainder = np.eye(d) - chain.relaxation * gram
        assert np.linalg.norm(remainder, 2) <= 1 - chain.delta + 1e-12
        inverse = np.linalg.inv(np.eye(d) - remainder) + off(chain.inverse, (d, d), np.outer(weak, along))
        in_right = b + off(chain.operator_in_right, b.shape, np.outer(load, weak))
        moments = in_right.T @ (f + off(chain.load, rows, left[:, 1])) + off(chain.right, d, weak)
        assert np.linalg.norm(chain.relaxation * inverse, 2) <= chain.final_bounds[0] + 1e-12
        assert np.linalg.norm(moments) <= chain.final_bounds[1] + 1e-12
        found = chain.relaxation * inverse @ moments + off(chain.final, d, weak)
        largest = max(largest, float(np.linalg.norm(found - exact)))
    assert largest <= eps
    if kind == "sharp":
        assert largest >= 0.6 * eps  # and not much is given away


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_refined_vector_is_as_exact_as_the_chain_says(count):
    """All matrices and products are off by all they may be, in the directions that hurt most."""
    rng = np.random.default_rng(6)
    alpha, beta, gamma, eps, d = 1.0, 0.3, 0.8, 1e-3, 5
    chain = error_chain(Stability(alpha, beta, gamma, beta, (), 1.0, 1), eps, refinements=count)
    lam, largest = chain.relaxation, 0.0

    def off(size, direction):
        return size * direction / np.linalg.norm(direction)

    for trial in range(100):
        q = np.linalg.qr(rng.normal(size=(d, d)))[0]
        values = np.concatenate([[alpha, beta], rng.uniform(beta, alpha, d - 2)])
        c = lam * (q * values**2) @ q.T
        h = gamma * beta * q[:, 1] if trial % 2 else gamma * (q @ values) / np.sqrt(d)
        exact = lam * np.linalg.solve(c, h)
        signs = np.where(np.arange(d) == 1, 1.0, rng.choice([-1.0, 1.0], d))
        if count:
            inverse = (q * ((1 + chain.inverse * signs) / (lam * values**2))) @ q.T
        else:
            inverse = (q * (1 / (lam * values**2) + chain.inverse * signs)) @ q.T
        assert np.linalg.norm(lam * inverse, 2) <= chain.final_bounds[0] * (1 + 1e-12)
        vector = lam * inverse @ h + off(chain.final, q[:, 1])
        for step in chain.refinements:
            assert np.linalg.norm(vector) <= step.vector_bound
            image = vector - c @ vector + off(step.image, q[:, 1] * rng.choice([-1, 1]))
            residual = h - (vector - image) / lam
            assert np.linalg.norm(residual) <= step.residual_bound
            vector = vector + lam * inverse @ residual + off(step.update, q[:, 1])
        largest = max(largest, np.linalg.norm(vector - exact))
    assert 0.3 * 5 / 8 * eps <= largest <= 5 / 8 * eps


@pytest.mark.parametrize("problem", [(a, 1 + k, 1 + k * x), (1, a / (2 - k), k + x)], ids=["affine", "rational"])
@pytest.mark.parametrize("refinements", [1, 2])
def test_refined_networks_are_counted_and_exact(problem, refinements):
    model, basis = instance(*problem, 3)
    system = reduced_system(model, basis)
    plan = Plan(system, stability(system), 1e-4, Design(refinements=refinements))
    surrogate = build_surrogate(plan, model, basis)
    assert len(plan.chain.refinements) == refinements
    network = surrogate.map.network
    assert (network.depth, network.n_weights) == (plan.size.depth, plan.size.n_weights)
    assert 0 < relative_error(surrogate, plan) <= 1e-4
    with pytest.raises(ps.ParasolError, match="refinements need symmetric=True"):
        Design(symmetric=False, refinements=refinements)


def test_each_idea_saves_weights(affine):
    model, basis = affine
    system = reduced_system(model, basis)
    constants = stability(system)
    paper = Design.named("paper")
    ladder = [
        paper,
        replace(paper, relaxation=2.0),
        replace(paper, relaxation=2.0, chain="sharp"),
        Design(symmetric=False, direct=False),
        Design(direct=False, refinements=0),
        Design(refinements=0),
        Design(),
    ]
    counts = [Plan(system, constants, 1e-2, design).size.n_weights for design in ladder]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < 0.3 * counts[0]


# ---- refusals ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("accuracy", [0, 0.25, 1.0, -0.1, float("nan"), "1e-2", True])
def test_accuracy_outside_the_theorem_is_refused(affine, accuracy):
    with pytest.raises(ps.ParasolError, match="strictly between 0 and 1/4"):
        theorem.construct(*affine, accuracy=accuracy)


def test_float64_ends_and_says_where(affine):
    with pytest.raises(
        ps.ParasolError, match=rf"alpha/beta=.* sawtooth levels, float64 resolves {MAX_LEVELS}"
    ) as caught:
        theorem.construct(*affine, accuracy=5e-14)
    least = float(re.search(r"accuracy >= ([\d.e-]+)", str(caught.value))[1])
    plan = plan_construction(*affine, accuracy=least)
    assert plan.representable
    assert not replace(plan, accuracy=least / 1.2).representable
    assert relative_error(build_surrogate(plan, *affine), plan, n=3) <= least


@pytest.mark.parametrize("powers", ["shared", "paper"])
@pytest.mark.parametrize("accuracy", [1e-14, 1e-300, 5e-324])
def test_below_rounding_nothing_is_counted_but_the_advice_works(affine, accuracy, powers):
    with pytest.raises(ps.ParasolError, match=r"alpha/beta=[\d.]+ needs too many sawtooth levels") as caught:
        theorem.construct(*affine, accuracy=accuracy, construction=powers)
    least = float(re.search(r"accuracy >= ([\d.e-]+)", str(caught.value))[1])
    assert plan_construction(*affine, accuracy=least, powers=powers).representable


def test_the_accuracy_advised_is_never_rounded_down(affine, monkeypatch):
    plan = plan_construction(*affine, accuracy=1e-14)
    monkeypatch.setattr(Plan, "smallest_accuracy", 1.33e-9)
    with pytest.raises(ps.ParasolError, match=r"accuracy >= 1\.4e-09"):
        plan.build()


def test_an_exact_layer_has_no_smallest_accuracy():
    model, basis = instance(1, 2, 1 + a * x + k * y, 2)
    assert theorem.construct(model, basis, accuracy=1e-300).map.network.depth == 1


def test_a_solution_that_is_zero_is_refused():
    model, _ = instance(a, 1 + k, 1, 1)
    zero = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u) + (1 + k) * u, 0), ps.Dirichlet(0))
    flat = ps.runtime.Basis(np.ones((model.n_nodes, 1)) / np.sqrt(model.n_nodes))
    with pytest.raises(ps.ParasolError, match="right-hand side is zero for all parameters"):
        theorem.construct(ps.discretize(zero, model.nodes), flat, accuracy=0.1)


def test_too_little_memory_is_said_before_anything_is_built(affine, monkeypatch):
    monkeypatch.setattr(construction, "available_memory", lambda: 1e8)
    monkeypatch.setattr(construction, "Builder", None)  # nothing is built
    with pytest.raises(ps.ParasolError, match=r"needs 0\.\d+ GiB of memory, there are 0\.093 GiB"):
        theorem.construct(*affine, accuracy=1e-2, construction="shared")
    monkeypatch.undo()
    assert construction.available_memory() > 1e8


@pytest.mark.parametrize(
    ("diffusion", "right", "message"),
    [
        (sympy.sin(a), 1, r"sin\(a\) in the operator is neither a polynomial nor a quotient"),
        (sympy.sqrt(a), 1, "neither a polynomial"),
        (a, sympy.exp(k), r"exp\(k\) in the right-hand side is neither"),
        (sympy.exp(a * x), 1, "mixes coordinates and parameters"),
        (a, sympy.exp(k * x), "mixes coordinates and parameters"),
        (1 / (a - k - 0.1), 1, "may have a pole in the parameter box"),
    ],
)
def test_what_no_network_here_represents_is_refused(diffusion, right, message):
    problem = ps.Problem(ps.Disc(), ps.Eq(-diffusion * ps.laplacian(u), right), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=110))
    basis = ps.runtime.Basis(np.linalg.qr(np.random.default_rng(0).normal(size=(model.n_nodes, 2)))[0])
    with pytest.raises(ps.ParasolError, match=message):
        theorem.construct(model, basis, accuracy=0.1)


def test_problems_the_theorem_is_not_about_are_refused(affine):
    model, basis = affine
    bratu = ps.load_problem("bratu")
    nonlinear = ps.discretize(bratu, ps.scatter(bratu.domain, n_nodes=110))
    flat = ps.runtime.Basis(np.ones((nonlinear.n_nodes, 1)) / np.sqrt(nonlinear.n_nodes))
    with pytest.raises(ps.ParasolError, match="bratu is nonlinear"):
        theorem.construct(nonlinear, flat, accuracy=0.1)
    with pytest.raises(ps.ParasolError, match="a model and a basis"):
        theorem.construct(basis, model, accuracy=0.1)
    with pytest.raises(ps.ParasolError, match="precondition"):
        theorem.construct(model, basis, accuracy=0.1, precondition="left")
    with pytest.raises(ps.ParasolError, match="construction"):
        theorem.construct(model, basis, accuracy=0.1, construction="all")


# ---- functions of the parameters -------------------------------------------------------------------------------------
def test_enclosures_contain_all_values():
    rng = np.random.default_rng(1)
    p, q = sympy.symbols("p q")
    for expression in (p**3 - 2 * p * q + 1, (p**2 + q) / (3 + p * q), q**2 * p**2, 5 / (p - 4)):
        function = rational(expression, (p, q), "here")
        exact = sympy.lambdify((p, q), expression)
        low = rng.uniform(-1, 1, size=(40, 2))
        high = low + rng.uniform(0, 0.8, size=(40, 2))
        bottom, top = function.enclose(low, high)
        for t in rng.random((20, 1, 2)):
            mus = low + t * (high - low)
            np.testing.assert_allclose(function(mus), exact(*mus.T), rtol=1e-12)
            assert np.all((bottom <= function(mus) + 1e-12) & (function(mus) <= top + 1e-12))


def test_a_denominator_is_bounded_by_cutting_the_box():
    space = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u) + k * u, 1), ps.Dirichlet(0)).parameters
    # over the whole box the monomials alone only say −1.5 … 2.5 where the least value is 0.5
    for known in (None, space):
        function = rational(1 / (a**2 - 2 * a * k + k**2 + 0.5), (a, k), "here", known)
        low, high = sorted(np.abs(denominator_range(function, space)))
        middle, half = map(np.array, middle_and_half(space))
        least, most = np.abs(function.below((np.array([[1.0, 1.0], [2.0, 0.0]]) - middle) / half, middle, half))
        assert most == pytest.approx(9 * least)
        assert 0 < low <= least
        assert most <= high <= 1.2 * most


TINY = sympy.Float("1e-400")


@pytest.mark.parametrize(
    "expression",
    [
        1 + TINY * a**2,
        1 / (1 + TINY * a),
        sympy.Float("1e400") * a,
        (1 + a) / (1 + sympy.Rational(1, 10**310) * k),
        a**1000,
        1 + sympy.Rational(1, 10**295) * a * k,
    ],
    ids=lambda e: str(e)[:20],
)
def test_coefficients_that_no_float_holds_are_refused(expression):
    """Read as 0 or as infinite, another function would be proven."""
    space = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 2.0), k=(0.0, 1.0)))
    with pytest.raises(ps.errors.InputError, match=r"which no float holds .* near 1, or leave the term out") as caught:
        rational(expression, (a, k), "the operator", space)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "terms",
    [
        (1 + TINY * a**2, 1, 1),
        (1, 1 + TINY * a**2, 1),
        (1, a, 1 + TINY * a),
        (1 / (1 + TINY * a), 1, 1),
    ],
)
def test_equations_with_such_numbers_are_refused(terms):
    model, basis = instance(*terms, 1)
    with pytest.raises(ps.errors.InputError, match="float") as caught:
        reduced_system(model, basis)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("unit", [1e-200, 1e-120, 1e120, 1e200])
def test_units_whose_squares_are_no_floats_are_refused(unit):
    (b,) = ps.parameters(b=(unit, 2 * unit))
    model, basis = instance(1 / (1 + b / sympy.Rational(str(unit))), 1, 1, 2)
    with pytest.raises(ps.errors.InputError, match=re.escape(f"Measure it in units of {unit:g}")) as caught:
        reduced_system(model, basis)
    assert "\n" not in str(caught.value)
    (b,) = ps.parameters(b=(1e-90, 2e-90))
    model, basis = instance(b / sympy.Rational("1e-90"), 1, 1, 2)
    plan = plan_construction(model, basis, accuracy=0.05)
    assert relative_error(build_surrogate(plan, model, basis), plan) <= 0.05


def test_small_denominators_have_no_poles():
    """The product of their ends is no float, but both are positive."""
    tiny = ps.pde.ParameterSpace(ps.parameters(a=(1e-200, 2e-200), k=(0.0, 1.0)))
    function = rational(1 / (1 + 10**200 * a), (a, k), "here", tiny)
    low, high = denominator_range(function, tiny)
    assert 0 < low < high < 1e-199


@pytest.mark.parametrize("precondition", ["solve", "basis", "none"])
def test_a_system_far_from_zero_is_the_one_near_it(precondition):
    """The same problem with a measured from another point: B, f, α, β, γ agree, and a network reads it as it is declared."""
    systems = []
    for far in (0, 10**6):
        (b,) = ps.parameters(b=(far + 1.0, far + 2.0))
        model, basis = instance(b - far, 1 + (b - far) ** 2, 1 + x * (b - far), 2)
        systems.append((model, basis))
    near, far = (
        reduced_system(model, systems[0][1], precondition=precondition, compress=False) for model, _ in systems
    )
    points = np.linspace(-1, 1, 7)[:, None]
    mus = 1e6 + 1.5 + points / 2
    assert far.centre == 1e6 + 1.5
    for each in (far.inside(points), far.coordinates(mus)):
        np.testing.assert_allclose(
            far.operator(each), near.operator(near.inside(points)), atol=2e-8 * stability(near).alpha
        )
        np.testing.assert_allclose(far.load(each), near.load(near.inside(points)), atol=2e-8 * stability(near).gamma)
    plain = far.about_zero.scaled(2.0, 3.0)
    xi = plain.coordinates(mus)
    assert xi[0, 0] == mus[0, 0]
    np.testing.assert_allclose(
        2 * plain.operator(xi), far.operator(far.inside(points)), atol=2e-8 * stability(near).alpha
    )
    np.testing.assert_allclose(3 * plain.load(xi), far.load(far.inside(points)), atol=2e-8 * stability(near).gamma)
    for name in ("alpha", "beta", "gamma"):
        mine, other = (getattr(stability(each), name) for each in (far, near))
        assert mine == pytest.approx(other, rel=0.03)
    assert np.all(far.term_norms(np.abs(far.inside(points)))[0] > 1e3 * near.term_norms(np.abs(near.inside(points)))[0])


def test_far_from_zero_no_digits_of_a_polynomial_are_lost():
    far = ps.pde.ParameterSpace(ps.parameters(a=(1e9 - 1, 1e9 + 3), k=(-2.0, 2.0)))
    expression = (a - 10**9) ** 6 * k / (1 + (a - 1e9) ** 2)
    function = rational(expression, (a, k), "here", far)
    t = np.random.default_rng(0).uniform(-1, 3, 200)
    mus = np.column_stack([1e9 + t, np.full(200, 1.7)])
    t = mus[:, 0] - 1e9
    np.testing.assert_allclose(function(mus), t**6 * 1.7 / (1 + t**2), rtol=1e-9, atol=1e-11)
    low, high = function.enclose(mus - 1e-3, mus + 1e-3)
    assert np.all((low <= function(mus)) & (function(mus) <= high))
    assert np.all(high - low < 5)
    assert denominator_range(function, far)[0] > 0
    square = rational((a - 10**9) ** 2, (a, k), "here")  # expanded about zero
    assert np.abs(square(mus) - t**2).max() > 1


def test_coefficients_that_floats_do_not_hold_enclose_nothing():
    """10**16 + 1 is no float: about zero, a − (10**16 + 1) seems to have one sign from 10**16 on."""
    space = ps.pde.ParameterSpace(ps.parameters(a=(1e16, 1e16 + 8)))
    function = rational(1 / (a - (10**16 + 1)), (a,), "here", space)
    (low,), (high,) = function.ends(np.array([[1e16]]), np.array([[1e16 + 8]]))[1]
    assert low == pytest.approx(-7e-16, rel=1e-6)
    assert high == pytest.approx(1e-16, rel=1e-6)
    with pytest.raises(ps.ParasolError):
        denominator_range(function, space)


def test_the_box_is_inside_what_its_middle_and_half_widths_say():
    """The middle of these is rounded to an end."""
    low, high = 1e16, 1e16 + 2
    (middle,), (half,) = middle_and_half(ps.pde.ParameterSpace(ps.parameters(a=(low, high))))
    assert middle - half <= low
    assert high <= middle + half


def test_bounds_are_proven_with_few_cells_or_refused(affine, monkeypatch):
    system = reduced_system(*affine)
    sharp = stability(system)
    monkeypatch.setattr(construction_stability, "_MOST_CELLS", 8)
    rough = stability(system)
    assert 0.5 * sharp.beta < rough.beta < sharp.beta
    singular = reduced_system(*instance(k - 0.3, 0, 1 + x, 1), precondition="none")  # at k = 0.3, which no centre is
    with pytest.raises(ps.ParasolError, match=r"cells of the parameter box are not enough to prove .* at k=0\.[23]"):
        stability(singular)
