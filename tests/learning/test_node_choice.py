"""The estimate of the discretisation error against exact solutions, most of them rough."""

import re
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import parasol as ps
from parasol.learning.comparing import compare
from parasol.learning.nodes import choose_nodes
from parasol.learning.solves import Limits
from parasol.pde.steady import l2_root

x, y = ps.coordinates("x y")
u, v = ps.unknown("u", x), ps.unknown("v", x, y)
(a,) = ps.parameters(a=(0.2, 0.8))


def line():
    """-u'' = H(x - 0.37)."""
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), sp.Heaviside(x - 0.37)), ps.Dirichlet(1 + x))
    return problem, lambda p: 1 + (1 + 0.63**2 / 2) * p[:, 0] - np.maximum(p[:, 0] - 0.37, 0) ** 2 / 2


def disc():
    """A source in a small disc: u is a parabola in it and a logarithm outside."""

    def exact(p):
        r = np.maximum(np.hypot(*p.T), 1e-9)
        return 0.1 + np.where(r < 0.3, (0.09 - r**2) / 4 - 0.045 * np.log(0.3), -0.045 * np.log(r))

    source = sp.Piecewise((1, x**2 + y**2 < 0.09), (0, True))
    return ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(v), source), ps.Dirichlet(0.1)), exact


def corner():
    """r^(2/3) cos(2φ/3) with its slope given on both sides of the corner, its value elsewhere."""
    r = sp.sqrt(x**2 + y**2)
    angle = sp.Piecewise((sp.atan2(y, x), y >= 0), (sp.atan2(y, x) + 2 * sp.pi, True))
    value = r ** sp.Rational(2, 3) * sp.cos(2 * angle / 3)
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -1.5), (1.5, 0)).named("notch")
    boundary = {name: ps.Dirichlet(value) for name in domain.part_names} | {"notch": ps.Neumann(0)}

    def exact(p):
        angle = np.mod(np.arctan2(p[:, 1], p[:, 0]) + 1e-9, 2 * np.pi) - 1e-9
        return np.hypot(*p.T) ** (2 / 3) * np.cos(2 * angle / 3)

    return ps.Problem(domain, ps.Eq(-ps.laplacian(v), 0), boundary), exact


# with 41 and 82 nodes, and with 68 and 136, the errors on the line are almost the same: a third set shows them
@pytest.mark.parametrize(
    ("case", "counts"),
    [(line, (41, 68)), (disc, (250, 251, 252)), pytest.param(corner, (250, 251, 252), marks=pytest.mark.slow)],
)
def test_the_estimate_sees_errors_of_rough_problems(case, counts):
    problem, exact = case()
    ratios = []
    for n in counts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.ParasolWarning)
            model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n, rng=n))
        truth = exact(model.nodes.points)
        error = np.linalg.norm(model.solve().values - truth) / np.linalg.norm(truth)
        ratios.append(ps.learning.discretisation_error(model, rng=n) / error)
    assert min(ratios) > 0.45
    assert np.exp(np.mean(np.log(ratios))) < 5  # one set of nodes may be lucky, or the finer one unlucky


@pytest.mark.parametrize("power", [sp.Rational(1, 2), sp.Rational(4, 5), sp.Rational(5, 2)])
def test_slow_convergence_that_nobody_foresees_is_observed(power):
    exact = x**power  # the boundary layer of its source is not to be seen from the equation
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), -exact.diff(x, 2)), ps.Dirichlet(x))
    for aim in (1e-2, 5e-4):
        chosen = choose_nodes(problem, aim, limits=Limits(), stage=lambda text: None)
        truth = chosen.model.nodes.points[:, 0] ** float(power)
        error = np.linalg.norm(chosen.model.solve().values - truth) / np.linalg.norm(truth)
        assert error / 2 < chosen.error < 3 * error


def growing(at_first, second=None):
    """u = at_first(x) (1 + t), which steps in time follow exactly; `second` is its second derivative where that jumps."""
    t = ps.time()
    w, exact = ps.unknown("w", x, t), at_first * (1 + t)
    equation = ps.Eq(w.diff(t) - w.diff(x, 2), at_first - (1 + t) * (at_first.diff(x, 2) if second is None else second))
    about = {"initial": at_first, "times": [0.0, 0.5], "settings": {"default": ps.Settings(step=0.25)}}
    return ps.Problem(ps.Box(0.0, 1.0), equation, ps.Dirichlet(exact), **about), sp.lambdify(x, 1.5 * at_first, "numpy")


bend = sp.Piecewise((0, x < 0.37), ((x - 0.37) ** 2, True))


@pytest.mark.parametrize(
    ("case", "aim", "counts", "refined", "said"),
    [
        # the first nodes are moved, the last are known by how differences fall
        (growing(1 + sp.exp(-((100 * x - 30) ** 2))), 5e-6, [100, 100, 200, 400], True, ""),
        (growing(sp.sqrt(x)), 9e-3, [100, 100, 200, 400, 800], False, ""),
        # known to be rough: three sets are compared
        (growing(1 + x - bend, -2 * sp.Heaviside(x - 0.37)), 4e-5, [100, 100, 200, 400], True, ""),
        (growing(x ** sp.Rational(1, 8)), 1e-3, [100, 100, 200, 400], False, "does not converge"),
    ],
    ids=["peak", "root", "bend", "eighth root"],
)
def test_in_time_nodes_are_doubled_until_two_solutions_agree(case, aim, counts, refined, said):
    problem, exact = case
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = choose_nodes(problem, aim, limits=Limits(), stage=lambda text: None)
    truth, root = exact(chosen.model.nodes.points[:, 0]), l2_root(chosen.model)
    found = chosen.model.solve().values.reshape(2, -1)[1]
    error = np.linalg.norm(root * (found - truth)) / np.linalg.norm(root * truth)
    assert [row.n_nodes for row in chosen.history] == counts
    assert chosen.refined is refined
    assert error / 3 < chosen.error < 5 * error
    assert (chosen.error <= aim) == (not said)
    last = f"does not converge: .* {chosen.error:.1e} with {chosen.n_nodes} nodes"
    assert any(re.search(last, str(one.message)) for one in caught) == bool(said)


def test_no_doubling_where_it_cannot_help():
    problem, exact = disc()
    problem = replace(problem, settings={"default": ps.Settings(n_nodes=200)})
    with (
        pytest.warns(ps.ParasolWarning, match="jumps"),
        pytest.warns(ps.ParasolWarning, match="1.0e-05 would take about"),
    ):
        chosen = choose_nodes(problem, 1e-5, limits=Limits(), stage=lambda text: None)
    truth = exact(chosen.model.nodes.points)
    error = np.linalg.norm(chosen.model.solve().values - truth) / np.linalg.norm(truth)
    assert [row.n_nodes for row in chosen.history] == [200, 400]
    assert error / 3 < chosen.error < 8 * error


def test_refinement_follows_a_layer_that_the_first_nodes_cannot_resolve():
    (e,) = ps.parameters(e=(1e-5, 1e-1, "log"))
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-e * u.diff(x, 2) + u, 1), ps.Dirichlet(0))
    chosen = choose_nodes(problem, 1e-4, limits=Limits(), stage=lambda text: None)
    even = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=chosen.n_nodes))

    def error(model, width):
        s, w = model.nodes.points[:, 0], width**0.5
        exact = 1 - (np.exp(-s / w) + np.exp((s - 1) / w)) / (1 + np.exp(-1 / w))
        return np.linalg.norm(model.solve([width]).values - exact) / np.linalg.norm(exact)

    assert chosen.refined
    assert max(error(chosen.model, width) for width in (1e-5, 1e-4, 1e-2)) < chosen.error <= 1e-4
    assert error(even, 1e-5) > 3 * error(chosen.model, 1e-5)


def test_refinement_that_does_not_converge_ends_at_once_and_says_where():
    exact = x ** sp.Rational(1, 10)
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), -exact.diff(x, 2)), ps.Dirichlet(x))
    with pytest.warns(
        ps.ParasolWarning, match=r"refinement does not converge: .* nodes\. Most of it comes from near x=0\.0"
    ):
        chosen = choose_nodes(problem, 1e-3, limits=Limits(), stage=lambda text: None)
    assert len(chosen.history) == 3
    truth = chosen.model.nodes.points[:, 0] ** 0.1
    error = np.linalg.norm(chosen.model.solve().values - truth) / np.linalg.norm(truth)
    assert error / 3 < chosen.error < 3 * error


@pytest.mark.slow
def test_elements_are_as_many_as_their_own_estimate_asks_for():
    problem, exact = corner()
    with pytest.warns(ps.ParasolWarning, match="solved by elements"):
        chosen = choose_nodes(problem, 5e-5, limits=Limits(), stage=lambda text: None)
    truth = exact(chosen.model.nodes.points)
    root = np.sqrt(chosen.model.product)  # in L2 over the domain, not at nodes that crowd at the corner
    error = np.linalg.norm(root * (chosen.model.solve().values - truth)) / np.linalg.norm(root * truth)
    assert chosen.model.elements is not None
    assert chosen.refined
    assert error < chosen.error <= 5e-5
    assert chosen.n_nodes < 3000


def test_learning_says_that_the_full_solver_is_the_limit():
    step = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2) + a * u, sp.Heaviside(x - 0.3)), ps.Dirichlet(0))
    with pytest.warns(ps.ParasolWarning, match="the discretisation error is about .*e-0[23]: the full solver itself"):
        surrogate = ps.learn(step, 1e-4, n_nodes=60, recipe="polynomial")
    account = surrogate.facts["learn"]
    assert account["met"]
    assert any("the source of the equation jumps" in note for note in account["notes"])
    assert "above 0.0001, which is against the full solver" in ps.check(surrogate, n=5).rows()["discretisation"]


@pytest.mark.parametrize("total", [False, True])
def test_the_verdict_says_what_stopped_the_choice_of_nodes(total):
    """More nodes would not help, so the advice is not to give more."""
    exact = a * x ** sp.Rational(1, 10)
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), -exact.diff(x, 2)), ps.Dirichlet(a * x))
    words = "limited by discretisation" if total else "the full solver itself is that far"
    with pytest.warns(ps.ParasolWarning, match=f"{words}.*Refinement does not converge: .* near x=0\\.0"):
        ps.learn(problem, 1e-3, recipe="polynomial", total=total)


def test_the_estimate_of_one_solve_refuses_what_it_cannot_compare():
    with pytest.raises(ps.ParasolError, match=r"Pass what ps\.discretize returns"):
        ps.learning.discretisation_error(line()[0])


def test_two_node_sets_are_compared_with_the_same_function():
    u, g = ps.unknown("u", x, y), ps.FunctionParameter("g", ps.GaussianField(length=1.0))
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), 0), ps.Dirichlet(g))  # modes of g depend on the nodes
    coarse, fine = (ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n)) for n in (150, 300))
    assert compare(coarse, fine).error < 1e-2


def test_learning_says_that_elements_would_be_better_where_they_are_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "skfem", None)
    with pytest.warns(ps.errors.MissingPackage, match=r"Stencils are used.*pip install scikit-fem") as said:
        surrogate = ps.learn(_el_with_a_hole(), 1e-1, n_nodes=600, solves=12, recipe="polynomial")
    missing = [w for w in said if w.category is ps.errors.MissingPackage]
    assert len(missing) == 1
    assert missing[0].filename == __file__  # the line of the user, not one of parasol
    assert not any("pip install" in note for note in surrogate.facts["learn"]["notes"])


def test_whether_elements_can_be_used_is_tried_without_a_word_about_the_nodes_of_the_trial():
    pytest.importorskip("skfem")
    surrogate = ps.learn(_el_with_a_hole(), 1e-1, n_nodes=3000, solves=12, recipe="polynomial")
    assert not any("hole or rim" in note for note in surrogate.facts["learn"]["notes"])


def _el_with_a_hole():
    el = ps.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]) - ps.Disc((0.5, 0.5), 0.25).named("hole")
    boundary = {"left": ps.Dirichlet(0), "*": ps.Neumann(0)}
    return ps.Problem(el.named(left=x < 1e-6), ps.Eq(-ps.laplacian(v) + a * v, 1), boundary)
