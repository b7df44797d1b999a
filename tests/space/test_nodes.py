import time
import warnings

import numpy as np
import pytest
from scipy.spatial import KDTree

from parasol.checks import ParasolError, ParasolWarning
from parasol.space.fill import fibonacci, fill, independent
from parasol.space.front import front
from parasol.space.geometry.curves import Star
from parasol.space.geometry.domain import Domain
from parasol.space.geometry.polygon import Polygon
from parasol.space.geometry.primitives import Ball, Box, Disc
from parasol.space.node_quality import measure, quality
from parasol.space.nodes import ghosts, lattice, scatter
from parasol.space.relax import relax, repel, trim
from parasol.space.wrap import Depth, Wrap

FLOWER = Star("0.8 + 0.1*(sin(6*theta) + sin(3*theta))")
PERIMETER = 5.805614  # of the flower
SQUARE = Box((0.0, 0.0), (1.0, 1.0))
BALL = Ball((0.0, 0.0, 0.0), 1.0)
CUBE = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def nearest(points):
    return KDTree(points).query(points, 2)[0][:, 1]


# ---- counts --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["front", "fill"])
def test_paper_flower_has_859_interior_and_177_boundary_nodes(method):
    nodes = scatter(FLOWER, n_nodes=1036, n_boundary=177, method=method, rng=0)
    assert (nodes.n_interior, nodes.n_boundary) == (859, 177)
    assert (FLOWER.distance(nodes.interior) < 0).all()
    assert np.abs(FLOWER.distance(nodes.boundary)).max() < 1e-12
    assert nearest(nodes.points).min() > 0.75 * PERIMETER / 177
    # slightly clustering toward the boundary: the paper's grade is about 0.070
    depth = -FLOWER.distance(nodes.interior)
    grade = np.polyfit(depth, nodes.spacing[: nodes.n_interior], 1)[0]
    assert 0.055 < grade < 0.080


def test_flower_front_with_given_grade():
    for seed in range(3):
        nodes = scatter(FLOWER, spacing=PERIMETER / 177, grade=0.070, method="front", rng=seed)
        assert nodes.n_boundary == 177
        assert abs(nodes.n_interior - 857) <= 15
        assert nearest(nodes.points).min() >= 0.75 * PERIMETER / 177


def test_paper_ball_has_1691_interior_and_585_boundary_nodes():
    nodes = scatter(BALL, n_nodes=2276, n_boundary=585, rng=0)
    assert (nodes.n_interior, nodes.n_boundary) == (1691, 585)
    assert np.abs(np.linalg.norm(nodes.boundary, axis=1) - 1).max() < 1e-15
    assert np.abs(nodes.normals - nodes.boundary).max() < 1e-15
    assert np.linalg.norm(nodes.normals.sum(axis=0)) < 1.0
    # plain Fibonacci points are 0.1278 apart at least
    assert nearest(nodes.boundary).min() > 0.135
    assert (np.linalg.norm(nodes.interior, axis=1) < 1 - 0.5 * nodes.spacing[: nodes.n_interior] + 1e-12).all()


@pytest.mark.parametrize("method", ["fill", "front", "hexagonal"])
@pytest.mark.parametrize("n", [40, 333, 2000])
def test_count_is_exact_in_the_plane(method, n):
    assert scatter(FLOWER, n_nodes=n, method=method, rng=2).n_nodes == n


@pytest.mark.parametrize("domain", [BALL, CUBE, Box((0, 0, 0), (1, 2, 1), ("x", "z"))])
@pytest.mark.parametrize("method", ["fill", "hexagonal"])
def test_count_is_exact_in_space(domain, method):
    assert scatter(domain, n_nodes=1500, method=method, rng=2).n_nodes == 1500


def test_boundary_count_is_exact_on_a_cube():
    nodes = scatter(CUBE, n_nodes=1500, n_boundary=600, rng=0)
    assert (nodes.n_interior, nodes.n_boundary) == (900, 600)


# ---- evenness ------------------------------------------------------------------------------------------------------
def test_front_density_and_separation():
    h = 0.05
    points = front(SQUARE.bounds, h, rng=np.random.default_rng(0))
    assert 0.88 <= len(points) * h**2 <= 0.95
    away_from_edges = (np.minimum(points, 1 - points) > 2 * h).all(axis=1)
    assert nearest(points)[away_from_edges].min() >= 0.95 * h


@pytest.mark.parametrize(("domain", "h"), [(SQUARE, 0.03), (BALL, 0.15), (CUBE, 0.12)])
def test_fill_keeps_its_distance_and_leaves_no_hole(domain, h):
    nodes = scatter(domain, spacing=h, relax=0)
    both = KDTree(nodes.points).query(nodes.interior, 2)[0][:, 1]
    assert both.min() >= h * (1 - 1e-9)
    test_points = np.random.default_rng(1).uniform(*domain.bounds, size=(20_000, domain.dimension))
    test_points = test_points[domain.contains(test_points)]
    assert KDTree(nodes.points).query(test_points)[0].max() < 1.3 * h


@pytest.mark.parametrize(("domain", "floor"), [(SQUARE, 0.50), (FLOWER, 0.48), (BALL, 0.43), (CUBE, 0.42)])
def test_relaxation_improves_the_ratio(domain, floor):
    rough = quality(scatter(domain, n_nodes=1500, relax=0, rng=3))
    smooth = quality(scatter(domain, n_nodes=1500, rng=3))
    assert smooth.ratio > max(floor, rough.ratio)
    assert smooth.separation > 0.85


def test_function_spacing_is_followed():
    nodes = scatter(SQUARE, n_nodes=2000, spacing=lambda p: 0.1 + p[:, 0], rng=0)
    assert nodes.n_nodes == 2000
    assert nodes.spacing[np.argmax(nodes.points[:, 0])] == pytest.approx(
        11 * nodes.spacing[np.argmin(nodes.points[:, 0])]
    )
    relative = nearest(nodes.points) / nodes.spacing
    assert relative.min() > 0.7
    assert relative.max() < 1.5


def test_quality_of_known_lattices():
    torus = Box((0, 0), (1, 1), ("x", "y"))
    square_lattice = lattice(torus, (10, 10))
    q = quality(square_lattice)
    assert q.separation_distance == pytest.approx(0.1)
    assert q.largest_hole == pytest.approx(0.1 / np.sqrt(2))
    assert q.ratio == pytest.approx(1 / np.sqrt(2))
    hexagons = Box((0, 0), (1, np.sqrt(3)), ("x", "y"))
    i = np.stack([g.ravel() for g in np.meshgrid(np.arange(10), np.arange(10))], axis=1) * [0.1, 0.1 * np.sqrt(3)]
    points = np.concatenate([i, i + np.array([0.05, 0.05 * np.sqrt(3)])])
    assert measure(points, np.full(200, 0.1), hexagons).ratio == pytest.approx(np.sqrt(3) / 2)


def test_a_hole_in_the_nodes_is_seen():
    nodes = scatter(SQUARE, spacing=0.05)
    holed = nodes.points[np.linalg.norm(nodes.points - 0.5, axis=1) > 0.2]
    assert measure(holed, np.full(len(holed), 0.05), SQUARE).fill_distance > 0.2 / 0.05


# ---- randomness ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["fill", "front", "hexagonal"])
def test_same_seed_same_bytes(method):
    one, two = (scatter(FLOWER, n_nodes=500, method=method, rng=7) for _ in range(2))
    assert one.points.tobytes() == two.points.tobytes()
    generator = scatter(FLOWER, n_nodes=500, method=method, rng=np.random.default_rng(7))
    assert one.points.tobytes() == generator.points.tobytes()
    assert one.points.tobytes() != scatter(FLOWER, n_nodes=500, method=method, rng=8).points.tobytes()


# ---- pushing -------------------------------------------------------------------------------------------------------
def test_repel_moves_only_nodes_next_to_the_boundary():
    nodes = scatter(SQUARE, spacing=0.04, method="hexagonal", relax=0)
    before, edge = nodes.interior.copy(), nodes.boundary.copy()
    h, h_edge = nodes.spacing[: nodes.n_interior], nodes.spacing[nodes.n_interior :]
    after = repel(SQUARE, before, h, edge, h_edge)
    moved = (after != before).any(axis=1)
    index = KDTree(np.concatenate([before, edge])).query(before, 22)[1]
    lonely = (index < len(before)).all(axis=1) & (-SQUARE.distance(before) > 0.16)
    assert moved.sum() > 50
    assert lonely.sum() > 50
    assert after[lonely].tobytes() == before[lonely].tobytes()
    assert edge.tobytes() == nodes.boundary.tobytes()
    assert nodes.interior.tobytes() == before.tobytes()
    assert nearest(np.concatenate([after, edge])).min() > nearest(nodes.points).min()


def test_relax_keeps_nodes_inside_and_off_the_boundary():
    rng = np.random.default_rng(0)
    points = rng.uniform(0.05, 0.95, size=(300, 2))
    h, edge = np.full(300, 0.05), scatter(SQUARE, spacing=0.05).boundary
    after = relax(SQUARE, points, h, edge, np.full(len(edge), 0.05))
    assert (-SQUARE.distance(after)).min() >= 0.025 - 1e-12
    assert nearest(after).min() > 3 * nearest(points).min()


def test_trim_takes_the_crowded_ones():
    nodes = scatter(SQUARE, spacing=0.05, relax=0)
    extra = nodes.interior[::10] + 0.005
    points = np.concatenate([nodes.interior, extra])
    kept = trim(SQUARE, points, np.full(len(points), 0.05), nodes.boundary, nodes.n_interior)
    assert len(kept) == nodes.n_interior
    assert nearest(kept).min() > 0.04


def test_independent_is_greedy_in_rank_order():
    rng = np.random.default_rng(0)
    points, rank = rng.random((400, 2)), rng.permutation(400)
    kept: list[int] = []
    for i in np.argsort(rank):
        if all(np.linalg.norm(points[i] - points[j]) >= 0.1 for j in kept):
            kept.append(int(i))
    fast = independent(points, np.full(400, 0.1), rank, Wrap([0, 0], [0, 0]))
    assert sorted(kept) == fast.tolist()


def test_depth_from_the_table_is_a_lower_bound():
    depths = Depth(FLOWER)
    points = np.random.default_rng(0).uniform(*FLOWER.bounds, size=(6000, 2))
    exact, bound = -FLOWER.distance(points), depths.at_least(points, np.full(6000, 0.1))
    assert (bound <= exact + 1e-12).all()
    assert bound[exact < 0.1] == pytest.approx(exact[exact < 0.1])


# ---- boundary ------------------------------------------------------------------------------------------------------
def test_corners_are_nodes_once_and_lie_on_both_sides():
    nodes = scatter(SQUARE, spacing=0.1)
    assert nodes.n_boundary == 40
    names = SQUARE.part_names
    for corner, sides in {(0, 0): {"left", "bottom"}, (1, 1): {"right", "top"}, (1, 0): {"right", "bottom"}}.items():
        (i,) = np.flatnonzero(np.linalg.norm(nodes.boundary - corner, axis=1) < 1e-9)
        assert {names[k] for k in np.flatnonzero(nodes.on_part[i])} == sides
    outward = {"left": (-1, 0), "right": (1, 0), "bottom": (0, -1), "top": (0, 1)}
    assert (nodes.normals == np.array([outward[names[k]] for k in nodes.part])).all()
    assert nodes.on_part[np.arange(40), nodes.part].all()
    assert nodes.on_part.sum() == 44


def test_polygon_corners_and_named_parts():
    domain = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]).named(floor="y <= 0")
    nodes = scatter(domain, spacing=0.1)
    assert nodes.n_boundary == 80
    floor = domain.part_names.index("floor")
    assert nodes.on_part[:, floor].sum() == 21
    assert (nodes.boundary[nodes.part == floor][:, 1] == 0).all()
    assert np.abs(nodes.normals[nodes.part == floor] - [0, -1]).max() < 1e-12


def test_equal_arc_length_on_a_circle():
    nodes = scatter(Disc(), n_nodes=400, n_boundary=60)
    assert nearest(nodes.boundary) == pytest.approx(np.full(60, 2 * np.sin(np.pi / 60)), rel=1e-4)


def test_cube_has_all_edges_and_corners():
    nodes = scatter(CUBE, spacing=0.2)
    n_faces = nodes.on_part.sum(axis=1)
    assert (n_faces == 3).sum() == 8
    assert (n_faces == 2).sum() == 12 * 4
    axis = np.argmax(np.abs(nodes.normals), axis=1)
    side = (np.take_along_axis(nodes.normals, axis[:, None], axis=1)[:, 0] > 0).astype(int)
    assert (2 * axis + side == nodes.part).all()
    assert nodes.on_part[np.arange(nodes.n_boundary), nodes.part].all()


def test_surface_of_a_combination():
    domain = BALL - Ball((0.0, 0.0, 0.0), 0.4)
    nodes = scatter(domain, spacing=0.2)
    assert np.abs(domain.distance(nodes.boundary)).max() < 1e-9
    assert nearest(nodes.boundary).min() > 0.6 * 0.2
    radius = np.linalg.norm(nodes.boundary, axis=1)
    outward = (nodes.normals * nodes.boundary).sum(axis=1) / radius
    assert outward == pytest.approx(np.where(radius > 0.7, 1.0, -1.0))


def test_ghosts_are_one_spacing_outside():
    nodes = scatter(Disc(), spacing=0.1)
    assert Disc().distance(ghosts(nodes)) == pytest.approx(np.full(nodes.n_boundary, 0.1))
    mask = nodes.boundary[:, 0] > 0
    assert len(ghosts(nodes, mask)) == mask.sum()


# ---- periodic boxes, lines, lattices -------------------------------------------------------------------------------
@pytest.mark.parametrize("periodic", [("x",), ("x", "y")])
def test_periodic_axes_wrap(periodic):
    domain = Box((0.0, -1.0), (2.0, 1.0), periodic)
    nodes = scatter(domain, n_nodes=600, rng=0)
    tiled = np.concatenate([nodes.points + shift for shift in ([0, 0], [2, 0], [-2, 0])])
    distance = KDTree(tiled).query(nodes.points, 2)[0][:, 1]
    assert distance.min() > 0.8 * nodes.spacing[0]
    assert (nodes.points >= domain.bounds[0]).all()
    assert (nodes.points[:, 0] < 2).all()
    assert (nodes.n_boundary == 0) == (len(periodic) == 2)
    # no seam: as many nodes in the strip along it as elsewhere
    seam = (np.abs(nodes.points[:, 0] - 1) > 0.8).sum()
    assert abs(seam - 120) < 25
    assert quality(nodes).ratio > 0.45


def test_periodic_cube():
    nodes = scatter(Box((0, 0, 0), (1, 1, 1), ("x", "y", "z")), n_nodes=800)
    assert (nodes.n_nodes, nodes.n_boundary) == (800, 0)
    assert quality(nodes).ratio > 0.42


def test_line():
    line = Box(0.0, 1.0)
    nodes = scatter(line, n_nodes=11)
    assert nodes.n_interior == 9
    assert np.sort(nodes.points[:, 0]) == pytest.approx(np.linspace(0, 1, 11))
    assert nodes.normals[:, 0].tolist() == [-1.0, 1.0]
    graded = np.sort(scatter(line, spacing=0.01, grade=0.2).points[:, 0])
    assert np.diff(graded)[0] == pytest.approx(0.011, rel=0.1)
    assert np.diff(graded).max() > 0.08
    ring = scatter(Box(0.0, 1.0, "x"), n_nodes=10)
    assert np.diff(np.sort(ring.points[:, 0])) == pytest.approx(np.full(9, 0.1))


def test_lattice_of_the_sine_gordon_paper():
    nodes = lattice(Box((-7.0, -7.0), (7.0, 7.0)), (57, 57))
    assert (nodes.n_interior, nodes.n_boundary) == (55 * 55, 224)
    assert nodes.on_part.sum() == 224 + 4
    assert nearest(nodes.points) == pytest.approx(np.full(57 * 57, 0.25))
    ring = lattice(Box((0, 0), (1, 1), ("x",)), (10, 11))
    assert (ring.n_interior, ring.n_boundary) == (90, 20)
    assert ring.points[:, 0].max() == pytest.approx(0.9)
    cube = lattice(CUBE, 5)
    assert (cube.n_interior, cube.n_boundary) == (27, 98)


def test_fibonacci_separation():
    points = fibonacci(585)
    assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 1e-15
    assert nearest(points).min() == pytest.approx(0.12783, abs=1e-4)


class Grown(Domain):
    """A domain of a user's own: another one, twice as large."""

    def __init__(self, base):
        self.base, self.dimension, self.bounds = base, base.dimension, 2 * base.bounds

    def contains(self, points):
        return self.base.contains(self.check_points(points) / 2)

    def project(self, points):
        return 2 * self.base.project(self.check_points(points) / 2)

    def normal(self, points):
        return self.base.normal(self.check_points(points) / 2)

    def boundary_cloud(self, spacing, rng):
        return 2 * self.base.boundary_cloud(spacing / 2, rng)


def test_a_domain_of_a_users_own_is_not_taken_for_the_one_it_is_made_of():
    nodes = scatter(Grown(BALL), spacing=0.5)
    assert np.linalg.norm(nodes.boundary, axis=1) == pytest.approx(2)
    with pytest.raises(ParasolError, match="needs a Box, got Grown"):
        lattice(Grown(CUBE), 5)
    with pytest.raises(ParasolError, match="Grown does not say where its boundary is"):
        scatter(Grown(SQUARE), spacing=0.5)


# ---- mistakes ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("domain", "options", "message"),
    [
        (SQUARE, {}, "n_nodes=1000 or spacing=0.05"),
        (SQUARE, {"n_nodes": 100, "spacing": 0.1}, "both given"),
        (SQUARE, {"spacing": -1.0}, "positive"),
        (SQUARE, {"spacing": lambda p: -p[:, 0]}, "positive number per point"),
        (SQUARE, {"spacing": 3.0}, "spacing=3 leaves no interior node in a domain of size 1; use spacing <= 0.39"),
        (SQUARE, {"n_nodes": 2}, "too small"),
        (SQUARE, {"n_nodes": 0}, "positive whole number"),
        (SQUARE, {"n_nodes": "x"}, "positive whole number"),
        (SQUARE, {"n_nodes": np.nan}, "positive whole number"),
        (SQUARE, {"n_nodes": 100, "grade": "x"}, "finite number"),
        (SQUARE, {"n_nodes": 100, "relax": "x"}, "0 or more"),
        (SQUARE, {"n_nodes": 100, "relax": 2.5}, "0 or more"),
        (SQUARE, {"n_nodes": 100, "relax": -1}, "0 or more"),
        (SQUARE, {"n_nodes": 100, "rng": -1}, "no seed"),
        ("disc", {"n_nodes": 100}, "needs a domain"),
        (SQUARE, {"spacing": 1e-7}, r"about 1.0e\+14 nodes"),
        (SQUARE, {"spacing": lambda p: 1e-4 + 1e-9 * p[:, 0]}, r"about 1.0e\+08 nodes"),
        (Box((0, 0), (1, 1), "xy"), {"n_nodes": 100, "n_boundary": 10}, "no boundary"),
        (SQUARE, {"n_nodes": 100, "n_boundary": 120}, "too small"),
        (SQUARE, {"n_nodes": 100, "n_boundary": 3}, "too small"),
        (SQUARE, {"n_nodes": 100, "n_boundary": 30, "grade": 0.1}, "determine the grade"),
        (BALL, {"n_nodes": 100, "method": "front"}, "in the plane"),
        (SQUARE, {"n_nodes": 100, "method": "random"}, "unknown"),
        (SQUARE, {"spacing": lambda p: p[:, 0] + 1, "method": "hexagonal"}, "one spacing everywhere"),
    ],
)
def test_mistakes_get_one_line(domain, options, message):
    with pytest.raises(ParasolError, match=message) as caught:
        scatter(domain, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [None, 3.0, 2, "ab", (3,), (5, np.nan)])
def test_a_lattice_needs_whole_numbers(shape):
    with pytest.raises(ParasolError, match="whole numbers of at least 3"):
        lattice(SQUARE, shape)


def test_a_hole_with_too_few_nodes_is_said():
    holed = SQUARE - Disc((0.5, 0.5), 0.01)
    with pytest.warns(ParasolWarning, match="circumference 0.063 gets 3 boundary nodes") as caught:
        scatter(holed, n_nodes=300)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scatter(holed, n_nodes=300, spacing=lambda p: 0.01 + np.linalg.norm(p - 0.5, axis=1))


def test_nodes_print_in_one_line_and_stay_where_they_are():
    nodes = scatter(SQUARE, n_nodes=200)
    assert repr(nodes) == f"<Nodes {nodes.n_interior} interior + {nodes.n_boundary} boundary in 2-D>"
    for array in (nodes.points, nodes.normals, nodes.boundary):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_advice_of_too_large_a_spacing_works():
    with pytest.raises(ParasolError) as caught:
        scatter(FLOWER, spacing=3.0)
    assert scatter(FLOWER, spacing=float(str(caught.value).split("<= ")[1].rstrip("."))).n_interior > 0


# ---- speed ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("domain", [SQUARE, CUBE])
def test_twenty_thousand_nodes_do_not_take_long(domain):
    start = time.process_time()
    nodes = scatter(domain, n_nodes=20_000)
    assert nodes.n_nodes == 20_000
    assert time.process_time() - start < 8  # a second or two; generous for a busy machine


def test_fill_gives_up_beyond_its_limit():
    edge = scatter(SQUARE, spacing=0.02).boundary
    points = fill(SQUARE, lambda p, _: np.full(len(p), 0.02), edge, rng=np.random.default_rng(0), limit=500)
    assert 500 < len(points) < 1200


def test_a_small_hole_in_space_is_said():
    with pytest.warns(ParasolWarning, match="hole or rim of circumference"):
        scatter(BALL - Ball((0.3, 0.1, 0), 0.05), n_nodes=600)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scatter(BALL - Ball((0.3, 0.1, 0), 0.4), n_nodes=600)
