import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

import parasol as ps
from parasol.checks import ParasolError
from parasol.errors import InputError
from parasol.pde.parameters import ParameterSpace, parameters
from parasol.reduction.sampling import sample, split
from parasol.runtime.ranges import ParameterRange

BALL = ps.Ball((0.0, 0.0, 0.0), 1.0)
DESIGNS = ("sobol", "edges", "latin", "halton", "random")


@pytest.fixture(scope="module")
def space():
    return ParameterSpace(parameters(a=(0.1, 10.0, "log"), k=(-1.0, 3.0)))


@pytest.fixture(scope="module")
def sphere_model():
    """A ball with boundary values drawn from a field, and one scalar."""
    x, y, z = ps.coordinates("x y z")
    u = ps.unknown("u", x, y, z)
    (a,) = ps.parameters(a=(1.0, 2.0))
    g = ps.FunctionParameter("g", ps.SphereField(2))
    problem = ps.Problem(BALL, ps.Eq(-a * ps.laplacian(u), 0), ps.Dirichlet(g))
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))


def unit(mus):
    """Back to the unit square, by hand."""
    return np.column_stack([np.log10(mus[:, 0]) / 2 + 0.5, (mus[:, 1] + 1) / 4])


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("n", [1, 7, 64])
def test_designs_fill_the_box_and_repeat_with_the_seed(space, design, n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # SciPy warns of counts that are no power of two
        mus = sample(space, n, design=design, rng=5)
    assert mus.shape == (n, 2)
    space.check(mus)
    assert np.array_equal(mus, sample(space, n, design=design, rng=np.random.default_rng(5)))
    assert not np.array_equal(mus, sample(space, n, design=design, rng=6))


@pytest.mark.parametrize(("design", "n"), [("latin", 50), ("sobol", 64)])
def test_every_row_and_column_of_the_square_is_hit_once(space, design, n):
    cells = np.floor(unit(sample(space, n, design=design)) * n).astype(int)
    assert all(sorted(column) == list(range(n)) for column in cells.T)


def test_sobol_is_balanced_and_a_shorter_one_is_its_start(space):
    long = sample(space, 64)
    boxes = np.floor(unit(long) * 8).astype(int)
    assert len({tuple(box) for box in boxes}) == 64  # one point in each of 8 x 8 boxes
    assert np.array_equal(long[:37], sample(space, 37))


def test_scales(space):
    by_own, linear = sample(space, 256), sample(space, 256, scale="linear")
    assert np.median(by_own[:, 0]) == pytest.approx(1.0, rel=0.05)
    assert np.median(linear[:, 0]) == pytest.approx(5.05, rel=0.05)
    assert np.array_equal(by_own[:, 1], linear[:, 1])
    assert np.array_equal(sample(space, 256, scale={"a": "linear"}), linear)
    with pytest.raises(ParasolError, match=r"'k' starts at -1. A log scale needs low > 0"):
        sample(space, 4, scale="log")
    with pytest.raises(ParasolError, match=r"names 'b'.* a, k"):
        sample(space, 4, scale={"b": "log"})
    with pytest.raises(ParasolError, match="linear, log"):
        sample(space, 4, scale="cubic")


def test_lattice(space):
    mus = sample(space, 9, design="lattice")
    assert np.allclose(mus[:, 0], np.repeat([0.1, 1.0, 10.0], 3), rtol=1e-14)
    assert np.allclose(mus[:, 1], np.tile([-1.0, 1.0, 3.0], 3))
    assert mus[0, 0] == 0.1
    assert mus[-1, 0] == 10.0
    assert np.allclose(sample(space, (4, 2), design="lattice"), space.grid(4, 2), rtol=1e-14)
    with pytest.raises(ParasolError, match=r"n_samples=10. Use 9 \(3 values each\) or 16 \(4 values each\)"):
        sample(space, 10, design="lattice")
    with pytest.raises(ParasolError, match="3 counts for 2"):
        sample(space, (2, 2, 2), design="lattice")


def test_roots_of_large_lattices_are_exact():
    space = ParameterSpace(parameters(**{f"p{i}": (0, 1) for i in range(5)}))
    assert sample(space, 7**5, design="lattice").shape == (16807, 5)
    with pytest.raises(ParasolError, match=r"Use 7776 .* or 16807"):
        sample(space, 7**5 - 1, design="lattice")


def test_a_model_samples_its_functions_from_their_laws(sphere_model):
    mus = sample(sphere_model, 2000, rng=1)
    n = sphere_model.nodes.n_boundary
    assert mus.shape == (2000, 1 + n)
    sphere_model.check(mus)
    # SphereField(2): (1 + 3/9 + 5/49) / 4π, at every node
    assert np.mean(mus[:, 1:] ** 2) == pytest.approx((1 + 1 / 3 + 5 / 49) / (4 * np.pi), rel=0.05)
    assert np.array_equal(mus, sample(sphere_model, 2000, rng=1))
    assert sample(sphere_model, (4,), design="lattice")[:, 0] == pytest.approx([1, 4 / 3, 5 / 3, 2])
    with pytest.raises(ParasolError, match="'g' is drawn at nodes, which a Problem does not have"):
        sample(sphere_model.problem, 4)
    with pytest.raises(ParasolError, match="which a ParameterSpace"):
        sample(sphere_model.parameters, 4)


@pytest.mark.parametrize("design", [*DESIGNS, "lattice"])
def test_without_scalars(design):
    x, y, z = ps.coordinates("x y z")
    u = ps.unknown("u", x, y, z)
    plain = ps.Problem(BALL, ps.Eq(-ps.laplacian(u), 1), ps.Dirichlet(0))
    assert sample(plain, 3, design=design).shape == (3, 0)
    g = ps.FunctionParameter("g", ps.SphereField(1))
    functions = ps.Problem(BALL, ps.Eq(-ps.laplacian(u), 0), ps.Dirichlet(g))
    model = ps.discretize(functions, ps.scatter(functions.domain, n_nodes=250))
    mus = sample(model, 3, design=design)
    assert mus.shape == (3, model.n_parameters)
    assert len(np.unique(mus[:, 0])) == 3


def test_mistakes_of_sample_are_named(space):
    with pytest.raises(ParasolError, match="sobol, edges, latin, halton, random, lattice"):
        sample(space, 4, design="grid")
    with pytest.raises(ParasolError, match='need design="lattice"'):
        sample(space, (2, 2))
    with pytest.raises(ParasolError, match="got list"):
        sample([1, 2], 4)
    with pytest.raises(ParasolError, match="at least 1"):
        sample(space, 0)


def test_more_parameters_than_sobol_knows(monkeypatch, space):
    monkeypatch.setattr("parasol.reduction.sampling.qmc.Sobol.MAXDIM", 1)
    with pytest.raises(ParasolError, match=r'knows 1 parameters at most, got 2. Use design="latin"'):
        sample(space, 4)


def test_split_gives_disjoint_parts_for_parameters_and_solutions(space):
    mus = sample(space, 100)
    parts = split(mus, training=0.6, calibration=25, test="rest", rng=3)
    assert [len(rows) for rows in parts.values()] == [60, 25, 15]
    assert sorted(np.concatenate(list(parts.values()))) == list(range(100))
    assert all(np.all(np.diff(rows) > 0) for rows in parts.values())
    assert parts["training"].tolist() != list(range(60))
    again = split(100, training=0.6, calibration=25, test=None, rng=np.random.default_rng(3))
    assert all(np.array_equal(parts[name], again[name]) for name in parts)
    assert mus[parts["test"]].shape == (15, 2)


def test_split_in_order_and_by_fractions():
    parts = split(10, first="rest", second=0.3, mus=2)
    assert [parts[name].tolist() for name in parts] == [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9]]
    for n in range(10, 60):  # fractions of one whole leave nothing over, whatever the rounding
        thirds = split(n, a=1 / 3, b=1 / 3, c=1 / 3)
        assert sum(map(len, thirds.values())) == n
        assert max(map(len, thirds.values())) - min(map(len, thirds.values())) <= 1
        assert sum(map(len, split(n, a=0.7, b=0.2, c=0.1).values())) == n


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({}, "needs parts"),
        ({"a": 0.8, "b": 0.4}, "add up to 1.2"),
        ({"a": 8, "b": 3}, r"need 11 samples \(a: 8, b: 3\), but there are 10"),
        ({"a": "rest", "b": None}, "a and b are both"),
        ({"a": 10, "b": "rest"}, "'b' would be empty"),
        ({"a": 0.01, "b": 5}, "'a' would be empty"),
        ({"a": 0}, "'a' has size 0"),
        ({"a": 1.0}, "'a' has size 1.0"),
        ({"a": "most"}, "'a' has size 'most'"),
        ({"a": True}, "'a' has size True"),
    ],
)
def test_mistakes_of_split_are_named(sizes, message):
    with pytest.raises(ParasolError, match=message):
        split(10, **sizes)


def test_edges_is_denser_at_the_ends_and_keeps_the_box():
    space = ParameterSpace(parameters(a=(0.1, 4.0, "log"), k=(0.0, 2.0)))
    unit = space.to_unit(sample(space, 1024, design="edges"))
    assert np.all((unit >= 0) & (unit <= 1))
    counts = np.array([np.histogram(column, bins=8, range=(0, 1))[0] for column in unit.T])
    # the law's distribution function at 1/8 solves t/2 + (1 - cos(pi t))/4 = 1/8: t = 0.19
    assert np.all(counts[:, [0, 7]] > 1.4 * 1024 / 8)
    assert np.all(counts[:, 3:5] < 0.9 * 1024 / 8)


@pytest.mark.parametrize("rng", ["a", -1, 0.5])
def test_a_seed_that_is_none_is_refused(space, rng):
    for call in (lambda: sample(space, 4, rng=rng), lambda: split(4, rng=rng, one=2, other="rest")):
        with pytest.raises(ParasolError, match="must be a whole number from 0 on or a NumPy generator"):
            call()


def test_parameters_may_be_distributions():
    """Their range is what they can be, but for 1e-6; draws have their quantiles, and files keep them."""
    declared = ps.parameters(a=stats.norm(1, 0.1), b=stats.lognorm(0.5, scale=2.0), c=stats.beta(2, 3), d=(0.0, 2.0))
    a, b, c, d = (p.declared for p in declared)
    assert (a.low, a.high) == pytest.approx((1 - 0.4892, 1 + 0.4892), abs=1e-4)
    assert (b.scale, c.low, c.high, d.distribution) == ("log", 0.0, 1.0, "")
    space = pickle.loads(pickle.dumps(ps.pde.ParameterSpace(declared)))
    mus = ps.sample(space, 4000, design="distribution", rng=1)
    space.check(mus)
    laws = (stats.norm(1, 0.1), stats.lognorm(0.5, scale=2.0), stats.beta(2, 3), stats.uniform(0, 2))
    for column, law in zip(mus.T, laws, strict=True):
        assert stats.kstest(column, law.cdf).pvalue > 1e-3
    assert np.std(ps.sample(space, 400, design="random")[:, 0]) > 0.2  # other designs fill the range


@pytest.mark.parametrize(
    "given", [stats.poisson(3.0), stats.norm([0.0, 1.0], 1.0), stats.multivariate_normal([0.0, 1.0])]
)
def test_distributions_of_anything_but_a_number_are_refused(given):
    with pytest.raises(InputError, match="'a'"):
        ps.parameters(a=given)


def test_a_file_cannot_name_what_is_no_distribution():
    for text in ("norm", "qmc(1)", "norm(open('x'))", "__import__('os')"):
        with pytest.raises(InputError, match="no continuous distribution"):
            ps.sample(ps.pde.ParameterSpace((ParameterRange("a", 0, 1, "linear", text),)), 3, design="distribution")
