"""Domains: distances, normals, parts and combinations against formulas and brute force."""

import pickle
from functools import cache

import numpy as np
import pytest
import sympy
from scipy.spatial import KDTree

from parasol.checks import ParasolError
from parasol.space.geometry.curves import Curve, Star
from parasol.space.geometry.implicit import Implicit
from parasol.space.geometry.polygon import Polygon, area, nearest_on_segments
from parasol.space.geometry.primitives import Ball, Box, Disc

FLOWER = "0.8 + 0.1*(sin(6*theta) + sin(3*theta))"
ELLIPSE = "x**2/4 + y**2 - 1"
TORUS = "(sqrt(x**2 + y**2) - 1)**2 + z**2 - 0.16"


def ellipse_points(count):
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([2 * np.cos(angle), np.sin(angle)], axis=1)


def sieve(holes=6):
    """A box with holes, some of which overlap or reach over its rim."""
    domain = Box((-1, -1), (1, 1))
    for k in range(holes):
        domain = domain - Disc((0.35 * k - 0.9, 0.5 * (-1) ** (k // 2)), 0.25)
    return domain


DOMAINS = {
    "interval": lambda: Box(0, 2),
    "rectangle": lambda: Box((0, 0), (2, 1)),
    "channel": lambda: Box((0, 0), (2, 1), periodic=("x",)),
    "cuboid": lambda: Box((0, 0, 0), (1, 2, 3)),
    "disc": lambda: Disc((0.3, 0.1), 0.7),
    "ball": lambda: Ball((0.1, 0.2, 0.3), 1.1),
    "flower": lambda: Star(FLOWER, center=(0.1, -0.2)),
    "curve": lambda: Curve(ellipse_points(40)),
    "polygon": lambda: Polygon([(0, 0), (2, 0), (2, 1), (1, 0.3), (0, 1)]),
    "ellipse": lambda: Implicit(ELLIPSE, ((-2, -1), (2, 1))),
    "callable": lambda: Implicit(lambda p: np.hypot(p[:, 0], p[:, 1]) ** 4 - 1, ((-1.2, -1.2), (1.2, 1.2))),
    "torus": lambda: Implicit(TORUS, ((-1.5, -1.5, -0.5), (1.5, 1.5, 0.5))),
    "plate": lambda: Box((-1, -1), (1, 1)) - Disc(radius=0.5),
    "lens": lambda: Disc((-0.5, 0)) & Disc((0.5, 0)),
    "two": lambda: Disc((-0.5, 0)) | Disc((0.5, 0)),
    "bitten": lambda: Star(FLOWER) - Polygon([(0, 0), (2, 0), (2, 2)]),
    "sieve": sieve,
    "die": lambda: Box((-1, -1, -1), (1, 1, 1)) - Ball((0, 0, 0), 1.2),
}


PLANE = [
    "rectangle",
    "disc",
    "flower",
    "curve",
    "polygon",
    "ellipse",
    "callable",
    "plate",
    "lens",
    "two",
    "bitten",
    "sieve",
]


@cache
def make(name):
    return DOMAINS[name]()


@pytest.fixture(params=DOMAINS)
def domain(request):
    return make(request.param)


def around(domain, count, seed=0):
    lower, upper = domain.bounds
    return np.random.default_rng(seed).uniform(lower - 0.4, upper + 0.4, (count, domain.dimension))


def segments(domain):
    return [np.concatenate(ends) for ends in zip(*[arc.segments for arc in domain.arcs()], strict=True)]


def test_every_domain_is_consistent(domain):
    points = around(domain, 200)
    distance, foot, normal = domain.distance(points), domain.project(points), domain.normal(points)
    assert np.array_equal(distance <= 0, domain.contains(points))
    np.testing.assert_allclose(np.linalg.norm(points - foot, axis=1), np.abs(distance), atol=1e-12)
    assert np.abs(domain.distance(foot)).max() < 1e-11
    assert domain.contains(foot).all()
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-12)
    parts = domain.parts(foot)
    assert parts.shape == (200, len(domain.part_names))
    assert parts.any(axis=1).all()


@pytest.mark.parametrize("name", ["channel", "flower", "curve", "ellipse", "lens"])
def test_domains_travel_between_processes(name):
    domain = make(name)
    points = around(domain, 20)
    expected = domain.distance(points)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(domain)).distance(points), expected)


def test_distance_grows_along_the_outward_normal(domain):
    points = around(domain, 80, seed=1)
    foot = domain.project(points)
    normal = domain.normal(foot)
    step = 1e-6
    slope = (domain.distance(foot + step * normal) - domain.distance(foot - step * normal)) / (2 * step)
    # in a corner one of the two sides is nearer; everywhere else the slope is one
    corner = domain.parts(foot).sum(axis=1) > 1
    gradient = [
        (domain.distance(foot + step * e) - domain.distance(foot - step * e)) / (2 * step)
        for e in np.eye(foot.shape[1])
    ]
    smooth = ~corner & (np.abs(np.linalg.norm(gradient, axis=0) - 1) < 1e-6)
    assert smooth.mean() > 0.25
    np.testing.assert_allclose(slope[smooth], 1, atol=1e-6)
    np.testing.assert_allclose(np.transpose(gradient)[smooth], normal[smooth], atol=2e-5)


@pytest.mark.parametrize("name", PLANE)
def test_plane_distances_against_the_polyline(name):
    domain = make(name)
    points = around(domain, 500, seed=2)
    start, end = segments(domain)
    brute = np.linalg.norm(nearest_on_segments(points, start, end)[0] - points, axis=1)
    np.testing.assert_allclose(np.abs(domain.distance(points)), brute, atol=2e-6)
    assert np.abs(domain.distance(np.concatenate([arc.points for arc in domain.arcs()]))).max() < 1e-11


@pytest.mark.parametrize("name", ["cuboid", "ball", "torus", "die"])
def test_cloud_is_dense_and_on_the_boundary(name):
    domain, spacing = make(name), 0.3
    cloud = domain.boundary_cloud(spacing, np.random.default_rng(0))
    assert np.abs(domain.distance(cloud)).max() < 1e-10
    tree = KDTree(cloud)
    assert tree.query(cloud, k=2)[0][:, 1].max() <= spacing / 4 * (1 + 1e-9)
    points = around(domain, 500, seed=3)
    assert tree.query(domain.project(points))[0].max() <= spacing / 4
    # no point of the boundary is nearer than the distance says
    assert (np.abs(domain.distance(points)) <= tree.query(points)[0] + 1e-12).all()


@pytest.mark.parametrize("name", ["rectangle", "disc", "flower", "curve", "polygon", "plate"])
def test_far_points_are_far_and_those_beyond_numbers_are_refused(name):
    domain = DOMAINS[name]()
    far = np.array([[1e100, -1e100], [0.0, 1e149]])
    assert np.allclose(domain.distance(far), [np.sqrt(2) * 1e100, 1e149], rtol=1e-12)
    assert not domain.contains(far).any()
    for ask in (domain.distance, domain.contains, domain.project, domain.normal):
        with pytest.raises(ParasolError, match=r"coordinate 1e\+300, too far off"):
            ask([[0.0, 0.0], [-1e300, 1.0]])


def test_flower_measures():
    flower = Star(FLOWER)
    assert flower.perimeter() == pytest.approx(5.805614, abs=5e-7)
    assert flower.arcs()[0].length == pytest.approx(5.805614, abs=5e-6)
    assert flower.volume() == pytest.approx(0.65 * np.pi, rel=1e-12)


def test_star_of_text_expression_and_function_agree():
    angle = sympy.Symbol("phi")
    stars = [
        Star(FLOWER),
        Star(0.8 + 0.1 * (sympy.sin(6 * angle) + sympy.sin(3 * angle))),
        Star(lambda t: 0.8 + 0.1 * (np.sin(6 * t) + np.sin(3 * t))),
    ]
    points = around(stars[0], 2000)
    for star in stars[1:]:
        np.testing.assert_allclose(star.distance(points), stars[0].distance(points), atol=1e-13)
        np.testing.assert_allclose(star.normal(points), stars[0].normal(points), atol=1e-7)


def test_star_distance_is_exact_for_a_displaced_circle():
    # the circle of radius 1 seen from (0.3, 0), an interior point that is not its center
    star = Star("sqrt(1 - 0.09*sin(theta)**2) - 0.3*cos(theta)", center=(0.3, 0))
    points = around(star, 3000)
    np.testing.assert_allclose(star.distance(points), np.linalg.norm(points, axis=1) - 1, atol=1e-13)


@pytest.mark.parametrize("gap", [3e-6, -3e-6], ids=["two", "one"])
def test_saddles_of_a_level_set_join_what_belongs_together(gap):
    """A lemniscate across the diagonal, with its saddle inside a cell: two drops, or one body with a waist of 5e-3."""
    domain = Implicit(f"(x**2 + y**2)**2 - 2*x*y + {gap}", ((-1.213, -1.2017), (1.2, 1.2)))
    assert len(domain.arcs()) == (2 if gap > 0 else 1)
    square = np.sin(2 * np.linspace(0, 2 * np.pi, 400_001))
    root = np.sqrt(np.maximum(square**2 - 4 * gap, 0))
    far, near = (np.maximum(square + sign * root, 0) / 2 for sign in (1, -1))
    exact = 2 * np.pi * np.mean((far - near)[:-1]) / 2
    assert sum(abs(area(arc.points)) for arc in domain.arcs()) == pytest.approx(exact, rel=1e-5)


def test_implicit_distances_by_formula():
    torus = make("torus")
    points = around(torus, 2000)
    exact = np.hypot(np.hypot(points[:, 0], points[:, 1]) - 1, points[:, 2]) - 0.4
    np.testing.assert_allclose(torus.distance(points), exact, atol=1e-12)
    assert torus.volume() == pytest.approx(2 * np.pi**2 * 0.16, rel=5e-3)
    ring = Implicit(lambda p: (np.hypot(p[:, 0], p[:, 1]) - 1) ** 2 - 0.09, ((-1.5, -1.5), (1.5, 1.5)))
    assert sorted(round(arc.length / np.pi, 4) for arc in ring.arcs()) == [1.4, 2.6]
    points = around(ring, 2000)
    np.testing.assert_allclose(ring.distance(points), np.abs(np.hypot(*points.T) - 1) - 0.3, atol=1e-12)
    assert Implicit("x**2 - 1", (-2, 2)).boundary_cloud(1, np.random.default_rng(0)).ravel().tolist() == pytest.approx(
        [-1, 1]
    )


def test_curve_through_points_of_an_ellipse():
    curve = Curve(ellipse_points(200)[::-1])
    assert curve.volume() == pytest.approx(2 * np.pi, rel=1e-6)
    points = around(curve, 500)
    ellipse = make("ellipse")
    np.testing.assert_allclose(curve.distance(points), ellipse.distance(points), atol=1e-6)


def test_polygon_does_not_mind_its_direction():
    vertices = np.array([(0, 0), (2, 0), (2, 1), (1, 0.3), (0, 1)])
    one, other = Polygon(vertices), Polygon(vertices[::-1])
    points = around(one, 500)
    np.testing.assert_allclose(one.distance(points), other.distance(points), atol=1e-14)
    assert one.volume() == pytest.approx(1.3)
    assert len(one.arcs()) == 5


def test_box_parts_and_corner_normals():
    box = Box((0, 0), (2, 1))
    corners = [[0, 0], [2, 0], [1, 1], [2, 1]]
    assert box.part_names == ("left", "right", "bottom", "top")
    assert box.parts(corners).astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 0, 1]]
    assert box.normal(corners).tolist() == [[-1, 0], [1, 0], [0, 1], [1, 0]]


def test_periodic_box():
    channel = Box((0, 0), (2, 1), periodic=(0,))
    assert channel.part_names == ("bottom", "top")
    assert channel.periods.tolist() == [2, 0]
    assert channel.contains([[17.0, 0.5], [0.0, 1.5]]).tolist() == [True, False]
    np.testing.assert_allclose(channel.distance([[0.0, 0.4], [5.0, 2.0]]), [-0.4, 1.0])
    assert len(channel.arcs()) == 2
    torus = Box((0, 0), (1, 1), periodic="xy")
    assert torus.part_names == ()
    assert torus.distance([[0.0, 0.0]]).tolist() == [-np.inf]
    with pytest.raises(ParasolError, match="no boundary"):
        torus.project([[0.0, 0.0]])


def test_hole_in_a_periodic_box():
    cell = Box((0, 0), (1, 1), periodic="xy") - Disc((0.2, 0.5), 0.2)
    np.testing.assert_allclose(cell.distance([[0.95, 0.5], [0.2, 0.5], [3.2, 1.0]]), [-0.05, 0.2, -0.3])
    np.testing.assert_allclose(cell.normal([[0.95, 0.5]]), [[1, 0]], atol=1e-12)
    assert cell.volume() == pytest.approx(1 - 0.04 * np.pi)
    with pytest.raises(ParasolError, match="periodic box combines only"):
        Box((0, 0), (1, 1), periodic="x") | Disc()


def test_corners_of_combinations_are_exact():
    lens = Disc((-0.5, 0)) & Disc((0.5, 0))
    tip = np.sqrt(0.75)
    for arc in lens.arcs():
        ends = arc.points[[0, -1]][np.argsort(arc.points[[0, -1], 1])]
        np.testing.assert_allclose(ends, [[0, -tip], [0, tip]], atol=1e-12)
    np.testing.assert_allclose(lens.distance([[0, 2.0], [0, 0]]), [2 - tip, -0.5], atol=1e-12)
    bite = Box((-1, -1), (1, 1)) - Disc((1, 1), 0.5)
    ends = np.concatenate([arc.points[[0, -1]] for arc in bite.arcs()])
    for corner in [(0.5, 1), (1, 0.5), (-1, 1), (1, -1)]:
        assert np.sum(np.abs(ends - corner).max(axis=1) < 1e-12) == 2
    assert bite.volume() == pytest.approx(4 - np.pi / 16, rel=5e-3)


def test_boxes_that_share_faces():
    shape = Box((0, 0), (2, 1)) | Box((0, 0), (1, 2))
    assert len(shape.arcs()) == 6
    assert sum(arc.length for arc in shape.arcs()) == pytest.approx(8)
    # (0, 1) is a corner of the first box but lies within the long left side of the union
    assert shape.parts([[0, 1], [1, 1], [1, 0]]).astype(int).tolist() == [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    np.testing.assert_allclose(shape.distance([[0.5, 0.5], [1.5, 1.5], [1.0, 1.0]]), [-0.5, 0.5, 0], atol=1e-12)
    row = Box((0, 0), (1, 1)) | Box((1, 0), (2, 1))
    np.testing.assert_allclose(row.distance([[1.0, 0.5], [1.0, -0.5]]), [-0.5, 0.5], atol=1e-12)
    half = Box((0, 0), (1, 1)) - Box((0.5, 0), (1, 1))
    assert sum(arc.length for arc in half.arcs()) == pytest.approx(3)


def test_nested_combination_and_inherited_parts():
    plate = (Box((-2, -1), (2, 1)) - Disc((-1, 0), 0.5).named("hole")) - Disc((1, 0), 0.5).named("hole")
    assert plate.part_names == ("left", "right", "bottom", "top", "hole")
    parts = plate.parts([[-0.5, 0], [0.5, 0], [2, 0]])
    assert parts.argmax(axis=1).tolist() == [4, 4, 1]
    np.testing.assert_allclose(plate.normal([[-0.5, 0], [0.5, 0]]), [[-1, 0], [1, 0]], atol=1e-12)
    assert plate.volume() == pytest.approx(8 - np.pi / 2)


def test_chains_ask_each_member_a_bounded_number_of_times(monkeypatch):
    asked = []
    plain = Ball.distance

    def counting(self, points):
        asked.append(len(points))
        return plain(self, points)

    monkeypatch.setattr(Ball, "distance", counting)

    def per_hole(holes):
        domain = sieve(holes)
        points = around(domain, 1000)
        domain.project(points)  # tables are made here
        asked.clear()
        for ask in (domain.distance, domain.normal, domain.parts):
            ask(points)
        return sum(asked) / holes

    # a level that asked the one below even twice would make this 8
    assert per_hole(6) < 2.5 * per_hole(3)


def test_chains_are_the_same_in_any_order_and_grouping():
    a, b, c, d = Box((0, 0), (2, 1)), Disc((0.4, 0.4), 0.3), Disc((0.9, 0.6), 0.4), Disc((2, 0), 0.5)
    points = around(a, 1000)
    expected = (a - b - c - d).distance(points)
    for same in (a - d - c - b, a - (b | c | d), (a - b) & (a - c) & (a - d), a & (a - (d | b) - c)):
        np.testing.assert_allclose(same.distance(points), expected, atol=1e-10)
    mixed = ((a | d) - b) | c
    inside = mixed.contains(points)
    assert np.array_equal(
        inside, ((a.contains(points) | d.contains(points)) & ~b.contains(points)) | c.contains(points)
    )


def test_solid_with_several_holes():
    # two balls that overlap each other and reach over the top face
    block = Box((-1, -1, -1), (1, 1, 1)) - Ball((-0.3, 0, 1), 0.5) - Ball((0.3, 0, 1), 0.5)
    # both spheres meet in a half circle of radius 0.4 around (0, 0, 1) in the plane x = 0
    np.testing.assert_allclose(block.distance([[0, 0, 0.8], [0, 0, 0.7]]), [0.2, 0.1], atol=1e-9)
    points = around(block, 300)
    cloud = KDTree(block.boundary_cloud(0.1, np.random.default_rng(0)))
    np.testing.assert_allclose(np.abs(block.distance(points)), cloud.query(points)[0], atol=0.01)


def test_a_hole_around_a_hole_has_no_simple_volume():
    ring = Disc() - Disc(radius=0.3)
    assert (ring - Disc(radius=0.5)).volume() == pytest.approx(0.75 * np.pi, rel=5e-3)


def test_union_on_a_line():
    line = Box(0, 1) | Ball(1, 0.5) | Box(2, 3)
    assert sorted(line.boundary_cloud(1, np.random.default_rng(0)).ravel()) == [0, 1.5, 2, 3]
    np.testing.assert_allclose(line.distance([[0.7], [1.2], [1.8], [4]]), [-0.7, -0.3, 0.2, 1])


def test_edges_of_a_solid_combination():
    die = make("die")
    # the ball of radius 1.2 meets the face z = 1 in a circle; the point on the axis above is nearest to that circle
    rim = np.sqrt(1.2**2 - 1)
    np.testing.assert_allclose(die.distance([[0, 0, 1.0], [0.01, 0, 1.5]]), [rim, np.hypot(rim - 0.01, 0.5)], atol=1e-9)


@pytest.mark.parametrize("given", ["y <= 0", sympy.Symbol("y", real=True) <= 0, lambda p: p[:, 1] <= 1e-9])
def test_named_side_owns_its_corner_and_normal(given):
    square = Box((0, 0), (1, 1)).named(floor=given)
    assert square.part_names == ("floor", "left", "right", "bottom", "top")
    assert square.parts([[0, 0], [0.5, 0], [0, 1]]).astype(int).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 1],
    ]
    # the plain square would give the left side's normal
    assert square.normal([[0, 0]]).tolist() == [[0, -1]]


def test_naming_composes():
    x, y = sympy.symbols("x y", real=True)
    triangle = (
        Polygon([(0, 0), (4, 0), (0, 3)]).named("wall").named(inlet=sympy.Eq(x, 0), probe=(y <= 0) & (x > 1) & (x < 2))
    )
    assert triangle.part_names == ("inlet", "probe", "wall")
    points = [[0, 1], [1.5, 0], [3, 0], [0, 0]]
    assert triangle.parts(points).astype(int).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]
    np.testing.assert_allclose(triangle.normal([[0, 0]]), [[-1, 0]], atol=1e-12)
    cuboid = Box((0, 0, 0), (1, 1, 1)).named("shell").named(lid="z >= 1")
    assert cuboid.parts([[0, 0.5, 1], [0.5, 0.5, 1], [0.5, 0.5, 0]]).astype(int).tolist() == [[1, 1], [1, 0], [0, 1]]
    assert cuboid.normal([[0, 0.5, 1]]).tolist() == [[0, 0, 1]]


def test_surface_round_trip(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("igl")
    from parasol.space.geometry.surface import Surface

    mesh = trimesh.creation.icosphere(subdivisions=3)
    mesh.export(tmp_path / "ball.stl")
    mesh.export(tmp_path / "ball.obj")
    points = np.random.default_rng(0).uniform(-1.5, 1.5, (1000, 3))
    exact = np.linalg.norm(points, axis=1) - 1
    for name in ("ball.stl", "ball.obj"):
        ball = Surface(tmp_path / name)
        assert ball.volume() == pytest.approx(4 / 3 * np.pi, rel=0.01)
        assert np.abs(ball.distance(points) - exact).max() < 6e-3
        assert np.array_equal(ball.contains(points), ball.distance(points) <= 0)
        foot = ball.project(points)
        assert np.sum(foot * ball.normal(points), axis=1).min() > 0.99
        cloud = ball.boundary_cloud(0.2, np.random.default_rng(0))
        assert np.abs(ball.distance(cloud)).max() < 1e-12
        assert KDTree(cloud).query(foot)[0].max() <= 0.05
    cube = Surface(trimesh.creation.box())
    points = 0.6 * points
    np.testing.assert_allclose(cube.distance(points), Box((-0.5,) * 3, (0.5,) * 3).distance(points), atol=1e-12)
    inside_out = Surface((mesh.vertices, mesh.faces[:, ::-1]))
    assert inside_out.contains([[0, 0, 0]]).all()
    (tmp_path / "broken.stl").write_text("hello")
    torn = mesh.copy()
    torn.update_faces(np.arange(len(torn.faces)) > 3)
    whole = (tmp_path / "ball.stl").read_bytes()
    (tmp_path / "short.stl").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "noise.stl").write_bytes(np.random.default_rng(0).bytes(5000))
    for bad, says in [
        (tmp_path / "broken.stl", "not a readable STL or OBJ|no triangles"),
        (tmp_path / "short.stl", "not a readable STL or OBJ|no triangles"),
        (tmp_path / "noise.stl", "not a readable STL or OBJ|no triangles"),
        (tmp_path / "missing.stl", "no file"),
        (torn, "not a closed surface"),
        (3, "cannot be made"),
    ]:
        with pytest.raises(ParasolError, match=says):
            Surface(bad)


def test_surface_without_the_extra(monkeypatch):
    import sys

    from parasol.space.geometry.surface import Surface

    monkeypatch.setitem(sys.modules, "igl", None)
    with pytest.raises(ParasolError, match=r"pip install 'parasol-pde\[geometry\]'"):
        Surface("ball.stl")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Box((0, 0), (1, 0)), "not below"),
        (lambda: Box((0, 0), (1, 1, 1)), "as many"),
        (lambda: Box((0, np.nan), (1, 1)), "NaN"),
        (lambda: Box((0,) * 4, (1,) * 4), "Use 1, 2 or 3"),
        (lambda: Box((0, 0), (1, 1), periodic=("z",)), "unknown"),
        (lambda: Box((0, 0), (1, 1), periodic=None), "names no axes"),  # type: ignore[arg-type]
        (lambda: Ball((0, 0), 0.0), "positive"),
        (lambda: Disc().distance([[0, 0, 0]]), "shape"),
        (lambda: Disc().distance([[0, np.inf]]), "infinite"),
        (lambda: Disc().boundary_cloud(0.1, np.random.default_rng(0)), "arcs"),
        (lambda: Ball((0, 0, 0), 1).arcs(), "plane"),
        (lambda: Star("0.1 + sin(theta)"), "positive number"),
        (lambda: Star("2 + sin(theta/2)"), "repeat"),
        (lambda: Star("1 + phi"), "unknown name"),
        (lambda: Star("1/0"), "not finite"),
        (lambda: Star("1 + 1e999"), "not finite"),
        (lambda: Star("theta**10**400"), "power above 100"),
        (lambda: Star("1" + "+ cos(theta)" * 5000), "too long"),
        (lambda: Star("2 + sqrt(-1)*cos(theta)"), "complex"),
        (lambda: Polygon([(0, 0), (1, 0)]), "at least 3"),
        (lambda: Polygon([(0, 0), (1, 1), (2, 2)]), "no area"),
        (lambda: Polygon([(0, 0), (3, 1), (3, 0), (0, 2)]), "crosses"),
        (lambda: Curve([(0, 0), (3, 1), (3, 0), (0, 2)]), "crosses"),
        (lambda: Implicit("x**2 + y**2 + 1", ((-1, -1), (1, 1))), "no interior"),
        (lambda: Implicit("x**2 + y**2 - 1", ((-1, -1), (0.5, 1))).volume(), "beyond the bounds"),
        (lambda: Implicit("x + t", ((-1, -1), (0.5, 1))), "unknown name"),
        (lambda: Disc() & Disc((5, 0)), "no interior"),
        (lambda: Disc() - Disc(), "no interior"),
        (lambda: Box((0, 0), (1, 1)) & Box((1, 0), (2, 1)), "no interior"),
        (lambda: Disc() | Ball((0, 0, 0), 1), "dimension"),
        (lambda: Disc().named(), "named"),
        (lambda: Disc().named(a="z < 0"), "unknown name"),
        (lambda: Disc().named(a=True), "names no place"),
    ],
)
def test_wrong_input_says_what_to_do(make, says):
    with pytest.raises(ParasolError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_conditions_on_parts_have_no_units(scale, offset):
    x, y = sympy.symbols("x y", real=True)
    angle = 2 * np.pi * (np.arange(360) + 0.5) / 360
    a, b = np.cos(angle), np.sin(angle)
    if offset:
        x, y, scale = x - offset, y - offset, 1.0
    disc = Ball((offset, offset), scale).named(
        product=x * y > 0.2 * scale**2,
        turn=sympy.And(sympy.atan2(y, x) > 1, sympy.Not(x * y > 0.2 * scale**2)),
        ratio=sympy.Or(y / x < -3, x**3 <= -0.9 * scale**3),
        other=sympy.Ne(sympy.sign(x), 1),
    )
    found = disc.parts(offset + scale * np.stack([a, b], axis=1))
    turn = (np.arctan2(b, a) > 1) & (a * b <= 0.2)
    wanted = [a * b > 0.2, turn, (b / a < -3) | (a**3 <= -0.9), a < 0]
    assert np.array_equal(found[:, :4], np.stack(wanted, axis=1))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e9])
def test_rounding_decides_no_condition(scale):
    x, y = sympy.symbols("x y", real=True)
    s = sympy.Float(scale)
    place = np.array([[scale, 0.3 * scale]]) * (1 + np.array([[-4e-16], [0.0], [4e-16]]))
    domain = Ball((0.0, 0.0), 2 * scale)
    for holds in (x <= s, x >= s, sympy.Eq(x, s), x * y >= 0.3 * s**2, x**2 <= s**2, sympy.exp(x / s) >= sympy.E):
        test = domain.named(part=holds)._tests[0]
        assert test(place).all(), holds
        assert not domain.named(part=sympy.Not(holds))._tests[0](place).any(), holds
    far = place + 1e-6 * scale
    assert not domain.named(part=x <= s)._tests[0](far).any()
    assert domain.named(part=x > s)._tests[0](far).all()
    # beside the cut of the angle, and where a formula has no value on one side
    cut = np.array([[-1.0, 0.0], [-1.0, 1e-17], [-1.0, -1e-17]]) * scale
    assert domain.named(part=sympy.Abs(sympy.atan2(y, x)) > 3)._tests[0](cut).all()
    assert domain.named(part=sympy.sqrt(1 - (x / s) ** 2) <= 1e-3)._tests[0](np.array([[scale, 0.0]])).all()


def test_the_nearest_side_of_a_polygon_has_no_units():
    corners = np.array([(0, 0), (4, 0), (4, 3), (1, 5), (0, 3)], dtype=float)
    points = np.random.default_rng(0).uniform(-3, 8, (500, 2))
    for scale in (1e-9, 1e12):
        feet = Polygon(scale * corners).project(scale * points) / scale
        np.testing.assert_allclose(feet, Polygon(corners).project(points), atol=1e-11)
