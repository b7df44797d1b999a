"""What a surrogate knows of space and time survives a file: values between nodes, walls, names of coordinates and time."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.delivery.answers import write_answer
from parasol.delivery.datasets import to_xarray
from parasol.runtime.descriptions import SurrogateReport
from parasol.runtime.layout import AXES, Layout
from parasol.space.outline import OutlinedDomain, outline_of
from parasol.space.stencils import Scheme

SLIT = ps.Box((-1, -1), (1, 1)) - ps.Box((0.0, -0.01), (1.5, 0.01))
CAVITY = ps.Box((0, 0, 0), (1, 1, 1)) - ps.Ball((0.5, 0.5, 0.5), 0.3)
HOLE = ps.Box((0, 0), (2, 1), periodic=("x",)) - ps.Disc((0.31, 0.5), 0.3)  # close to the seam


def winding(p):
    """Jumps across the slit, and is smooth elsewhere."""
    return np.mod(np.arctan2(p[:, 1], p[:, 0]), 2 * np.pi) * np.sum(p[:, :2] ** 2, axis=1)


def waves(p):
    return np.sin(np.pi * p[:, 0]) + p[:, -1] ** 2


def surrogate_of(domain, n_nodes, u, **names):
    """a u(x), on nodes in a domain: what it says between nodes is interpolation alone."""
    nodes = ps.scatter(domain, n_nodes=n_nodes)
    mus = np.linspace(0, 1, 9)[:, None]
    line = ps.fit_snapshots(mus, mus * u(nodes.points), "linear", ranges={"a": (0, 1)}, level=None)
    kept = dict(domain=domain, outline=outline_of(domain))
    scheme = Scheme(ps.space.PHS(3), 2, 15 if domain.dimension == 2 else 25)
    return replace(line, layout=Layout(("u",), nodes.points, nodes.n_interior, scheme, **kept, **names))


@pytest.mark.parametrize(
    ("domain", "n_nodes", "u", "error"),
    [(SLIT, 400, winding, 3e-2), (CAVITY, 500, waves, 5e-2), (HOLE, 400, waves, 1e-2)],
    ids=["slit", "cavity", "periodic"],
)
def test_values_between_nodes_are_the_same_after_loading(domain, n_nodes, u, error, tmp_path):
    surrogate = surrogate_of(domain, n_nodes, u)
    again = ps.load(ps.save(surrogate, tmp_path / "model.parasol"))
    assert again.layout.domain is None
    rng = np.random.default_rng(0)
    points = rng.uniform(*domain.bounds, (2000, domain.dimension))
    distance = domain.distance(points)
    inside, outside = points[distance <= 0][:200], points[distance > 4e-3]
    values = again.restricted(points=inside)([1.0]).values
    assert np.array_equal(values, surrogate.restricted(points=inside)([1.0]).values)
    assert np.max(np.abs(values - u(inside))) < error * np.max(np.abs(u(points)))
    assert not OutlinedDomain(again.layout.outline).contains(outside).any()
    for one in (surrogate, again):
        nodes = one.layout.points
        assert np.array_equal(one.restricted(points=nodes)([0.7]).values, one([0.7]).values)
        with pytest.raises(ps.ParasolError, match="outside the domain"):
            one.restricted(points=outside[:1])


def test_a_curved_boundary_is_not_cut_off_by_its_chords(model, reduced, tmp_path):
    again = ps.load(ps.save(ps.fit(reduced, "linear", n_labels=50), tmp_path / "model.parasol"))
    assert OutlinedDomain(again.layout.outline).contains(model.nodes.points).all()
    rim = model.problem.domain.project(np.random.default_rng(1).uniform(-1, 1, (500, 2)))
    assert OutlinedDomain(again.layout.outline).contains(rim).all()


@pytest.mark.parametrize("shape", ["ball", "shell", "bracket"])
def test_an_outline_in_space_tells_inside_from_outside(shape):
    domain = {
        "ball": ps.Ball((5.0, 5.0, 5.0), 1e-3),
        "shell": ps.Ball((0, 0, 0), 1.0) - ps.Box((-0.3, -0.3, -0.3), (0.3, 0.3, 0.3)),
        "bracket": ps.Box((0, 0, 0), (1e6, 1e6, 1e6)) - ps.Box((5e5, 5e5, -1), (2e6, 2e6, 2e6)),
    }[shape]
    outline = OutlinedDomain(outline_of(domain))
    points = np.random.default_rng(2).uniform(*domain.bounds, (4000, 3))
    distance = domain.distance(points)
    assert outline.contains(points[distance <= 0]).all()
    assert not outline.contains(points[distance > 5e-3 * domain.size]).any()
    assert np.max(np.abs(np.abs(outline.distance(points)) - np.abs(distance))) < 1e-2 * domain.size


@pytest.mark.parametrize("shape", ["difference", "intersection", "union"])
def test_inside_is_exact_near_the_edges_of_a_solid(shape, tmp_path):
    """Beside an edge the nearest disc does not tell inside from outside; the file holds boxes and balls themselves."""
    box, ball = ps.Box((0, 0, 0), (1, 1, 1)), ps.Ball((0.6, 0.5, 0.5), 0.55).named("hole")
    domain = {"difference": box - ball, "intersection": box & ball, "union": box | ball}[shape]
    rng = np.random.default_rng(3)
    somewhere = rng.uniform(*domain.bounds, (2000, 3))
    mus, outline = np.linspace(0, 1, 9)[:, None], outline_of(domain)
    line = ps.fit_snapshots(mus, mus * waves(somewhere[:20]), "linear", level=None)
    line = replace(line, layout=Layout(("u",), somewhere[:20], 20, domain=domain, outline=outline))
    again = ps.load(ps.save(line, tmp_path / "solid.parasol")).layout
    assert again.domain is None
    inside = OutlinedDomain(again.outline)
    near = domain.project(somewhere)
    points = near + 10.0 ** rng.uniform(-7, -1, (2000, 1)) * rng.standard_normal((2000, 3))
    assert np.array_equal(inside.contains(points), domain.distance(points) <= 1e-9 * domain.size)
    assert inside.contains(near).all()
    assert not np.array_equal(
        OutlinedDomain(replace(outline, solid=None)).contains(points), inside.contains(points)
    )  # the discs alone


@pytest.mark.parametrize(
    "solid",
    [
        ("cone", np.zeros(3), 1.0),
        ("box", np.zeros(3)),
        ("ball", np.zeros(2), 1.0),
        ("union", 1.0, 2.0),
        ("ball", np.zeros(3), np.inf),
    ],
)
def test_a_solid_that_is_none_is_refused(solid, tmp_path):
    surrogate = surrogate_of(ps.Ball((0, 0, 0), 1.0), 200, waves)
    outline = surrogate.layout.outline
    object.__setattr__(outline, "solid", solid)
    try:
        with pytest.raises(ps.ParasolError):
            ps.load(ps.save(surrogate, tmp_path / "hostile.parasol"))
    finally:
        outline_of.cache_clear()


@pytest.fixture(scope="module")
def diffusion():
    """Heat in coordinates r, s with the time tau, on a small square."""
    r, s = ps.coordinates("r s")
    tau = ps.time("tau")
    (a,) = ps.parameters(a=(0.5, 1.0))
    u = ps.unknown("u", tau, r, s)
    problem = ps.Problem(
        domain=ps.Box((0, 0), (1, 2)),
        equation=ps.Eq(u.diff(tau), a * ps.laplacian(u, r, s)),
        boundary=ps.Dirichlet(r + 2 * s),
        initial=r + 2 * s + r * (1 - r) * s * (2 - s),
        times=np.linspace(0, 0.2, 3),
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=120), step=0.05)
    snapshots = ps.solve_many(model, model.sample(4))
    return ps.fit(snapshots, "linear", basis=ps.pod(snapshots, n_modes=3), model=model)


def test_coordinates_and_time_keep_their_names(diffusion, tmp_path):
    again = ps.load(ps.save(diffusion, tmp_path / "model.parasol"))
    for surrogate in (diffusion, again):
        assert surrogate.layout.axes == ("r", "s")
        answer = surrogate([0.7])
        header = write_answer(answer, tmp_path / "u.csv").read_text().splitlines()[0]
        assert header == "tau,r,s,u"
        many = write_answer(surrogate([[0.6], [0.7]]), tmp_path / "many.csv").read_text().splitlines()[0]
        assert many == "sample,a,tau,r,s,u"
        data = to_xarray(answer)
        assert data["u"].dims == ("tau", "node")
        assert np.array_equal(data["r"], surrogate.layout.points[:, 0])
        assert np.array_equal(data["s"], surrogate.layout.points[:, 1])


def test_axes_named_the_other_way_round(tmp_path):
    made = surrogate_of(HOLE, 150, waves, coordinates=("y", "x"))
    again = ps.load(ps.save(made, tmp_path / "model.parasol"))
    text = write_answer(again([0.5]), tmp_path / "u.csv").read_text().splitlines()
    assert text[0] == "y,x,u"
    assert [float(word) for word in text[1].split(",")[:2]] == made.layout.points[0].tolist()
    assert to_xarray(again([0.5]))["y"].values.max() > 1.5  # the longer axis is the first


def test_one_stored_time_keeps_its_column(diffusion, tmp_path):
    last = diffusion.restricted(times=[0.2])
    rows = write_answer(last([0.7]), tmp_path / "u.csv").read_text().splitlines()
    assert rows[0] == "tau,r,s,u"
    assert float(rows[1].split(",")[0]) == 0.2
    moment = ps.load(ps.save(last, tmp_path / "model.parasol"))([[0.6], [0.7]])
    assert write_answer(moment, tmp_path / "many.csv").read_text().startswith("sample,a,tau,r,s,u\n0,")
    with np.load(write_answer(last([0.7]), tmp_path / "u.npz")) as arrays:
        assert arrays["times"].tolist() == [0.2]
        assert arrays["u"].shape == (1, 120)
    assert to_xarray(last([0.7])).sizes["tau"] == 1


def test_names_of_earlier_files(tmp_path):
    """A file without names of coordinates and time has x, y and t, and is the file an earlier version would write."""
    made = surrogate_of(SLIT, 150, winding)
    path = ps.save(made, tmp_path / "model.parasol")
    assert b'"coordinates"' not in path.read_bytes()
    assert ps.load(path).layout.axes == AXES[:2]
    with pytest.raises(ps.ParasolError, match="coordinates"):
        replace(made.layout, coordinates=("x", "x"))


def test_points_from_a_file_are_found_by_the_names_of_the_coordinates(diffusion, tmp_path):
    from parasol.cli.predict import _restricted

    (tmp_path / "sensors.csv").write_text("s,r\n1.5,0.25\n0.5,0.75\n")
    there = _restricted(diffusion, str(tmp_path / "sensors.csv"), None)
    assert there.layout.points.tolist() == [[0.25, 1.5], [0.75, 0.5]]
    (tmp_path / "wrong.csv").write_text("x,y\n0.25,1.5\n")
    with pytest.raises(ps.ParasolError, match="no column 'r'"):
        _restricted(diffusion, str(tmp_path / "wrong.csv"), None)
    assert "(r, s), at 3 times tau" in SurrogateReport(diffusion).rows()["answers"]


def test_names_that_differ_by_a_mark_do_not_overwrite_each_other(tmp_path):
    mus = np.linspace(0, 1, 30)[:, None]
    data = np.hstack([1 + mus * np.ones(5), 10 + mus * np.arange(5), 100 + mus * np.arange(5)])
    rows = {"p/q": np.eye(15)[0], "p per q": np.eye(15)[-1]}
    line = ps.fit_snapshots(mus, data, "linear", level=None, ranges={"a": (0, 1)}, quantities=rows)
    places = np.random.default_rng(0).random((5, 2))
    answer = replace(line, layout=Layout(("mus_", "mus", "node"), places))([[0.2], [0.3]])
    held = np.load(write_answer(answer, tmp_path / "u.npz"))
    for name, start in (("mus_", 0), ("mus__", 5), ("node", 10)):
        assert np.array_equal(held[name], answer.values[:, start : start + 5])
    assert np.array_equal(held["quantity: p per q"], answer.quantities["p/q"])
    assert np.array_equal(held["quantity: p per q_"], answer.quantities["p per q"])
    known = to_xarray(replace(line, layout=Layout(("node_", "node", "q"), places))([[0.2], [0.3]]))
    assert [name for name in ("node_", "node__", "q") if name in known] == ["node_", "node__", "q"]
