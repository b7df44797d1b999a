"""What cannot be solved is refused with what works instead, and that works."""

import numpy as np
import pytest
from sympy import Eq

import parasol as ps
from parasol.errors import InputError

x, y = ps.coordinates("x y")
SQUARE = ps.Box((0, 0), (1, 1))
u, v, p = ps.unknowns("u v p", x, y)


def momentum(pressure, *extra):
    return [Eq(-ps.laplacian(u) + pressure.diff(x), *extra or [0]), Eq(-ps.laplacian(v) + pressure.diff(y), 0)]


@pytest.mark.parametrize("conditions", [[ps.Dirichlet(0)] * 3, {u: ps.Dirichlet(0), v: ps.Dirichlet(0)}])
@pytest.mark.parametrize(
    "constraint", [u.diff(x) + v.diff(y), ps.divergence((u, v), x, y), ps.divergence((u, v), x, y) - x]
)
def test_stokes_in_velocity_and_pressure_is_refused(conditions, constraint):
    with pytest.raises(InputError, match=r"leaves p without an equation of its own.*streamfunction.*ps.learn a solver"):
        ps.Problem(SQUARE, [*momentum(p), Eq(constraint, 0)], conditions)
    with pytest.raises(InputError, match="equation 1 relates first derivatives of u, v"):  # in any order
        ps.Problem(SQUARE, [Eq(constraint, 0), *momentum(p)], conditions)


def test_incompressible_flow_in_time_is_refused():
    t = ps.time()
    a, b, q = ps.unknowns("a b q", x, y, t)
    flow = [Eq(f.diff(t) + a * f.diff(x) + b * f.diff(y) - ps.laplacian(f) + q.diff(s), 0) for f, s in ((a, x), (b, y))]
    with pytest.raises(InputError, match="leaves q without"):
        ps.Problem(
            SQUARE, [*flow, Eq(a.diff(x) + b.diff(y), 0)], [ps.Dirichlet(0)] * 3, initial={"a": 0, "b": 0, "q": 0}
        )


@pytest.mark.parametrize(
    "equations",
    [
        [*momentum(p), Eq(u.diff(x) + v.diff(y), p / 100)],  # a penalty
        [*momentum(p), Eq(u.diff(x) + v.diff(y), ps.laplacian(p) / 100)],
        [Eq(-ps.laplacian(u) + v, 1), Eq(v, u.diff(x))],  # a name for something known
        [Eq(-ps.laplacian(u) + v.diff(x), 1), Eq(v - u.diff(x), 0)],
        [Eq(u.diff(x) - v.diff(y), 0), Eq(u.diff(y) + v.diff(x), 0)],  # Cauchy and Riemann
        [Eq(-ps.laplacian(u) + v, 0), Eq(u, x)],
    ],
)
def test_other_systems_are_not(equations):
    n = len(equations)
    ps.Problem(SQUARE, equations, [ps.Dirichlet(0)] * n)


def test_orders_above_two_are_refused_with_what_works():
    w = ps.unknown("w", x, y)
    for equation, order in ((ps.laplacian(ps.laplacian(w)), 4), (w.diff(x, 3) + w, 3)):
        with pytest.raises(InputError, match=f"derivatives of order {order}.*unknown of their own.*re-entrant"):
            ps.Problem(SQUARE, Eq(equation, 1), ps.Dirichlet(0))
    t = ps.time()
    w = ps.unknown("w", x, t)
    with pytest.raises(InputError, match="time derivative of order 3"):
        ps.Problem(ps.Box(0.0, 1.0), Eq(w.diff(t, 3), w.diff(x, 2)), ps.Dirichlet(0), initial=0)


@pytest.mark.parametrize(("edge", "deflection"), [("supported", 0.00406235), ("clamped", 0.00126532)])
def test_the_plate_that_the_refusal_describes(edge, deflection):
    """Timoshenko's deflections in the middle of a square plate under a unit load, ΔΔu = 1."""
    second = ps.Dirichlet(0) if edge == "supported" else Eq(ps.gradient(u).dot(ps.normal(x, y)), 0)
    plate = [Eq(ps.laplacian(u), v), Eq(ps.laplacian(v), 1)]
    wanted = {"middle": ps.PointValue((0.5, 0.5), of="u")}
    problem = ps.Problem(SQUARE, plate, [ps.Dirichlet(0), second], quantities=wanted)
    found = ps.discretize(problem, ps.scatter(SQUARE, n_nodes=500)).solve().quantities["middle"]
    assert float(np.squeeze(found)) == pytest.approx(deflection, rel=1e-3)


def test_the_flow_that_the_refusal_describes():
    """The lid-driven cavity in streamfunction and vorticity: the vortex has psi = 0.1001 at (0.5, 0.765) for creeping flow."""
    psi, omega = ps.unknowns("psi omega", x, y)
    wall = [ps.Dirichlet(0), Eq(ps.gradient(psi).dot(ps.normal(x, y)), 0)]
    problem = ps.Problem(
        SQUARE,
        [Eq(-ps.laplacian(psi), omega), Eq(-ps.laplacian(omega), 0)],
        {"top": [ps.Dirichlet(0), Eq(psi.diff(y), 1)], "*": wall},
        quantities={"vortex": ps.PointValue((0.5, 0.765), of="psi")},
    )
    model = ps.discretize(problem, ps.scatter(SQUARE, n_nodes=1000))
    assert float(np.squeeze(model.solve().quantities["vortex"])) == pytest.approx(-0.1001, rel=5e-3)


def test_a_parameter_given_by_name_is_told_from_options_of_time():
    w, (a,) = ps.unknown("w", x, y), ps.parameters(a=(1.0, 2.0))
    problem = ps.Problem(SQUARE, Eq(-a * ps.laplacian(w), 1), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(SQUARE, n_nodes=100))
    with pytest.raises(InputError, match=r"a is a parameter.*solve\(\{'a': ...\}\)"):
        model.solve(a=1.5)
    with pytest.raises(InputError, match="times is for problems in time"):
        model.solve([1.5], times=[0, 1])
    with pytest.raises(InputError, match=r"step=0.1 is for problems in time"):
        ps.discretize(problem, ps.scatter(SQUARE, n_nodes=100), step=0.1)
