import re

import numpy as np
import pytest
from scipy import sparse

import parasol as ps

T = np.linspace(0, 1, 20)
RANGES = {"a": (1.0, 2.0), "k": (0.0, 1.0)}
N = 12
LAPLACE = sparse.diags_array([-np.ones(N - 1), 2.0 * np.ones(N), -np.ones(N - 1)], offsets=(-1, 0, 1)).tocsr()
EYE = sparse.eye_array(N).tocsr()
a, k = ps.parameters(a=(1.0, 2.0), k=(0.0, 1.0))


def texts(model, severity=None, **options):
    report = ps.verify(model, **options)
    return [one.text for one in report.findings if severity in (None, one.severity)]


def good(mu):
    return mu[0] * np.sin(mu[1] + T)


class Right:
    """A linear solver with everything it may offer."""

    parameters = RANGES

    def operator(self, mu):
        return mu[0] * LAPLACE + mu[1] * EYE

    def load(self, mu):
        return np.ones(N)

    def residual(self, mu, u):
        return self.load(mu) - self.operator(mu) @ u

    def solve(self, mu):
        return sparse.linalg.spsolve(self.operator(mu).tocsc(), self.load(mu))


def blocks(**options):
    return ps.AffineModel({a: LAPLACE, k: EYE}, {1: np.ones(N)}, **options)


@pytest.mark.parametrize(
    "model", [lambda: Right(), lambda: blocks(product=LAPLACE + EYE), lambda: ps.load_problem("reaction-layer")]
)
def test_nothing_is_said_of_what_is_right(model):
    subject = model()
    if isinstance(subject, ps.Problem):
        subject = ps.discretize(subject, ps.scatter(subject.domain, n_nodes=60))
    report = ps.verify(subject)
    assert report.ok
    assert report.findings == ()
    assert report.n_solves == 13
    assert "nothing wrong" in str(report)
    assert "nothing wrong" in report._repr_html_()
    assert report.to_dict()["ok"]


def test_a_function_with_ranges_is_verified_too():
    assert texts(good, parameters=RANGES) == []
    assert texts(good) == [
        'the parameters of good are not known. Pass parameters={"a": (0.1, 4.0), "k": (1, 10, "log")}, in the order of mu.'
    ]
    assert "Pass a ps.Problem" in texts(object())[0]
    assert not ps.verify(object()).ok


def _noisy():
    rng = np.random.default_rng(0)
    return lambda mu: good(mu) + 1e-4 * rng.standard_normal(len(T))


def _stateful():
    calls = []

    def solve(mu):
        calls.append(mu)
        if len(calls) > 12:
            raise RuntimeError("licence expired")
        return good(mu)

    return solve


def _fails(mu):
    if mu[0] > 1.95:
        raise ps.errors.SolveFailed("no convergence")
    return good(mu)


@pytest.mark.parametrize(
    ("solver", "severity", "said"),
    [
        (_noisy(), "error", r"solved twice at a=1\.5, k=0\.5, the solutions differ by \d\.\de-04: no tolerance below that"),
        (_stateful(), "error", r"solved twice at a=1\.5, k=0\.5, the second time: solve\(mu\) fails: licence expired"),
        (_fails, "warning", r"at \d of 12 parameters, like a=2, k=1: solve\(mu\) fails: no convergence"),
        (lambda mu: good(mu[:1]), "error", r"at 12 of 12 parameters, like a=1\.5, k=0\.5: solve\(mu\) raises IndexError"),
        (lambda mu: good([mu[0], 0]), "warning", r"no solution depends on k\. Is mu read in the order a, k\?"),
        (lambda mu: np.log(mu[1]) * T, "error", r"like a=\d, k=0: \d+ of 20 values are NaN or infinite"),
        (lambda mu: np.ones(int(10 * mu[0])) * mu[1], "error", r"different lengths: 15 values at a=1\.5, k=0\.5, \d+ at a="),
        (lambda mu: 0.0 * T, "error", r"all solutions are zero"),
        (lambda mu: None, "error", r"the solver returned NoneType"),
        (lambda mu: {"u": T}, "error", r"the solver returned dict"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_solver_is_said(solver, severity, said):
    with np.errstate(divide="ignore", invalid="ignore"):
        found = texts(solver, severity, parameters=RANGES)
    assert any(re.search(said, text) for text in found), found
    assert all("\n" not in text for text in found)


def test_a_residual_that_does_not_fit_the_solve_is_said():
    class Sloppy(Right):
        def solve(self, mu):
            return super().solve(mu) * (1 + 1e-5)

    class Other(Right):
        def residual(self, mu, u):
            return self.load(mu) - self.operator(mu[::-1]) @ u

    class Curved(Right):
        def residual(self, mu, u):
            return super().residual(mu, u) * (1 + u[0])

    class Short(Right):
        def residual(self, mu, u):
            return super().residual(mu, u)[1:]

    found = ps.verify(Sloppy()).findings
    assert [one.severity for one in found] == ["warning"] * 2  # by residual, and by operator and load
    assert "residual(mu, u) of a solution is 1.0e-05 of that of zero" in found[0].text
    assert any("or of another system" in text for text in texts(Other(), "error"))
    assert any("is not linear in u" in text for text in texts(Curved()))
    assert any("has the shape (11,)" in text for text in texts(Short(), "error"))


def test_a_transposed_solve_of_another_matrix_is_said():
    class Wind(Right):
        def operator(self, mu):
            return super().operator(mu) + 0.5 * sparse.eye_array(N, k=1)

        def solve_transposed(self, mu, z):
            return sparse.linalg.spsolve(self.operator(mu).T.tocsc(), z)

    class Straight(Wind):
        def solve_transposed(self, mu, z):
            return sparse.linalg.spsolve(self.operator(mu).tocsc(), z)

    assert texts(Wind()) == []
    (found,) = texts(Straight(), "error")
    assert found.startswith("solve_transposed(mu, z) is not of the matrix of the residual")


def test_blocks_that_do_not_add_up_to_the_operator_are_said():
    right = Right()
    assert texts(blocks(), operator=right.operator, load=right.load) == []
    (found,) = texts(blocks(), operator=lambda mu: right.operator(mu[::-1]))
    assert re.search(r"do not add up to operator\(mu\): at a=\d.* they differ by \d", found)
    (found,) = texts(blocks(), load=lambda mu: 2.0 * right.load(mu))
    assert "do not add up to load(mu)" in found
    (found,) = texts(blocks(), operator=lambda mu: right.operator(mu)[1:])
    assert "operator(mu) has the shape (11, 12), the sum of the blocks (12, 12)" in found


def test_what_cannot_be_verified_is_refused():
    with pytest.raises(ps.errors.InputError, match=r"Pass a model: ps\.verify\(ps\.discretize"):
        ps.verify(ps.load_problem("reaction-layer"))
    with pytest.raises(ps.errors.InputError, match="declares its parameters itself"):
        ps.verify(blocks(), parameters=RANGES)
    assert "operator(mu) raises ZeroDivisionError" in texts(blocks(), operator=lambda mu: 1 / 0)[0]


def test_where_matrices_are_singular_is_said():
    (k0,) = ps.parameters(k=(0.0, 0.15))
    smallest = 2 - 2 * np.cos(np.pi / (N + 1))  # the first eigenvalue
    model = ps.AffineModel({1: LAPLACE, -k0: EYE}, {1: np.ones(N)})
    report = ps.verify(model)
    (finding,) = [one for one in report.findings if "singular" in one.text]
    assert finding.mu[0] == pytest.approx(smallest, abs=0.004)
    hole = LAPLACE.copy().tolil()
    hole[3] = 0
    model = ps.AffineModel({a: hole, k: EYE}, {1: np.ones(N)})
    found = ps.verify(model)
    assert any("k=0" in one.text for one in found.findings)  # singular there alone
    empty = EYE.copy().tolil()
    empty[3, 3] = 0
    found = texts(ps.AffineModel({a: hole, k: empty}, {1: np.ones(N)}), "error")
    assert "row 3 is zero in every matrix (1 such): no equation determines that unknown." in found


def test_factors_symmetry_and_products_are_looked_at():
    rough = LAPLACE + sparse.csr_array(([1e-9], ([0], [1])), shape=(N, N))
    (found,) = texts(ps.AffineModel({a: rough, k: EYE}, {1: np.ones(N)}))
    assert (
        found
        == "the matrix of a is symmetric but for 5.0e-10 of its largest entry. If it should be, give (A + A.T) / 2."
    )
    wind = LAPLACE + sparse.diags_array([0.1 * np.ones(N - 1)], offsets=(1,), shape=(N, N))
    assert texts(ps.AffineModel({a: wind, k: EYE}, {1: np.ones(N)})) == []  # meant
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    line = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-a * u.diff(x, 2) + u / k, 1), ps.Dirichlet(0))
    found = texts(ps.discretize(line, ps.scatter(line.domain, n_nodes=60)), "error")
    assert any("the factor 1/k of a matrix has no finite value at a=" in text for text in found)
    indefinite = sparse.csr_array(np.ones((N, N)) + 0.5 * np.eye(N) - 2.0 * np.diag(np.ones(N) * (np.arange(N) > 99)))
    indefinite = indefinite + sparse.csr_array(([3.0, 3.0], ([0, 1], [1, 0])), shape=(N, N))
    with pytest.raises(ps.errors.InputError, match="the product is not positive definite"):
        blocks(product=indefinite)
