import numpy as np
import pytest
from sympy import Eq, I, Symbol, exp

import parasol as ps
from parasol.checks import ParasolError

x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)
(a,) = ps.parameters(a=(0.5, 2.0))
EQUATION = Eq(-a * ps.laplacian(u), 4)


def test_every_part_needs_a_condition():
    box = ps.Box((0, 0), (1, 1))
    with pytest.raises(ParasolError, match="'right' has no condition"):
        ps.Problem(box, EQUATION, {"left": ps.Dirichlet(0)})
    with pytest.raises(
        ParasolError, match=r"part 'inlet', which the domain does not have\. Its parts are: left, right, bottom, top"
    ):
        ps.Problem(box, EQUATION, {"inlet": ps.Dirichlet(0), "*": ps.Dirichlet(0)})
    with pytest.raises(ParasolError, match="no condition"):
        ps.Problem(box, EQUATION)
    assert set(ps.Problem(box, EQUATION, {"left": ps.Neumann(1), "*": ps.Dirichlet(0)}).conditions) == set(
        box.part_names
    )


@pytest.mark.parametrize("value", ["0", None, float("nan"), [1, 2]])
def test_boundary_data_must_be_numbers_or_expressions(value):
    with pytest.raises(ParasolError, match="neither a finite number nor an expression"):
        ps.Problem(ps.Disc(), EQUATION, ps.Dirichlet(value))


@pytest.mark.parametrize(
    ("domain", "equation", "boundary", "message"),
    [
        ("disc", EQUATION, ps.Dirichlet(0), "Pass a domain"),
        (ps.Disc(), Eq(x, 1), ps.Dirichlet(0), "does not contain an unknown"),
        (ps.Ball((0, 0, 0), 1.0), EQUATION, ps.Dirichlet(0), "2 coordinates but the domain has 3"),
        (ps.Disc(), Eq(ps.laplacian(ps.laplacian(u)), 1), ps.Dirichlet(0), "above order 2"),
        (ps.Disc(), EQUATION, Eq(u.diff(x, 2), 0), "above order 1"),
        (ps.Disc(), EQUATION, 0, "Use ps.Dirichlet"),
        (
            ps.Disc(),
            Eq(u.diff(x, 2) + ps.unknown("v", x, y), 0),
            ps.Dirichlet(0),
            "1 equation\\(s\\) for 2 unknown functions",
        ),
    ],
)
def test_problems_that_are_refused_when_declared(domain, equation, boundary, message):
    with pytest.raises(ParasolError, match=message):
        ps.Problem(domain, equation, boundary)


@pytest.mark.parametrize(
    ("equation", "exact", "message"),
    [
        (Eq(-ps.laplacian(u) + I * u, 1), None, "imaginary"),
        (Eq(-ps.laplacian(u), ps.normal(x, y)[0]), None, "normal"),
        (EQUATION, Symbol("q"), "exact contains q"),
        (EQUATION, "x", "neither a finite number nor an expression"),
        (Eq(-ps.laplacian(u), ps.pde.Parameter("x", 0, 1)), None, "name of a coordinate"),
    ],
)
def test_symbols_that_make_no_sense(equation, exact, message):
    with pytest.raises(ParasolError, match=message):
        ps.Problem(ps.Disc(), equation, ps.Dirichlet(0), exact=exact)


def test_whether_a_problem_is_affine_is_known():
    assert ps.Problem(ps.Disc(), EQUATION, ps.Dirichlet(a * x)).affine
    assert not ps.Problem(ps.Disc(), EQUATION, ps.Dirichlet(exp(a * x))).affine


@pytest.mark.parametrize("name", ps.pde.problem_names())
def test_the_catalogue_solves_to_its_exact_solution(name):
    problem = ps.load_problem(name)
    if problem.exact is None:
        pytest.skip("no exact solution")
    assert problem.affine == problem.linear
    counts = {1: 200, 2: 1000, 3: 2500}
    nodes = ps.scatter(problem.domain, n_nodes=counts[problem.domain.dimension])
    model = ps.discretize(problem, nodes)
    low, high = problem.parameters.bounds
    for mu in (low, high if name != "bratu" else [1.9]):  # no solution above 2
        assert model.solve(mu).error < 3e-4


@pytest.mark.parametrize("name", ps.pde.problem_names())
def test_exact_solutions_satisfy_their_equations(name):
    problem = ps.load_problem(name)
    if problem.exact is None:
        pytest.skip("no exact solution")
    rng = np.random.default_rng(0)
    exact = problem.exact if isinstance(problem.exact, dict) else {problem.names[0]: problem.exact}
    known = {u: exact[str(u.func)] for u in problem.unknowns}
    times = [problem.time] if problem.time else []
    for equation in problem.equations:
        residual = (equation.lhs - equation.rhs).subs(known).doit()
        for _ in range(3):
            at = {s: rng.uniform(0.3, 0.6) for s in (*problem.coordinates, *problem.parameter_symbols[0], *times)}
            assert abs(complex(residual.subs(at))) < 1e-8


def test_problems_from_files(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import parasol as ps\n"
        "x, y = ps.coordinates('x y')\n"
        "u = ps.unknown('u', x, y)\n"
        "one = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), 4), ps.Dirichlet(0))\n"
    )
    assert ps.load_problem(str(file)).parameters.names == ()
    assert ps.load_problem(f"{file}:one").domain.dimension == 2
    with pytest.raises(ParasolError, match=r"no problem named 'two'\. It has: one"):
        ps.load_problem(f"{file}:two")
    with pytest.raises(ParasolError, match="unknown problem"):
        ps.load_problem("poisson")
    with pytest.raises(ParasolError, match="no file"):
        ps.load_problem(str(tmp_path / "gone.py"))
    file.write_text("1/0")
    with pytest.raises(ParasolError, match="ZeroDivisionError"):
        ps.load_problem(str(file))
