"""What an answer says of the full solver's own error: against exact solutions, from a file, in microseconds, in total."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import Piecewise, Rational, atan2, lambdify, pi, sin

import parasol as ps
from parasol.pde.by_elements import corners_for
from parasol.runtime.defects import Defects

x, y = ps.coordinates("x y")


@pytest.fixture(scope="module")
def learned():
    return ps.learn(ps.load_problem("reaction-layer"), 1e-3, n_nodes=80)


@pytest.fixture(scope="module")
def mus():
    return np.geomspace(1e-3, 1.0, 15)[:, None]


def test_it_follows_the_error_over_the_box(learned, mus):
    answer = learned(mus)
    solutions = [learned.solver.solve(mu) for mu in mus]
    errors = np.array([solution.error for solution in solutions])
    assert np.max(errors) > 1e4 * np.min(errors)  # one number for the box would say nothing
    above = errors > 1e-9
    ratios = answer.discretisation[above] / errors[above]
    assert np.min(ratios) > 1 / 3
    assert np.max(ratios) < 3
    own = np.array([solution.discretisation for solution in solutions])
    assert np.max(np.abs(np.log(answer.discretisation / own))) < np.log(1.5)


def test_it_is_kept_in_a_file_and_files_without_it_load(learned, mus, tmp_path):
    path = ps.save(learned, tmp_path / "a.parasol")
    assert np.allclose(ps.load(path)(mus).discretisation, learned(mus).discretisation, rtol=1e-12)
    without = ps.load(ps.save(replace(learned, discretisation=None), tmp_path / "b.parasol"))
    known = learned.facts["learn"]["discretisation_error"]
    assert np.array_equal(without(mus).discretisation, np.full(len(mus), known))
    assert np.isinf(without([2.0], extrapolate=True).discretisation)


def test_one_answer_has_one_number_and_a_total(learned):
    answer = learned(nu=0.01)
    assert isinstance(answer.discretisation, float)
    assert answer.total == answer.bound + answer.discretisation
    assert np.isinf(learned([2.0], extrapolate=True).discretisation)


def test_the_report_of_learning_takes_the_largest(learned, mus):
    assert learned.facts["learn"]["discretisation_error"] >= np.max(learned(mus).discretisation) / 1.01


def test_nothing_is_known_of_a_solver_of_one_s_own():
    class Wave:
        parameters = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 3.0)))

        def solve(self, mu):
            return np.sin(mu[0] * np.linspace(0, 2, 30))

    answer = ps.learn(Wave(), 1e-2, recipe="polynomial")([2.0])
    assert answer.discretisation is None
    assert answer.total is None


@pytest.mark.slow
def test_nonlinear_problems_too():
    surrogate = ps.learn(ps.load_problem("nonlinear-diffusion"), 1e-2, n_nodes=300, recipe="polynomial")
    mus = np.array([[0.5], [2.0], [4.5]])
    errors = np.array([surrogate.solver.solve(mu).error for mu in mus])
    ratios = surrogate(mus).discretisation / errors
    assert np.all((ratios > 1 / 3) & (ratios < 3))


@pytest.mark.parametrize("method", ["stencils", "elements"])
def test_a_solution_that_is_zero_has_no_error_to_interpolate(method):
    """In the middle of the box, where the first solve is, the load vanishes; for all others the relative error is the same."""
    u, (a, b) = ps.unknown("u", x, y), ps.parameters(a=(-1.0, 1.0), b=(1.0, 2.0))
    problem = ps.Problem(ps.Box((0, 0), (1, 1)), ps.Eq(-b * ps.laplacian(u) + 9 * u, a * x), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=120), method=method)
    surrogate = ps.learn(model.problem, 1e-2, model=model, recipe="polynomial")
    mus = [[-0.6, 1.2], [0.1, 1.8], [0.5, 1.5]]
    own = [model.solve(mu).discretisation for mu in mus]
    assert surrogate(mus).discretisation == pytest.approx(own, rel=0.05)
    assert surrogate.facts["learn"]["discretisation_error"] < 3 * max(own)


def test_where_the_error_is_next_to_nothing_at_one_parameter_the_largest_stands_for_all():
    """With a = 0 the solution is a parabola, which stencils have exactly: no interpolation of logarithms sees how far that reaches."""
    u, (a, b) = ps.unknown("u", x), ps.parameters(a=(-1.0, 1.0), b=(1.0, 2.0))
    problem = ps.Problem(ps.Box(0, 1), ps.Eq(-b * u.diff(x, 2) + a * u, 2 * b), ps.Dirichlet(0))
    surrogate = ps.learn(problem, 1e-3, n_nodes=25, recipe="polynomial")
    mus = ps.sample(surrogate.solver, 30, design="random", rng=3)
    own = np.array([surrogate.solver.solve(mu).discretisation for mu in mus])
    assert np.max(own) > 20 * np.min(own)
    assert (
        np.max(own) / 3
        < np.min(surrogate(mus).discretisation)
        <= np.max(surrogate(mus).discretisation)
        < 5 * np.max(own)
    )


# ---- surrogates made with elements ----------------------------------------------------------------------------------
def by_elements(problem, n_nodes, tolerance=1e-3):
    corners = corners_for(problem, ps.Settings(n_nodes=n_nodes), 3)
    return ps.learn(ps.discretize(problem, corners, method="elements"), tolerance)


@pytest.mark.slow
def test_the_thermal_block_by_elements(tmp_path):
    """Against solutions by scikit-fem on a mesh that is graded to all singular points."""
    names = ("a", "b", "c", "d")  # below left, below right, above left, above right
    k = dict(zip(names, ps.parameters(**{name: (0.5, 2.0, "log") for name in names}), strict=True))
    quarters = [ps.Box((i / 2, j / 2), (i / 2 + 0.5, j / 2 + 0.5)) for j in (0, 1) for i in (0, 1)]
    domain = ps.Box((0, 0), (1, 1)).regions(**dict(zip(names, quarters, strict=True)))
    u = ps.unknown("u", x, y)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(ps.by_region(**k) * ps.gradient(u)), 1), ps.Dirichlet(0))
    surrogate = by_elements(problem, 400)
    assert isinstance(surrogate.discretisation, Defects)
    mus = 2.0 ** np.random.default_rng(3).uniform(-1, 1, (6, 4))
    answer, model = surrogate(mus), surrogate.solver
    true = []
    for mu in mus:
        reference = block_by_triangles(mu, model.nodes.points)
        true.append(np.linalg.norm(model.solve(mu).values - reference) / np.linalg.norm(reference))
    ratios = answer.discretisation / true
    assert np.min(ratios) > 1 / 3
    assert np.max(ratios) < 3
    own = [model.solve(mu).discretisation for mu in mus]
    assert answer.discretisation == pytest.approx(own, rel=0.3)
    loaded = ps.load(ps.save(surrogate, tmp_path / "block.parasol"))
    assert np.allclose(loaded(mus).discretisation, answer.discretisation, rtol=1e-12)
    assert np.isinf(surrogate([3.0, 1.0, 1.0, 1.0], extrapolate=True).discretisation)
    assert surrogate.facts["learn"]["discretisation_error"] >= np.max(answer.discretisation) / 1.01


def block_by_triangles(mu, points):
    """The thermal block by quartic triangles that shrink geometrically towards sides and middle."""
    from skfem import Basis, BilinearForm, ElementTriP4, LinearForm, MeshTri, condense, solve
    from skfem.helpers import dot, grad

    steps = 0.25 * 0.35 ** np.arange(5.0, -1.0, -1.0)
    half = np.concatenate([[0.0], steps, 0.5 - steps[-2::-1], [0.5]])
    ticks = np.concatenate([half, 0.5 + half[1:]])
    basis = Basis(MeshTri.init_tensor(ticks, ticks), ElementTriP4())
    form = BilinearForm(lambda u, v, w: mu[(w.x[0] > 0.5) + 2 * (w.x[1] > 0.5)] * dot(grad(u), grad(v)))
    load = LinearForm(lambda v, w: v).assemble(basis)
    values = solve(*condense(form.assemble(basis), load, D=basis.get_dofs()))
    return basis.probes(np.clip(points, 1e-12, 1 - 1e-12).T) @ values


@pytest.mark.slow
def test_a_singular_corner_by_elements():
    """a r^(2/3) sin(2φ/3) + b (x² − y²) on the L-shape: the first is solved worse, the second exactly."""
    a, b = ps.parameters(a=(0.0, 1.0), b=(0.5, 2.0))
    u = ps.unknown("u", x, y)
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -2), (2, 0)).named("notch")
    angle = Piecewise((atan2(y, x), y >= 0), (atan2(y, x) + 2 * pi, True))
    singular = (x**2 + y**2) ** Rational(1, 3) * sin(2 * angle / 3)
    exact = a * singular + b * (x**2 - y**2)
    boundary = {"notch": ps.Dirichlet(b * (x**2 - y**2)), "*": ps.Dirichlet(exact)}
    problem = ps.Problem(domain, ps.Eq(-ps.laplacian(u), 0), boundary)
    surrogate = by_elements(problem, 300, 1e-5)
    mus = np.array([[1.0, 0.5], [0.3, 1.0], [0.02, 2.0], [0.001, 1.0]])
    true, model = [], surrogate.solver
    for mu in mus:
        at = lambdify((a, b, x, y), exact, "numpy")(*mu, *model.nodes.points.T)
        true.append(np.linalg.norm(model.solve(mu).values - at) / np.linalg.norm(at))
    assert max(true) > 100 * min(true)
    ratios = surrogate(mus).discretisation / true
    assert np.min(ratios) > 1 / 3
    assert np.max(ratios) < 3


def test_of_two_unknowns_the_worse_one_counts():
    defects = Defects(np.array([[[0.1, 0.0]], [[0.0, 0.5]]]), np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
    assert defects(np.array([[1.0, 1.0], [2.0, 0.0]])) == pytest.approx([0.5, 0.1])


def test_defects_of_another_basis_are_refused(learned):
    with pytest.raises(ps.ParasolError, match="another basis"):
        replace(learned, discretisation=Defects(np.ones((1, 1, 99)), np.ones((1, 1, 99))))


@pytest.mark.slow
def test_across_a_resonance_the_largest_stands_for_all():
    """There an error is no linear function of the solution; what was tried at solves that were left out says so."""
    h, g = ps.parameters(h=(0.1, 10.0, "log"), g=(0.0, 3.0))
    u = ps.unknown("u", x, y)
    boundary = {"left": ps.Neumann(0), "*": ps.Robin(h, 1, h * x)}
    problem = ps.Problem(ps.Box((0, 0), (2, 1)), ps.Eq(-ps.laplacian(u) - g * u, 1), boundary)
    surrogate = by_elements(problem, 300)
    mus = surrogate.solver.sample(8, rng=1)
    assert len(set(surrogate(mus).discretisation)) == 1
    own = [surrogate.solver.solve(mu).discretisation for mu in mus]
    assert np.mean(surrogate(mus).discretisation >= own) >= 0.75
