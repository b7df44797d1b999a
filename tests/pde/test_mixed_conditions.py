"""Systems in which one unknown has its value given where another has its slope given."""

import numpy as np
import pytest
import sympy as sp

import parasol as ps


def evolved(dimension, order, kinds, n_nodes, *, uneven=False, end=0.5, **options):
    """Largest errors at the end of v_t = Δv − w ..., w_t = Δw − w + v ... (or v_tt, w_tt) with a known solution."""
    space, t = ps.coordinates("x y z"[: 2 * dimension - 1]), ps.time()
    v, w = ps.unknowns("v w", *space, t)
    first, last, outward = space[0], space[-1], ps.normal(*space)
    exact = [1 + sp.sin(first + 2 * last) * sp.cos(t) / 2, sp.cos(2 * first - last) * sp.exp(-t / 2) + 2]

    def operators(v, w):
        diffusion = [-sum(f.diff(c, 2) for c in space) for f in (v, w)]
        mass = (2 + first) if uneven else 1
        return [mass * v.diff(t, order) + diffusion[0] + w, w.diff(t, order) + diffusion[1] + w - v]

    def condition(kind, e):
        slope = sum(e.diff(c) * n for c, n in zip(space, outward, strict=True))
        return ps.Dirichlet(e) if kind == "value" else ps.Robin(2, 1, 2 * e + slope)

    eqs = [ps.Eq(left, right) for left, right in zip(operators(v, w), operators(*exact), strict=True)]
    initial = {"v": exact[0].subs(t, 0), "w": exact[1].subs(t, 0)}
    if order == 2:
        initial = {n: (e, f.diff(t).subs(t, 0)) for (n, e), f in zip(initial.items(), exact, strict=True)}
    domain = ps.Box([0.0] * dimension, [1.0] * dimension)
    problem = ps.Problem(
        domain, eqs, [condition(*pair) for pair in zip(kinds, exact, strict=True)], initial=initial, times=[0.0, end]
    )
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=n_nodes))
    found = model.solve(**options).fields
    at = [sp.lambdify(space, e.subs(t, end))(*model.nodes.points.T) for e in exact]
    return max(np.max(np.abs(found[name][-1] - e)) for name, e in zip("vw", at, strict=True))


@pytest.mark.parametrize("kinds", [("value", "robin"), ("robin", "value")])
@pytest.mark.parametrize(("dimension", "order", "n_nodes"), [(1, 1, 40), (1, 2, 40), (2, 1, 120)])
def test_in_time_a_given_value_stands_beside_a_given_slope(dimension, order, n_nodes, kinds):
    assert evolved(dimension, order, kinds, n_nodes, uneven=order == 1) < 1e-5


def test_the_rate_of_a_given_value_keeps_the_order_in_time():
    errors = [evolved(1, 1, ("value", "robin"), 40, step=h, integrator="esdirk4") for h in (0.25, 0.125)]
    assert np.log2(errors[0] / errors[1]) > 2.5
